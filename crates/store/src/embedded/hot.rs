//! The short way of the changes that are most: of tasks that live and end while they are in memory.
//!
//! What they say is the same as on the long way, [`ChangeWriter`](crate::kv::ChangeWriter), which takes whatever is
//! unusual: tasks that were moved, parked, that have a unique key, or whose row nobody has read from the tables lately.

use std::sync::Arc;
use std::time::Duration;

use punctual_core::{Begun, Change, End, EndedTask, PartitionId, Place, Task, TaskId};

use super::cold::ColdTier;
use super::draft::Draft;
use super::key::Key;
use super::layer::Said;
use super::ops;
use super::value::Value;
use crate::StoreError;
use crate::kv::{BucketRow, Rows, encode_into, leased_key, place_key};
use crate::news::attempt_is_news;
use crate::place::{BucketId, birth_place};

impl<C: ColdTier> Draft<'_, C> {
    /// Writes a change the short way, if there is one. Answers whether it did; if not, nothing was written.
    pub fn write_hot(&mut self, partition: PartitionId, change: &Change) -> Result<bool, StoreError> {
        match change {
            Change::Accepted(task) => Ok(self.accept(partition, task)),
            Change::Began { id, place, attempts, crashes, begun } => {
                self.begin(partition, (id, *place), (*attempts, *crashes), *begun)
            }
            Change::Ended { from, task, end } => self.end(partition, *from, task, end),
            _ => Ok(false),
        }
    }

    /// Nothing is known of a task of this number: nothing need be looked for.
    fn accept(&mut self, partition: PartitionId, task: &Task) -> bool {
        let unseen = self.layers.unseen.get(usize::from(partition.0));
        let is_new = unseen.is_some_and(|unseen| task.id.seq.0 >= *unseen);
        let is_usual = task.place() == birth_place(&task.id)
            && !has_lease(task.begun)
            && task.spec.identity(task.id.queue).is_none();
        if !is_new || !is_usual {
            return false;
        }
        self.is_new(partition, task.id.seq);
        let key = Key::from(&place_key(partition, task.place())[..]);
        // What waits for long goes down as it is written now; what is near will change before that.
        let value = if task.wake_at > self.layers.latest + NEAR {
            let row = self.encode(task);
            ops::put(self.ops, key.as_slice(), &row, true);
            Value::Bytes(row)
        } else {
            ops::put_with(self.ops, key.as_slice(), true, |ops| encode_into(ops, task));
            Value::Task(Arc::new(task.clone()))
        };
        self.layers.recent.put(key, value, true);
        true
    }

    fn begin(
        &mut self,
        partition: PartitionId,
        (id, place): (&TaskId, Place),
        (attempts, crashes): (u32, u16),
        begun: Begun,
    ) -> Result<bool, StoreError> {
        let key = Key::from(&place_key(partition, place)[..]);
        let Some((row, is_recent)) = self.row_in_memory(&key)? else { return Ok(false) };
        if row.id == *id && attempt_is_news(&row, attempts) {
            let task = Task { attempts, crashes, begun: Some(begun), ..Task::clone(&row) };
            match is_recent {
                true => ops::began(self.ops, key.as_slice(), &task),
                false => ops::put_with(self.ops, key.as_slice(), false, |ops| encode_into(ops, &task)),
            }
            self.layers.recent.put(key, Value::Task(Arc::new(task)), false);
            self.note_lease(partition, &row, Some(begun));
        }
        Ok(true)
    }

    fn end(
        &mut self,
        partition: PartitionId,
        from: Place,
        task: &Task,
        end: &End,
    ) -> Result<bool, StoreError> {
        if from != birth_place(&task.id) || task.spec.identity(task.id.queue).is_some() {
            return Ok(false);
        }
        let key = Key::from(&place_key(partition, from)[..]);
        let Some((row, is_recent)) = self.row_in_memory(&key)? else { return Ok(false) };
        let is_same = row.id == task.id
            && row.revision <= task.revision
            && (Arc::ptr_eq(&row.spec, &task.spec) || row.spec == task.spec);
        if !is_same {
            return Ok(false);
        }
        let ended = self.encode(&EndedTask { task: task.clone(), end: end.clone() });
        match is_recent {
            true => ops::ended(self.ops, key.as_slice(), task, end),
            false => ops::ended_whole(self.ops, partition, key.as_slice(), task, &ended),
        }
        ops::end(&mut self.layers.recent, partition, &key, task, ended);
        self.note_lease(partition, &row, None);
        self.layers.latest = self.layers.latest.max(end.at);
        self.note_end(partition, task, end);
        Ok(true)
    }

    /// A lease that is on record has a row of its own, by which a new owner finds it.
    fn note_lease(&mut self, partition: PartitionId, before: &Task, now: Option<Begun>) {
        let is_leased = has_lease(now);
        if !is_leased && !has_lease(before.begun) {
            return;
        }
        let key = leased_key(partition, before.id.seq);
        if !is_leased {
            return self.delete(key);
        }
        // Before its first attempt a task had none.
        let is_new = before.revision == 1 && before.attempts == 0;
        if is_new { self.put_new(key, &before.id) } else { Rows::put(self, key, &before.id) }
    }

    /// Buckets are written once, at the end.
    fn note_end(&mut self, partition: PartitionId, task: &Task, end: &End) {
        let bucket = BucketId::of(&task.id);
        let newest = BucketRow::noting(bucket.hour, task, end);
        // Changes come partition by partition.
        match self.buckets.iter_mut().rev().find(|(of, its, _)| (*of, *its) == (partition, bucket)) {
            Some((_, _, row)) => *row = row.and(&newest),
            None => self.buckets.push((partition, bucket, newest)),
        }
    }

    /// The row of a task, and whether it was written since the last seal: then the journal will know it when it is
    /// replayed, and it is enough to say what is different.
    fn row_in_memory(&mut self, key: &Key) -> Result<Option<(Arc<Task>, bool)>, StoreError> {
        if let Some(value) = self.layers.recent.value(key) {
            return Ok(Some((value.to_task()?, true)));
        }
        let value = match self.layers.get(key) {
            Said::Is(value) => value,
            Said::IsNot => return Ok(None),
            Said::Nothing => match self.fetched.get(key) {
                Some(row) => Value::Bytes(row.clone()),
                None => return Ok(None),
            },
        };
        Ok(Some((value.to_task()?, false)))
    }
}

/// A task due within this time after the last end is near.
const NEAR: Duration = Duration::from_secs(60);

fn has_lease(begun: Option<Begun>) -> bool {
    begun.is_some_and(|begun| begun.lease.is_some())
}
