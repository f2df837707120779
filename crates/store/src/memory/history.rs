//! What has ended, in buckets that are dropped whole, and the identities that outlive them.

use std::collections::btree_map::{BTreeMap, Entry};
use std::time::Duration;

use punctual_core::{End, EndState, EndedTask, Identity, QueueId, RowKey, Task, TaskId, Timestamp};
use rustc_hash::FxHashMap;

use super::ops::{Cut, Ops};
use crate::Retention;
use crate::place::{BucketId, birth_key, forgotten_in, hour_of, past_in};

/// How many identities one call of prune forgets.
const FORGOTTEN_MAX: usize = 10_000;

/// The history of a partition.
#[derive(Default)]
pub(super) struct History {
    buckets: BTreeMap<BucketId, Bucket>,
    identities: FxHashMap<Identity, IdentityRow>,
    /// Identities of tasks that have ended, by the hour of their end. May name some that were revived.
    ended_identities: BTreeMap<(QueueId, u32), Vec<Identity>>,
}

/// What was born in one hour of one queue and has ended.
#[derive(Default)]
pub(super) struct Bucket {
    /// By birth.
    pub rows: BTreeMap<RowKey, Box<EndedTask>>,
    newest: Newest,
    /// How many bytes they take.
    bytes: u64,
}

/// When the last task of each kind ended.
#[derive(Clone, Copy, Default)]
struct Newest {
    finished: Option<Timestamp>,
    dead: Option<Timestamp>,
}

impl Newest {
    fn note(&mut self, end: &End) {
        let newest = if end.state == EndState::Dead { &mut self.dead } else { &mut self.finished };
        *newest = (*newest).max(Some(end.at));
    }

    fn is_past(self, retention: Retention) -> bool {
        past_in(self.finished, self.dead, retention).is_zero()
    }
}

/// Who carries an identity, and how it ended.
#[derive(Clone, Copy)]
pub(super) struct IdentityRow {
    pub id: TaskId,
    pub ended: Option<(EndState, Timestamp)>,
}

impl History {
    pub fn find(&self, id: &TaskId) -> Option<&EndedTask> {
        let bucket = self.buckets.get(&BucketId::of(id))?;
        bucket.rows.get(&birth_key(id)).map(|ended| &**ended).filter(|ended| ended.task.id == *id)
    }

    pub fn has(&self, id: &TaskId) -> bool {
        self.find(id).is_some()
    }

    /// Writes an end, unless it is known; answers whether it is the last one known now.
    pub fn end(&mut self, task: &Task, end: &End, ops: &mut Ops) -> Result<bool, Cut> {
        let bucket = self.buckets.entry(BucketId::of(&task.id)).or_default();
        let ended = || Box::new(EndedTask { task: task.clone(), end: end.clone() });
        match bucket.rows.entry(birth_key(&task.id)) {
            Entry::Occupied(known) if known.get().task.revision >= task.revision => {
                return Ok(known.get().task.revision == task.revision);
            }
            Entry::Occupied(mut older) => {
                ops.spend()?;
                let older = older.insert(ended());
                bucket.bytes -= EndedTask::kept_bytes(&older.task, &older.end);
            }
            Entry::Vacant(entry) => {
                ops.spend()?;
                entry.insert(ended());
            }
        }
        bucket.newest.note(end);
        bucket.bytes += EndedTask::kept_bytes(task, end);
        Ok(true)
    }

    pub fn remove(&mut self, id: &TaskId) {
        if let Some(bucket) = self.buckets.get_mut(&BucketId::of(id)) {
            let gone = bucket.rows.remove(&birth_key(id));
            bucket.bytes -= gone.map_or(0, |ended| EndedTask::kept_bytes(&ended.task, &ended.end));
        }
    }

    /// How many bytes the history of a queue takes.
    pub fn bytes(&self, queue: QueueId) -> u64 {
        self.of_queue(queue).map(|(_, bucket)| bucket.bytes).sum()
    }

    /// The oldest bucket of a queue.
    pub fn first(&self, queue: QueueId) -> Option<BucketId> {
        self.of_queue(queue).next().map(|(id, _)| *id)
    }

    fn of_queue(&self, queue: QueueId) -> impl Iterator<Item = (&BucketId, &Bucket)> {
        self.buckets.range(BucketId { queue, hour: 0 }..=BucketId { queue, hour: u32::MAX })
    }

    /// Takes the oldest out of a bucket: so many bytes, or all there is. The bucket goes with its last.
    pub fn cut_bucket(&mut self, id: BucketId, bytes: u64) -> Vec<EndedTask> {
        let (mut gone, mut ended) = (0, Vec::new());
        let Some(bucket) = self.buckets.get_mut(&id) else { return ended };
        while gone < bytes
            && let Some((_, oldest)) = bucket.rows.pop_first()
        {
            gone += EndedTask::kept_bytes(&oldest.task, &oldest.end);
            ended.push(*oldest);
        }
        bucket.bytes -= gone;
        if bucket.rows.is_empty() {
            self.buckets.remove(&id);
        }
        ended
    }

    pub fn buckets(&self) -> impl Iterator<Item = (BucketId, &Bucket)> {
        self.buckets.iter().map(|(id, bucket)| (*id, bucket))
    }

    /// The oldest bucket of a queue that may go.
    pub fn first_past(&self, queue: QueueId, retention: Retention) -> Option<BucketId> {
        self.of_queue(queue).find(|(_, bucket)| bucket.newest.is_past(retention)).map(|(id, _)| *id)
    }

    /// How far the retention must move on until the next bucket, or the next hour of identities, can go.
    pub fn next_past(&self, queue: QueueId, retention: Retention) -> Option<Duration> {
        let newest = self.of_queue(queue).map(|(_, bucket)| bucket.newest);
        let buckets = newest.map(|newest| past_in(newest.finished, newest.dead, retention));
        let mut hours = self.ended_identities.range((queue, 0)..=(queue, u32::MAX));
        let identities = hours.next().map(|((_, hour), _)| forgotten_in(*hour, retention));
        buckets.chain(identities).min()
    }

    pub fn drop_bucket(&mut self, bucket: BucketId) -> Option<Bucket> {
        self.buckets.remove(&bucket)
    }

    pub fn identity(&self, identity: Identity) -> Option<IdentityRow> {
        self.identities.get(&identity).copied()
    }

    /// The identity belongs to a task that has not ended.
    pub fn identify(&mut self, identity: Identity, id: TaskId) {
        self.identities.insert(identity, IdentityRow { id, ended: None });
    }

    /// The identity's task has ended. It is left alone when it belongs to another task by now.
    pub fn mark_identity(&mut self, identity: Identity, task: &Task, end: &End) {
        let ended = Some((end.state, end.at));
        let row = self.identities.entry(identity).or_insert(IdentityRow { id: task.id, ended: None });
        if row.id == task.id && row.ended != ended {
            row.ended = ended;
            self.ended_identities.entry((task.id.queue, hour_of(end.at))).or_default().push(identity);
        }
    }

    /// Forgets the identities of tasks that ended in hours before that time; answers whether some are left.
    pub fn forget_identities(&mut self, queue: QueueId, before: Timestamp) -> bool {
        for _ in 0..FORGOTTEN_MAX {
            let range = (queue, 0)..(queue, hour_of(before));
            let Some((&(_, hour), oldest)) = self.ended_identities.range_mut(range).next() else {
                return false;
            };
            match oldest.pop() {
                Some(identity) => self.forget(identity, hour),
                None => drop(self.ended_identities.remove(&(queue, hour))),
            }
        }
        true
    }

    fn forget(&mut self, identity: Identity, hour: u32) {
        let row = self.identities.get(&identity);
        if row.and_then(|row| row.ended).is_some_and(|(_, at)| hour_of(at) == hour) {
            self.identities.remove(&identity);
        }
    }
}
