//! Since when each attempt could have started, once all is calm: what two checkers need.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use punctual_core::{
    Change, LaneId, PartitionId, Priority, QueueId, QueueSettings, Spec, Target, Task, TaskId, Timestamp,
    Token, WaitState,
};

use super::{Log, View};
use crate::history::{Happening, Moment, Process};
use crate::world::PARTITIONS;

/// Store calls that were late when the last fault stopped are done after this time.
const SETTLED_AFTER: Duration = Duration::from_secs(15);

/// An attempt that began when all was calm.
pub struct Waited {
    pub token: Token,
    pub process: Process,
    /// A worker gets it, and it takes no slot.
    pub is_worker: bool,
    /// As it was asked for.
    pub priority: Priority,
    /// Since when nothing but slots kept it from starting; `None`: something else may have.
    pub ready: Option<Timestamp>,
    pub started: Timestamp,
}

/// Attempts that began when all was calm, in order.
///
/// A task is ready when it is due, its row is written, its partition is served, its queue is not paused, and the task
/// before it in its lane has ended; if it is for a worker, when the reserve that got it was made, too. Nothing is said of tasks that may wait for something else (a destination, a handler
/// that was registered late, a queue with limits), or whose last change was cut.
pub fn of(log: &Log, view: &View) -> Vec<Waited> {
    let mut world = Seen::default();
    let mut waited = Vec::new();
    for (moment, happening) in log {
        match happening {
            Happening::Calm => world.calm_since = Some(moment.at + SETTLED_AFTER),
            Happening::QueueSet { queue, settings } => {
                world.queues.insert(*queue, (moment.at, settings.clone()));
            }
            Happening::Taken { process, fence } => {
                world.taken.insert(fence.partition, (moment.at, *process));
            }
            Happening::Written { changes, .. } => world.written(*moment, changes),
            Happening::Torn(changes) => world.torn(changes),
            Happening::ReserveCalled { no } => _ = world.reserves.insert(*no, moment.at),
            Happening::ReserveAnswered { no } => world.asked = world.reserves.remove(no),
            Happening::Started { process, token, spec, .. } => {
                let Some(task) = view.tasks.get(&token.id) else { continue };
                let ready = world.ready(*process, *token, spec);
                world.away.insert(token.id);
                if world.calm_since.is_some_and(|since| since <= moment.at) {
                    let (token, process, started) = (*token, *process, moment.at);
                    let (is_worker, priority) = (spec.target == Target::Worker, task.priority);
                    waited.push(Waited { token, process, is_worker, priority, ready, started });
                }
            }
            _ => {}
        }
    }
    waited
}

/// What is known from outside at some moment.
#[derive(Default)]
struct Seen {
    calm_since: Option<Timestamp>,
    queues: BTreeMap<QueueId, (Timestamp, Box<QueueSettings>)>,
    taken: BTreeMap<PartitionId, (Timestamp, Process)>,
    /// When each task is due, and since when that is on record.
    due: BTreeMap<TaskId, (Timestamp, Timestamp)>,
    /// When a task of each lane last ended.
    freed: BTreeMap<LaneId, Timestamp>,
    /// Tasks that are blocked, or were started since something was last written of them.
    away: BTreeSet<TaskId>,
    /// When each worker that waits has asked, and when the one that was answered last had.
    reserves: BTreeMap<u64, Timestamp>,
    asked: Option<Timestamp>,
}

impl Seen {
    fn written(&mut self, now: Moment, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Accepted(task) | Change::Revived(task) | Change::Refiled { task, .. } => {
                    // A task that is put out of the way, and taken back, was due before; one that ran or was blocked
                    // could not be taken.
                    let was_away = self.away.remove(&task.id);
                    self.away.extend((task.state == WaitState::Blocked).then_some(task.id));
                    let since = self.due.get(&task.id).filter(|(due, _)| *due == due_at(task) && !was_away);
                    let since = since.map_or(now.at, |(_, since)| *since);
                    self.due.insert(task.id, (due_at(task), since));
                }
                Change::Ended { task, .. } => {
                    self.freed.extend(task.lane_id().map(|lane| (lane, now.at)));
                }
                _ => {}
            }
        }
    }

    /// Nobody knows when these tasks are due until that is written again.
    fn torn(&mut self, changes: &[Change]) {
        for change in changes {
            if let Change::Revived(task) | Change::Refiled { task, .. } = change {
                self.due.remove(&task.id);
            }
        }
    }

    fn ready(&self, process: Process, token: Token, spec: &Spec) -> Option<Timestamp> {
        let (queue_set, queue) = self.queues.get(&token.id.queue)?;
        let has_limits = queue.running_max.is_some() || queue.rate.is_some();
        let asked = match &spec.target {
            Target::Worker => Some(self.asked?),
            Target::Handler(name) if &**name == "work" => None,
            _ => return None,
        };
        if has_limits {
            return None;
        }
        let (taken, owner) = self.taken.get(&token.id.partition(PARTITIONS))?;
        let (due, written) = self.due.get(&token.id).filter(|_| *owner == process)?;
        let freed = spec.lane_id(token.id.queue).and_then(|lane| self.freed.get(&lane));
        let obstacles = [*due, *written, *taken, *queue_set, self.calm_since?];
        obstacles.into_iter().chain(freed.copied()).chain(asked).max()
    }
}

fn due_at(task: &Task) -> Timestamp {
    let is_new = task.attempts == 0 && task.state == WaitState::Scheduled;
    if is_new { task.spec.at.min(task.wake_at) } else { task.wake_at }
}
