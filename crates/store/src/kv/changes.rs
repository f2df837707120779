//! Writes changes as rows, all of a fence in one conditional write, or in few when the store takes no more.

use punctual_core::{Begun, Change, End, EndedTask, Fence, PartitionId, Place, Task, TaskId, Timestamp};

use super::rows::{BucketRow, IdentityRow};
use super::txn::{Rows, Txn};
use super::{OrderedKv, keys, read_owner};
use crate::news::attempt_is_news;
use crate::place::{BucketId, birth_place, hour_of};
use crate::{Held, Recorded, StoreError};

/// No change reads and writes more keys than this.
pub(super) const CHANGE_MAX: usize = 24;
/// How often a write is tried again when something it read has changed. Each time, somebody else got on.
const TRIES_MAX: usize = 100;

/// Records the changes of one fence.
pub(super) async fn record<K: OrderedKv>(kv: &K, fence: Fence, mut changes: &[Change]) -> Recorded {
    let mut is_begun = false;
    loop {
        match record_some(kv, fence, changes).await {
            Ok(Some(written)) if written == changes.len() => return Recorded::Done,
            Ok(Some(written)) => changes = &changes[written..],
            // What was written before is a prefix that stays.
            Ok(None) if is_begun => return Recorded::Unknown,
            Ok(None) => return Recorded::Fenced,
            Err(_) => return Recorded::Unknown,
        }
        is_begun = true;
    }
}

/// Records as many changes as fit into one write, and answers how many; `None` when the fence is old.
async fn record_some<K: OrderedKv>(
    kv: &K,
    fence: Fence,
    changes: &[Change],
) -> Result<Option<usize>, StoreError> {
    for _ in 0..TRIES_MAX {
        let mut txn = Txn::new(kv);
        if !read_owner(&mut txn, fence.partition).await?.admits(fence) {
            return Ok(None);
        }
        let written = write_all(&mut txn, fence.partition, changes, kv.write_max()).await?;
        if txn.commit().await? {
            return Ok(Some(written));
        }
    }
    Err(StoreError::Unavailable("others wrote the same rows again and again".into()))
}

async fn write_all<K: OrderedKv>(
    txn: &mut Txn<'_, K>,
    partition: PartitionId,
    changes: &[Change],
    write_max: usize,
) -> Result<usize, StoreError> {
    let fits = write_max.saturating_sub(CHANGE_MAX);
    if write_max == usize::MAX {
        txn.prefetch(changes.iter().flat_map(|change| keys_of(partition, change)).collect()).await?;
    }
    for (written, change) in changes.iter().enumerate() {
        if written > 0 && txn.size() > fits {
            return Ok(written);
        }
        Writer { rows: &mut *txn, partition }.write(change).await?;
    }
    Ok(changes.len())
}

/// The keys that a change of a task reads for certain.
fn keys_of(p: PartitionId, change: &Change) -> Vec<bytes::Bytes> {
    let (id, place) = match change {
        Change::Accepted(task) | Change::Revived(task) => (task.id, birth_place(&task.id)),
        Change::Refiled { from, task, .. } | Change::Ended { from, task, .. } => (task.id, *from),
        _ => return Vec::new(),
    };
    vec![keys::moved(p, id.seq), keys::ended(p, &id), keys::place(p, place)]
}

/// Turns changes into rows of one partition.
pub(crate) struct Writer<'a, R> {
    pub rows: &'a mut R,
    pub partition: PartitionId,
}

impl<R: Rows> Writer<'_, R> {
    pub async fn write(&mut self, change: &Change) -> Result<(), StoreError> {
        let p = self.partition;
        if let Change::Refiled { task, .. } | Change::Ended { task, .. } | Change::Revived(task) = change {
            self.rows.is_new(p, task.id.seq);
        }
        match change {
            Change::Accepted(task) => self.accept(task).await?,
            Change::Refiled { from, task, .. } => self.refile(*from, task).await?,
            Change::Began { id, place, attempts, crashes, begun } => {
                self.begin(id, *place, *attempts, *crashes, *begun).await?;
            }
            Change::Ended { from, task, end } => self.end(*from, task, end).await?,
            Change::Revived(task) => self.revive(task).await?,
            Change::Held { obstacle, holder } => {
                let row = Held { obstacle: *obstacle, holder: *holder };
                self.rows.put(keys::held(p, *obstacle), &row);
            }
            Change::Cleared(obstacle) => self.rows.delete(keys::held(p, *obstacle)),
            Change::LowWater(window, at) => {
                let key = keys::low_water(p, *window);
                let mark = self.rows.row(&key).await?.map_or(Timestamp::MIN, |(_, mark)| mark);
                self.rows.put(key, &(*window, mark.max(*at)));
            }
            Change::Schedule(name, Some(row)) => self.rows.put_bytes(keys::schedule(p, name), row.clone()),
            Change::Schedule(name, None) => self.rows.delete(keys::schedule(p, name)),
        }
        Ok(())
    }

    async fn accept(&mut self, task: &Task) -> Result<(), StoreError> {
        if self.rows.is_new(self.partition, task.id.seq) {
            return self.accept_new(task);
        }
        if self.knows(task).await? {
            return Ok(());
        }
        if let Some(identity) = task.spec.identity(task.id.queue) {
            let key = keys::identity(self.partition, identity);
            let row: Option<IdentityRow> = self.rows.row(&key).await?;
            if row.is_some_and(|row| row.id == task.id && row.ended.is_some()) {
                return Ok(());
            }
            self.rows.put(key, &IdentityRow { id: task.id, ended: None });
        }
        self.file(task, None).await
    }

    /// Nothing is known of a task of this number: nothing need be looked for.
    fn accept_new(&mut self, task: &Task) -> Result<(), StoreError> {
        if let Some(identity) = task.spec.identity(task.id.queue) {
            let row = IdentityRow { id: task.id, ended: None };
            self.rows.put(keys::identity(self.partition, identity), &row);
        }
        self.put_row(task, true);
        if task.place() != birth_place(&task.id) {
            self.rows.put(keys::moved(self.partition, task.id.seq), &task.place());
        }
        self.note_lease(&task.id, task.begun, None);
        Ok(())
    }

    async fn refile(&mut self, from: Place, task: &Task) -> Result<(), StoreError> {
        // Most rows lie where they are thought to lie. What has a row has not ended.
        if let Some(old) = self.at(from, &task.id).await? {
            if old.revision < task.revision {
                self.move_row(&old, task);
            }
            return Ok(());
        }
        if self.knows(task).await? {
            return Ok(());
        }
        let old = self.present(&task.id).await?;
        self.clear(from);
        self.file(task, old.as_ref()).await
    }

    async fn begin(
        &mut self,
        id: &TaskId,
        place: Place,
        attempts: u32,
        crashes: u16,
        begun: Begun,
    ) -> Result<(), StoreError> {
        let key = keys::place(self.partition, place);
        let row: Option<Task> = self.rows.row(&key).await?;
        if let Some(row) = row.filter(|row| row.id == *id && attempt_is_news(row, attempts)) {
            let begun = Some(begun);
            self.note_lease(id, begun, row.begun);
            self.rows.put(key, &Task { attempts, crashes, begun, ..row });
        }
        Ok(())
    }

    async fn end(&mut self, from: Place, task: &Task, end: &End) -> Result<(), StoreError> {
        let row = match self.at(from, &task.id).await? {
            Some(row) => Some(row),
            None => self.present(&task.id).await?,
        };
        let key = keys::ended(self.partition, &task.id);
        let before: Option<EndedTask> = if row.is_some() { None } else { self.rows.row(&key).await? };
        let is_known = row.as_ref().is_some_and(|row| row.revision > task.revision)
            || before.as_ref().is_some_and(|before| before.task.revision >= task.revision);
        if is_known {
            return Ok(());
        }
        if let Some(before) = before {
            self.forget_bytes(&before).await?;
        }
        let ended = EndedTask { task: task.clone(), end: end.clone() };
        // A task that was never refiled was never revived either, and has not ended before.
        if task.revision == 1 {
            self.rows.put_new(key, &ended)
        } else {
            self.rows.put(key, &ended)
        }
        self.note_end(task, end).await?;
        self.mark_identity(task, end).await?;
        let place = row.as_ref().map_or(from, Task::place);
        self.clear(place);
        if from != place {
            self.clear(from);
        }
        if row.is_none() || place != birth_place(&task.id) {
            self.rows.delete(keys::moved(self.partition, task.id.seq));
        }
        self.note_lease(&task.id, None, row.and_then(|row| row.begun));
        Ok(())
    }

    /// Keeps, beside the bucket, when it may be dropped, and how large it is.
    async fn note_end(&mut self, task: &Task, end: &End) -> Result<(), StoreError> {
        let bucket = BucketId::of(&task.id);
        let key = keys::bucket(self.partition, bucket);
        let noted = BucketRow::noting(bucket.hour, task, end);
        let known: Option<BucketRow> = self.rows.row(&key).await?;
        self.rows.put(key, &known.map_or(noted.clone(), |known| known.and(&noted)));
        Ok(())
    }

    /// Its end leaves the bucket.
    async fn forget_bytes(&mut self, ended: &EndedTask) -> Result<(), StoreError> {
        let key = keys::bucket(self.partition, BucketId::of(&ended.task.id));
        let known: Option<BucketRow> = self.rows.row(&key).await?;
        if let Some(row) = known {
            let bytes = row.bytes.saturating_sub(EndedTask::kept_bytes(&ended.task, &ended.end));
            self.rows.put(key, &BucketRow { bytes, ..row });
        }
        Ok(())
    }

    async fn mark_identity(&mut self, task: &Task, end: &End) -> Result<(), StoreError> {
        let Some(identity) = task.spec.identity(task.id.queue) else {
            return Ok(());
        };
        let key = keys::identity(self.partition, identity);
        let row: Option<IdentityRow> = self.rows.row(&key).await?;
        if row.is_none_or(|row| row.id == task.id) {
            self.rows.put(key, &IdentityRow { id: task.id, ended: Some((end.state, end.at)) });
            let hour = hour_of(end.at);
            self.rows.put(keys::ended_identity(self.partition, task.id.queue, hour, identity), &task.id);
        }
        Ok(())
    }

    async fn revive(&mut self, task: &Task) -> Result<(), StoreError> {
        let key = keys::ended(self.partition, &task.id);
        let ended: Option<EndedTask> = self.rows.row(&key).await?;
        let row = self.present(&task.id).await?;
        let known = ended.as_ref().map(|ended| ended.task.revision).max(row.as_ref().map(|row| row.revision));
        if known >= Some(task.revision) {
            return Ok(());
        }
        if let Some(ended) = ended {
            self.forget_bytes(&ended).await?;
        }
        self.rows.delete(key);
        if let Some(identity) = task.spec.identity(task.id.queue) {
            let row = IdentityRow { id: task.id, ended: None };
            self.rows.put(keys::identity(self.partition, identity), &row);
        }
        self.file(task, row.as_ref()).await
    }

    /// Whether the task is there in this revision or a later one, or has ended.
    async fn knows(&mut self, task: &Task) -> Result<bool, StoreError> {
        let ended = self.rows.get(&keys::ended(self.partition, &task.id)).await?;
        let row = self.present(&task.id).await?;
        Ok(ended.is_some() || row.is_some_and(|row| row.revision >= task.revision))
    }

    /// The task's row, where it lies now.
    async fn present(&mut self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        let moved = self.rows.row(&keys::moved(self.partition, id.seq)).await?;
        self.at(moved.unwrap_or_else(|| birth_place(id)), id).await
    }

    /// The task's row, if it lies there.
    async fn at(&mut self, place: Place, id: &TaskId) -> Result<Option<Task>, StoreError> {
        let row: Option<Task> = self.rows.row(&keys::place(self.partition, place)).await?;
        Ok(row.filter(|row| row.id == *id))
    }

    /// Puts the row where it belongs, and takes the old one away.
    async fn file(&mut self, task: &Task, old: Option<&Task>) -> Result<(), StoreError> {
        let (p, place) = (self.partition, task.place());
        if let Some(old) = old {
            self.clear(old.place());
        }
        self.put_row(task, false);
        let moved = keys::moved(p, task.id.seq);
        if place != birth_place(&task.id) {
            self.rows.put(moved, &place);
        } else if self.rows.get(&moved).await?.is_some() {
            self.rows.delete(moved);
        }
        self.note_lease(&task.id, task.begun, old.and_then(|old| old.begun));
        Ok(())
    }

    /// As [`Writer::file`], of a row that was found: then nothing more need be looked for.
    fn move_row(&mut self, old: &Task, task: &Task) {
        self.clear(old.place());
        self.put_row(task, false);
        let (moved, birth) = (keys::moved(self.partition, task.id.seq), birth_place(&task.id));
        if task.place() != birth {
            self.rows.put(moved, &task.place());
        } else if old.place() != birth {
            self.rows.delete(moved);
        }
        self.note_lease(&task.id, task.begun, old.begun);
    }

    fn put_row(&mut self, task: &Task, is_new: bool) {
        let (p, place) = (self.partition, task.place());
        let key = keys::place(p, place);
        if is_new {
            self.rows.put_new(key, task)
        } else {
            self.rows.put(key, task)
        }
        if let Place::Parked(obstacle, key) = place {
            self.rows.put(keys::parked_order(p, obstacle, key), &place);
        }
    }

    fn clear(&mut self, place: Place) {
        self.rows.delete(keys::place(self.partition, place));
        if let Place::Parked(obstacle, key) = place {
            self.rows.delete(keys::parked_order(self.partition, obstacle, key));
        }
    }

    fn note_lease(&mut self, id: &TaskId, now: Option<Begun>, before: Option<Begun>) {
        let has_lease = |begun: Option<Begun>| begun.is_some_and(|begun| begun.lease.is_some());
        let key = keys::leased(self.partition, id.seq);
        match (has_lease(before), has_lease(now)) {
            (_, true) => self.rows.put(key, id),
            (true, false) => self.rows.delete(key),
            (false, false) => {}
        }
    }
}
