//! Sees everything that happens: counts it, tells those who listen, and sends results to those who wait for them.

use std::sync::Arc;

use bytes::Bytes;
use punctual::clock::Clock;
use punctual::{Attempt, Change, EndState, EndedTask, Note, Observer, PartitionId, Task, WaitState};
use tokio::sync::broadcast;

use crate::blocked::BlockedLanes;
use crate::counts::Counts;
use crate::debts::Debts;
use crate::lateness::LateStarts;
use crate::metrics::Metrics;
use crate::notifications::Notifications;
use crate::owed::{Debt, Owed};

/// So many happenings are kept for a listener that is slow; then it misses some, and is told how many.
const HAPPENINGS_KEPT: usize = 4_096;

/// Something that happened to a task.
#[derive(Clone, Debug)]
pub enum Happening {
    /// It was accepted.
    Created(Task),
    /// An attempt began.
    Started(Attempt),
    /// Its row was written anew: it waits for another attempt, or for a person.
    Waits(Task),
    /// It ended.
    Ended(EndedTask),
}

/// Who watches. Clones are the same.
#[derive(Clone)]
pub struct Watch(Arc<Shared>);

struct Shared {
    clock: Clock,
    metrics: Metrics,
    counts: Counts,
    happenings: broadcast::Sender<Arc<Happening>>,
    debts: Debts,
    blocked: BlockedLanes,
    notifications: Notifications,
    late_starts: LateStarts,
}

impl Watch {
    /// A watch that passes on what is owed to others.
    pub fn new(clock: Clock, debts: Debts, blocked: BlockedLanes) -> Watch {
        Watch(Arc::new(Shared {
            clock,
            metrics: Metrics::default(),
            counts: Counts::default(),
            happenings: broadcast::Sender::new(HAPPENINGS_KEPT),
            debts,
            blocked,
            notifications: Notifications::default(),
            late_starts: LateStarts::default(),
        }))
    }

    /// What is owed to others and not settled.
    pub fn debts(&self) -> &Debts {
        &self.0.debts
    }

    /// Which lanes wait for a person.
    pub fn blocked(&self) -> &BlockedLanes {
        &self.0.blocked
    }

    /// Who is told of what.
    pub fn notifications(&self) -> &Notifications {
        &self.0.notifications
    }

    /// Which queues start late.
    pub fn late_starts(&self) -> &LateStarts {
        &self.0.late_starts
    }

    /// What was counted.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// How many tasks each queue has.
    pub fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// Everything that happens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Happening>> {
        self.0.happenings.subscribe()
    }
}

impl Observer for Watch {
    fn observe(&self, note: Note<'_>) {
        let shared = &*self.0;
        match note {
            Note::Started(attempt) => shared.started(attempt),
            Note::Reported(_, outcome) => shared.metrics.reported(outcome),
            Note::Recorded(fence, changes) => {
                shared.counts.recorded(fence.partition, changes);
                for change in changes {
                    shared.blocked.recorded(fence.partition, change);
                    shared.recorded(fence.partition, change);
                }
            }
            Note::PartitionTaken(fence) => {
                tracing::debug!(partition = fence.partition.0, epoch = fence.epoch.0, "a partition is ours");
                shared.metrics.taken(fence);
                shared.counts.taken();
                shared.blocked.taken(fence.partition);
                shared.debts.look_through(fence.partition);
            }
            Note::PartitionLost(partition)
            | Note::PartitionReloaded(partition)
            | Note::PartitionReleased(partition) => {
                tracing::debug!(partition = partition.0, ?note, "a partition is not ours");
                if matches!(note, Note::PartitionReloaded(_)) {
                    shared.counts.lost();
                }
                shared.metrics.gone(partition);
                shared.blocked.gone(partition);
            }
            Note::ClockStepped(step) => {
                tracing::warn!(micros = step.micros, believed = step.believed, "the wall clock was set");
                shared.metrics.clock_step(step);
            }
            Note::StoreTrouble(trouble) => {
                shared.metrics.store_trouble();
                tracing::error!(trouble, "the store did not do as asked");
            }
            Note::OddStart(odd) => tracing::warn!("{odd}"),
            Note::HistoryDropped(fence, queue, buckets) => {
                tracing::debug!(
                    partition = fence.partition.0,
                    queue = queue.0,
                    buckets,
                    "history was dropped"
                );
            }
        }
    }

    fn owed(&self, change: &Change) -> Option<(Box<str>, Bytes)> {
        Owed::because_of(change, self.0.notifications.wanted())
    }
}

impl Shared {
    fn started(&self, attempt: &Attempt) {
        // Only the first attempt has a time that was promised: later ones wait as long as their retry policy says.
        let is_first = attempt.token.attempt == 1;
        let lateness = is_first.then(|| self.clock.now().wall.since(attempt.spec.at));
        self.metrics.started(lateness);
        if let Some(lateness) = lateness.filter(|_| self.notifications.wanted().lateness) {
            self.late_starts.add(attempt, lateness);
        }
        self.counts.started(attempt);
        self.tell(|| Happening::Started(attempt.clone()));
    }

    fn recorded(&self, partition: PartitionId, change: &Change) {
        match change {
            Change::Schedule(name, Some(row)) if name.starts_with(Change::OWED) => {
                self.debts.heard(Debt { partition, name: name.clone(), row: row.clone() });
            }
            Change::Accepted(task) => {
                self.metrics.created();
                self.tell(|| Happening::Created(task.clone()));
            }
            Change::Refiled { task, .. } if task.state != WaitState::Scheduled && task.parked.is_none() => {
                self.tell(|| Happening::Waits(task.clone()));
            }
            Change::Refiled { task, .. } if task.state == WaitState::Blocked => {
                tracing::warn!(task = %task.id, attempts = task.attempts, "a lane waits for a person");
                self.tell(|| Happening::Waits(task.clone()));
            }
            Change::Ended { task, end, .. } => {
                self.metrics.ended(end.state);
                if end.state == EndState::Dead {
                    tracing::warn!(task = %task.id, attempts = task.attempts, "a task was given up");
                }
                self.tell(|| Happening::Ended(EndedTask { task: task.clone(), end: end.clone() }));
            }
            _ => {}
        }
    }

    /// Tells those who listen; mostly nobody does, and then nothing is copied.
    fn tell(&self, happening: impl FnOnce() -> Happening) {
        if self.happenings.receiver_count() > 0 {
            self.happenings.send(Arc::new(happening())).ok();
        }
    }
}
