//! When history is dropped: a queue's history is looked at when something in it may fall due, and not before.
//!
//! Nothing is polled, so that an idle node does nothing. An end that was recorded says when the first of its queue's
//! history can go; each look says when the next can. What a new owner cannot know is looked for once. Only one look
//! is under way at a time, and it drops a few buckets at most: history can wait, tasks cannot.
//!
//! A queue's budget of bytes needs no look either: each look says how many bytes are left, and each end how many it adds.
//! When they are too many, each partition drops its share of what is too much, and a little more.
//! Decision record: `docs/decisions/0008-history-is-dropped-when-due.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use crate::change::Change;
use crate::facts::{Pruned, Retention};
use crate::id::{Epoch, Fence, PartitionId, QueueId};
use crate::queue::Queues;
use crate::task::{EndState, EndedTask};
use crate::time::Timestamp;

/// Two looks at the same history are at least this far apart, whatever the store says.
const APART: Duration = Duration::from_secs(1);
/// After a look that failed, the next waits so long; twice as long after each further one, up to an hour.
const FAILED_WAIT: Duration = Duration::from_secs(10);
const FAILED_WAIT_MAX: Duration = Duration::from_secs(3_600);
/// When there is too much history, so many parts in eight of the budget are kept: or it would be too much again at once.
const KEPT_EIGHTHS: u128 = 7;

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
    /// How many bytes of history each partition has of each queue, as far as is known; no zeros.
    bytes: BTreeMap<(QueueId, PartitionId), u64>,
    /// The same, of all partitions together.
    totals: BTreeMap<QueueId, u64>,
    /// Queues that had too much history, and what is done about it: how much each partition keeps.
    cuts: BTreeMap<QueueId, BTreeMap<PartitionId, u64>>,
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
        let known: Vec<QueueId> = self.totals.keys().copied().collect();
        for queue in known {
            self.count(partition, queue, |_| 0);
            self.is_cut(partition, queue);
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
        let is_ours = self.owned.get(&fence.partition) == Some(&fence.epoch);
        let mut last: Option<(QueueId, EndState)> = None;
        let mut added: Option<(QueueId, u64, Timestamp)> = None;
        for change in changes.iter().filter(|_| is_ours) {
            let Change::Ended { task, end, .. } = change else { continue };
            let bytes = EndedTask::kept_bytes(task, end);
            added = match added {
                Some((queue, sum, _)) if queue == task.id.queue => Some((queue, sum + bytes, end.at)),
                other => {
                    self.add(fence.partition, other, queues);
                    Some((task.id.queue, bytes, end.at))
                }
            };
            // A batch is mostly of one kind, and recorded at one time: one of them speaks for all.
            if last.replace((task.id.queue, end.state)) == Some((task.id.queue, end.state)) {
                continue;
            }
            let due_at = end.at + queues.get(task.id.queue).keep(end.state);
            self.look_by(due_at, fence.partition, task.id.queue, 0);
        }
        self.add(fence.partition, added, queues);
    }

    /// What to drop now, if something is due and nothing is under way.
    pub fn begin(&mut self, now: Timestamp, queues: &Queues) -> Option<Prune> {
        let &(at, partition, queue) = self.order.first().filter(|_| self.under_way.is_none())?;
        if now < at {
            return None;
        }
        let look = self.take(partition, queue)?;
        let fence = Fence { partition, epoch: *self.owned.get(&partition)? };
        let bytes_max = self.cuts.get(&queue).and_then(|cuts| cuts.get(&partition)).copied();
        let retention = Retention { bytes_max, ..queues.get(queue).retention(now) };
        let prune = Prune { fence, queue, retention };
        self.under_way = Some((prune, look.failures));
        Some(prune)
    }

    /// What was under way is done; `None` when it failed, or nobody knows.
    pub fn done(&mut self, now: Timestamp, pruned: Option<Pruned>, queues: &Queues) {
        let Some((prune, failures)) = self.under_way.take() else { return };
        let Fence { partition, epoch } = prune.fence;
        if self.owned.get(&partition) != Some(&epoch) {
            return;
        }
        if let Some(pruned) = pruned {
            // What ended meanwhile may be counted in it or not: the next look will tell.
            self.count(partition, prune.queue, |_| pruned.bytes);
            if !pruned.more {
                self.is_cut(partition, prune.queue);
            }
            self.cut_if_too_much(now, prune.queue, queues);
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

    /// So many bytes of a queue's history came to a partition, the last at this time.
    fn add(&mut self, partition: PartitionId, added: Option<(QueueId, u64, Timestamp)>, queues: &Queues) {
        let Some((queue, bytes, at)) = added else { return };
        self.count(partition, queue, |known| known.saturating_add(bytes));
        self.cut_if_too_much(at, queue, queues);
    }

    fn count(&mut self, partition: PartitionId, queue: QueueId, now: impl FnOnce(u64) -> u64) {
        let before = self.bytes.remove(&(queue, partition)).unwrap_or(0);
        let now = now(before);
        if now > 0 {
            self.bytes.insert((queue, partition), now);
        }
        let total = self.totals.entry(queue).or_default();
        *total = total.saturating_sub(before).saturating_add(now);
        if *total == 0 {
            self.totals.remove(&queue);
        }
    }

    /// If a queue has more history than it may keep, each partition is to keep its share, and is looked at.
    fn cut_if_too_much(&mut self, now: Timestamp, queue: QueueId, queues: &Queues) {
        let total = self.totals.get(&queue).copied().unwrap_or(0);
        let Some(budget) = queues.get(queue).keep_bytes.filter(|budget| *budget < total) else { return };
        if self.cuts.contains_key(&queue) {
            return;
        }
        let all = (queue, PartitionId(0))..=(queue, PartitionId(u16::MAX));
        let share = |bytes: u64| {
            let kept = u128::from(bytes) * u128::from(budget) * KEPT_EIGHTHS / (8 * u128::from(total));
            u64::try_from(kept).unwrap_or(bytes)
        };
        let cuts: BTreeMap<_, _> =
            self.bytes.range(all).map(|((_, partition), bytes)| (*partition, share(*bytes))).collect();
        for partition in cuts.keys() {
            self.look_by(now, *partition, queue, 0);
        }
        self.cuts.insert(queue, cuts);
    }

    /// A partition has dropped its share, or is not ours any more.
    fn is_cut(&mut self, partition: PartitionId, queue: QueueId) {
        let Some(cuts) = self.cuts.get_mut(&queue) else { return };
        cuts.remove(&partition);
        if cuts.is_empty() {
            self.cuts.remove(&queue);
        }
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
