//! Sees everything that happens: counts it, tells those who listen, and sends results to those who wait for them.

use std::sync::Arc;

use punctual::clock::Clock;
use punctual::{Attempt, Change, EndedTask, Note, Observer, Task, WaitState};
use tokio::sync::{broadcast, mpsc};

use crate::counts::Counts;
use crate::delivery::Delivery;
use crate::metrics::Metrics;

/// So many happenings are kept for a listener that is slow; then it misses some, and is told.
const HAPPENINGS_KEPT: usize = 4_096;

/// So many results can wait to be sent. More at once than tasks can end in seconds are lost, and that is logged.
const RESULTS_KEPT: usize = 100_000;

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
    results: mpsc::Sender<EndedTask>,
}

impl Watch {
    /// A watch, and where tasks come out that ended and whose result somebody wants to be sent.
    pub fn new(clock: Clock) -> (Watch, mpsc::Receiver<EndedTask>) {
        let (results, wanted) = mpsc::channel(RESULTS_KEPT);
        let happenings = broadcast::Sender::new(HAPPENINGS_KEPT);
        (
            Watch(Arc::new(Shared {
                clock,
                metrics: Metrics::default(),
                counts: Counts::default(),
                happenings,
                results,
            })),
            wanted,
        )
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
                changes.iter().for_each(|change| shared.recorded(change));
            }
            Note::PartitionTaken(_) => {
                shared.metrics.partitions(1);
                shared.counts.taken();
            }
            Note::PartitionReloaded(_) => {
                shared.metrics.partitions(-1);
                shared.counts.lost();
            }
            Note::PartitionLost(_) | Note::PartitionReleased(_) => shared.metrics.partitions(-1),
            Note::ClockStepped(_) => shared.metrics.clock_step(),
            Note::StoreTrouble(trouble) => {
                shared.metrics.store_trouble();
                eprintln!("punctual: the store: {trouble}");
            }
            Note::OddStart(odd) => eprintln!("punctual: {odd}"),
            Note::HistoryDropped(..) => {}
        }
    }
}

impl Shared {
    fn started(&self, attempt: &Attempt) {
        // Only the first attempt has a time that was promised: later ones wait as long as their retry policy says.
        let is_first = attempt.token.attempt == 1;
        self.metrics.started(is_first.then(|| self.clock.now().wall.since(attempt.spec.at)));
        self.counts.started(attempt);
        self.tell(|| Happening::Started(attempt.clone()));
    }

    fn recorded(&self, change: &Change) {
        match change {
            Change::Accepted(task) => {
                self.metrics.created();
                self.tell(|| Happening::Created(task.clone()));
            }
            Change::Refiled { task, .. } if task.state != WaitState::Scheduled && task.parked.is_none() => {
                self.tell(|| Happening::Waits(task.clone()));
            }
            Change::Refiled { task, .. } if task.state == WaitState::Blocked => {
                self.tell(|| Happening::Waits(task.clone()));
            }
            Change::Ended { task, end, .. } => {
                self.metrics.ended(end.state);
                let ended = || EndedTask { task: task.clone(), end: end.clone() };
                self.tell(|| Happening::Ended(ended()));
                if wants_result(task) && self.results.try_send(ended()).is_err() {
                    eprintln!("punctual: the result of {} is not sent: too many are waiting", task.id);
                }
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

fn wants_result(task: &Task) -> bool {
    !task.spec.delivery.is_empty()
        && Delivery::decode(&task.spec.delivery).is_some_and(|delivery| delivery.callback.is_some())
}
