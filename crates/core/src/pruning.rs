//! When history is dropped: a queue's history is looked at when something in it may fall due, and not before.
//!
//! Nothing is polled, so that an idle node does nothing. An end that was recorded says when the first of its queue's
//! history can go; each look says when the next can. What a new owner cannot know is looked for once. Only one look
//! is under way at a time, and it drops a few buckets at most: history can wait, tasks cannot.
//! Decision record: `docs/decisions/0008-history-is-dropped-when-due.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use crate::change::Change;
use crate::facts::{Pruned, Retention};
use crate::id::{Epoch, Fence, PartitionId, QueueId};
use crate::queue::Queues;
use crate::task::EndState;
use crate::time::Timestamp;

/// Two looks at the same history are at least this far apart, whatever the store says.
const APART: Duration = Duration::from_secs(1);
/// After a look that failed, the next waits so long; twice as long after each further one, up to an hour.
const FAILED_WAIT: Duration = Duration::from_secs(10);
const FAILED_WAIT_MAX: Duration = Duration::from_secs(3_600);

/// Drop what is past in the history of this queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prune {
    /// Under this ownership.
    pub fence: Fence,
    /// Of which queue.
    pub queue: QueueId,
    /// What is past.
    pub retention: Retention,
}

/// When each queue's history is to be looked at.
#[derive(Default, Debug)]
pub struct Pruning {
    /// The partitions whose history is ours to drop.
    owned: BTreeMap<PartitionId, Epoch>,
    /// When something may fall due, where something is known to be, or nothing is known.
    looks: BTreeMap<(PartitionId, QueueId), Look>,
    /// The same, by time.
    order: BTreeSet<(Timestamp, PartitionId, QueueId)>,
    /// What is being dropped, and how often in a row that has failed. It is not among `looks`.
    under_way: Option<(Prune, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    at: Timestamp,
    failures: u32,
}

impl Pruning {
    /// A partition is ours, and nothing is known of its history: each queue is looked at once, some time within
    /// `spread`, so that a start does not begin with a thousand looks.
    pub fn taken(&mut self, now: Timestamp, fence: Fence, queues: &Queues, spread: Duration) {
        self.lost(fence.partition);
        self.owned.insert(fence.partition, fence.epoch);
        for queue in queues.numbers() {
            self.look_by(now + share(spread, fence.partition, queue), fence.partition, queue, 0);
        }
    }

    /// A partition is no longer ours.
    pub fn lost(&mut self, partition: PartitionId) {
        self.owned.remove(&partition);
        let of_partition = (partition, QueueId(0))..=(partition, QueueId(u32::MAX));
        let queues: Vec<QueueId> = self.looks.range(of_partition).map(|((_, queue), _)| *queue).collect();
        for queue in queues {
            self.take(partition, queue);
        }
    }

    /// A queue is new here, or keeps its history for another time than before: what was expected is void.
    pub fn retention_changed(&mut self, now: Timestamp, queue: QueueId, spread: Duration) {
        let partitions: Vec<PartitionId> = self.owned.keys().copied().collect();
        for partition in partitions {
            self.look_by(now + share(spread, partition, queue), partition, queue, 0);
        }
    }

    /// Changes were recorded. What ended will fall due, and is looked at then; later ends can wait for that look.
    pub fn recorded(&mut self, fence: Fence, changes: &[Change], queues: &Queues) {
        let mut last: Option<(QueueId, EndState)> = None;
        for change in changes {
            let Change::Ended { task, end, .. } = change else { continue };
            // A batch is mostly of one kind, and recorded at one time: one of them speaks for all.
            if last.replace((task.id.queue, end.state)) == Some((task.id.queue, end.state)) {
                continue;
            }
            if self.owned.get(&fence.partition) == Some(&fence.epoch) {
                let due_at = end.at + queues.get(task.id.queue).keep(end.state);
                self.look_by(due_at, fence.partition, task.id.queue, 0);
            }
        }
    }

    /// What to drop now, if something is due and nothing is under way.
    pub fn begin(&mut self, now: Timestamp, queues: &Queues) -> Option<Prune> {
        let &(at, partition, queue) = self.order.first().filter(|_| self.under_way.is_none())?;
        if now < at {
            return None;
        }
        let look = self.take(partition, queue)?;
        let fence = Fence { partition, epoch: *self.owned.get(&partition)? };
        let prune = Prune { fence, queue, retention: queues.get(queue).retention(now) };
        self.under_way = Some((prune, look.failures));
        Some(prune)
    }

    /// What was under way is done; `None` when it failed, or nobody knows.
    pub fn done(&mut self, now: Timestamp, pruned: Option<Pruned>) {
        let Some((prune, failures)) = self.under_way.take() else { return };
        let Fence { partition, epoch } = prune.fence;
        if self.owned.get(&partition) != Some(&epoch) {
            return;
        }
        match pruned {
            // Those who have waited longer go first.
            Some(pruned) if pruned.more => self.look_by(now, partition, prune.queue, 0),
            Some(pruned) => {
                if let Some(next_in) = pruned.next_in {
                    self.look_by(now + next_in.max(APART), partition, prune.queue, 0);
                }
            }
            None => {
                let wait = FAILED_WAIT.saturating_mul(1 << failures.min(10)).min(FAILED_WAIT_MAX);
                self.look_by(now + wait, partition, prune.queue, failures + 1);
            }
        }
    }

    /// When `begin` has something to say again.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.order.first().filter(|_| self.under_way.is_none()).map(|(at, ..)| *at)
    }

    /// A look at this time, unless there is an earlier one.
    fn look_by(&mut self, at: Timestamp, partition: PartitionId, queue: QueueId, failures: u32) {
        if self.looks.get(&(partition, queue)).is_some_and(|look| look.at <= at) {
            return;
        }
        self.take(partition, queue);
        self.looks.insert((partition, queue), Look { at, failures });
        self.order.insert((at, partition, queue));
    }

    fn take(&mut self, partition: PartitionId, queue: QueueId) -> Option<Look> {
        let look = self.looks.remove(&(partition, queue))?;
        self.order.remove(&(look.at, partition, queue));
        Some(look)
    }
}

/// A part of a duration: the same for the same queue each time, and spread evenly over all of them.
fn share(spread: Duration, partition: PartitionId, queue: QueueId) -> Duration {
    let key = (u64::from(queue.0) << 16) | u64::from(partition.0);
    spread.mul_f64(f64::from(xxh3_64(&key.to_be_bytes()) as u32) / f64::from(u32::MAX))
}
