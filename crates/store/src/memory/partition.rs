//! One partition: its changes, applied row by row in an order that leaves nothing wrong when it is cut.
//!
//! The order within a change is part of the contract with the simulator, which cuts it anywhere:
//! what makes the change true comes last of what is added, and what is removed comes after it.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use punctual_core::{
    Change, End, EndedTask, Epoch, Fence, Obstacle, Place, QueueId, RowKey, Task, TaskId, Timestamp, WindowId,
};

use super::history::History;
use super::ops::{Cut, Ops};
use super::rows::Rows;
use crate::place::{BucketId, birth_place};
use crate::{Claim, Found, Held, Loaded, Pruned, Query, Retention, Standing, StoreError, WindowStanding};

/// All that is kept of one partition.
#[derive(Default)]
pub(super) struct Partition {
    pub epoch: Epoch,
    pub owner: Option<Box<str>>,
    pub rows: Rows,
    pub history: History,
    /// Every number at or above this is new, so that most tasks need not be looked for.
    unseen: u64,
    held: BTreeMap<Obstacle, Option<TaskId>>,
    low_water: BTreeMap<WindowId, Timestamp>,
    schedules: BTreeMap<Box<str>, Bytes>,
}

impl Partition {
    pub fn claim(&mut self, seen: Epoch, owner: &str) -> Claim {
        if self.epoch != seen {
            return Claim::Lost(self.epoch);
        }
        self.epoch = Epoch(seen.0 + 1);
        self.owner = Some(owner.into());
        Claim::Won(self.epoch)
    }

    pub fn check(&self, fence: Fence) -> Result<(), StoreError> {
        // Nobody has won epoch 0: it is what a partition has before its first claim.
        let is_owner = fence.epoch == self.epoch && fence.epoch != Epoch(0);
        if is_owner { Ok(()) } else { Err(StoreError::Fenced) }
    }

    pub fn apply(&mut self, change: &Change, ops: &mut Ops) -> Result<(), Cut> {
        match change {
            Change::Accepted(task) => return self.accept(task, ops),
            Change::Refiled { from, task, .. } => return self.refile(*from, task, ops),
            Change::Ended { from, task, end } => return self.end(*from, task, end, ops),
            Change::Revived(task) => return self.revive(task, ops),
            _ => ops.spend()?,
        }
        match change {
            Change::Began { id, place, attempts, crashes, begun } => {
                self.rows.begin(id, *place, *attempts, *crashes, *begun);
            }
            Change::Held { obstacle, holder } => drop(self.held.insert(*obstacle, *holder)),
            Change::Cleared(obstacle) => drop(self.held.remove(obstacle)),
            Change::LowWater(window, at) => self.raise_low_water(*window, *at),
            Change::Schedule(name, Some(row)) => drop(self.schedules.insert(name.clone(), row.clone())),
            Change::Schedule(name, None) => drop(self.schedules.remove(name)),
            _ => {}
        }
        Ok(())
    }

    fn raise_low_water(&mut self, window: WindowId, at: Timestamp) {
        let mark = self.low_water.entry(window).or_default();
        *mark = (*mark).max(at);
    }

    /// The identity comes first: one that points at no row is nobody's, and does no harm.
    fn accept(&mut self, task: &Task, ops: &mut Ops) -> Result<(), Cut> {
        let identity = task.spec.identity(task.id.queue);
        if !self.is_new(task) {
            let ended = identity.and_then(|identity| self.history.identity(identity));
            let ended = ended.is_some_and(|row| row.id == task.id && row.ended.is_some());
            if ended || self.knows(task) {
                return Ok(());
            }
        }
        if let Some(identity) = identity {
            ops.spend()?;
            self.history.identify(identity, task.id);
        }
        self.file(task, ops)
    }

    fn refile(&mut self, from: Place, task: &Task, ops: &mut Ops) -> Result<(), Cut> {
        if !self.is_new(task) && self.knows(task) {
            return Ok(());
        }
        let old = self.rows.place_of(&task.id);
        self.file(task, ops)?;
        for place in [old, from] {
            if place != task.place() {
                self.remove(place, &task.id, ops)?;
            }
        }
        Ok(())
    }

    /// The end comes first, and hides whatever rows are left.
    fn end(&mut self, from: Place, task: &Task, end: &End, ops: &mut Ops) -> Result<(), Cut> {
        self.is_new(task);
        let revived = self.rows.find(&task.id).is_some_and(|row| row.revision > task.revision);
        if revived || !self.history.end(task, end, ops)? {
            return Ok(());
        }
        self.mark_identity(task, end, ops)?;
        self.clear_rows(from, &task.id, ops)
    }

    fn mark_identity(&mut self, task: &Task, end: &End, ops: &mut Ops) -> Result<(), Cut> {
        if let Some(identity) = task.spec.identity(task.id.queue) {
            ops.spend()?;
            self.history.mark_identity(identity, task, end);
        }
        Ok(())
    }

    /// Removes all rows a task can have: where it lies, where it was thought to lie, and where it was born.
    fn clear_rows(&mut self, from: Place, id: &TaskId, ops: &mut Ops) -> Result<(), Cut> {
        let moved = self.rows.moved_to(id);
        let birth = birth_place(id);
        self.remove(birth, id, ops)?;
        if from != birth {
            self.remove(from, id, ops)?;
        }
        if let Some(moved) = moved {
            self.remove(moved, id, ops)?;
            ops.spend()?;
            self.rows.point(id, birth);
        }
        self.rows.forget_lease(id.seq);
        Ok(())
    }

    /// The end is taken back last: until then the row does not count.
    fn revive(&mut self, task: &Task, ops: &mut Ops) -> Result<(), Cut> {
        let known = |revision: u32| revision >= task.revision;
        if self.history.find(&task.id).is_some_and(|ended| known(ended.task.revision))
            || (!self.history.has(&task.id)
                && self.rows.find(&task.id).is_some_and(|row| known(row.revision)))
        {
            return Ok(());
        }
        self.is_new(task);
        self.file(task, ops)?;
        if let Some(identity) = task.spec.identity(task.id.queue) {
            ops.spend()?;
            self.history.identify(identity, task.id);
        }
        ops.spend()?;
        self.history.remove(&task.id);
        Ok(())
    }

    /// Whether nothing can be known of this task yet. From now on something may.
    fn is_new(&mut self, task: &Task) -> bool {
        let is_new = task.id.seq.0 >= self.unseen;
        if is_new {
            self.unseen = task.id.seq.0.saturating_add(1);
        }
        is_new
    }

    /// Whether the task is there in this revision or a later one, or has ended.
    fn knows(&self, task: &Task) -> bool {
        self.rows.find(&task.id).is_some_and(|row| row.revision >= task.revision)
            || self.history.has(&task.id)
    }

    /// Writes the row, then points at it: only then does it count.
    fn file(&mut self, task: &Task, ops: &mut Ops) -> Result<(), Cut> {
        let place = task.place();
        ops.spend()?;
        self.rows.insert(place, task.clone());
        if self.rows.place_of(&task.id) != place {
            ops.spend()?;
            self.rows.point(&task.id, place);
        }
        Ok(())
    }

    fn remove(&mut self, place: Place, id: &TaskId, ops: &mut Ops) -> Result<(), Cut> {
        debug_assert_eq!(key_of(place).seq, id.seq, "a number belongs to one task");
        if ops.0 == 0 {
            return Err(Cut);
        }
        ops.0 -= usize::from(self.rows.remove(place));
        Ok(())
    }

    pub fn standing(&self) -> Standing {
        let mut windows: BTreeMap<WindowId, WindowStanding> = BTreeMap::new();
        let empty = |window| WindowStanding { window, low_water: Timestamp::MIN, first: None };
        for (window, _) in self.rows.windows() {
            let first = self.live_in(window, RowKey::FIRST).next().map(|task| task.wake_at);
            if first.is_some() {
                windows.insert(window, WindowStanding { first, ..empty(window) });
            }
        }
        for (window, at) in &self.low_water {
            windows.entry(*window).or_insert_with(|| empty(*window)).low_water = *at;
        }
        let leased = self.rows.leased().filter(|task| self.is_live(task)).cloned().collect();
        Standing { windows: windows.into_values().collect(), leased }
    }

    pub fn held(&self, after: Option<Obstacle>, limit: usize) -> Vec<Held> {
        let rows = self.held.range((just_after(after.as_ref()), Bound::Unbounded)).take(limit);
        rows.map(|(obstacle, holder)| Held { obstacle: *obstacle, holder: *holder }).collect()
    }

    pub fn load(&self, window: WindowId, from: RowKey, until: Timestamp, limit: usize) -> Loaded {
        let mut loaded = Loaded::default();
        for task in self.live_in(window, from) {
            if task.wake_at >= until || loaded.tasks.len() == limit {
                loaded.next = Some(task.wake_at);
                break;
            }
            loaded.tasks.push(task.clone());
        }
        loaded
    }

    pub fn parked(&self, obstacle: Obstacle, from: RowKey, limit: usize) -> Vec<Task> {
        let rows = self.rows.under(obstacle, from).filter(|task| self.is_live(task));
        rows.take(limit).cloned().collect()
    }

    pub fn find(&self, query: Query) -> Option<Found> {
        match query {
            Query::Id(id) => self.find_id(&id),
            Query::Identity(identity) => {
                let row = self.history.identity(identity)?;
                let forgotten = || row.ended.map(|(state, _)| Found::Forgotten { id: row.id, state });
                self.find_id(&row.id).or_else(forgotten)
            }
        }
    }

    fn find_id(&self, id: &TaskId) -> Option<Found> {
        if let Some(ended) = self.history.find(id) {
            return Some(Found::Ended(ended.clone()));
        }
        self.rows.find(id).cloned().map(Found::Live)
    }

    pub fn prune(&mut self, queue: QueueId, retention: Retention, buckets_max: usize) -> Pruned {
        let mut pruned = Pruned::default();
        while pruned.buckets < buckets_max {
            let Some(bucket) = self.history.first_past(queue, retention) else { break };
            self.drop_bucket(bucket);
            pruned.buckets += 1;
        }
        let bytes_max = retention.bytes_max.unwrap_or(u64::MAX);
        while pruned.buckets < buckets_max
            && self.history.bytes(queue) > bytes_max
            && let Some(oldest) = self.history.first(queue)
        {
            let gone = self.history.cut_bucket(oldest, self.history.bytes(queue) - bytes_max);
            self.finish_ends(gone.iter());
            pruned.buckets += 1;
        }
        pruned.bytes = self.history.bytes(queue);
        let more_identities = self.history.forget_identities(queue, retention.identity_before);
        pruned.more = more_identities
            || pruned.bytes > bytes_max
            || self.history.first_past(queue, retention).is_some();
        pruned.next_in = self.history.next_past(queue, retention);
        pruned
    }

    fn drop_bucket(&mut self, bucket: BucketId) {
        let bucket = self.history.drop_bucket(bucket).unwrap_or_default();
        self.finish_ends(bucket.rows.values().map(|ended| &**ended));
    }

    /// Finishes what was cut when these tasks ended: without their history nothing would hide their rows.
    fn finish_ends<'a>(&mut self, gone: impl Iterator<Item = &'a EndedTask>) {
        let mut ops = Ops(usize::MAX);
        for ended in gone {
            let place = ended.task.place();
            let marked = self.mark_identity(&ended.task, &ended.end, &mut ops);
            let cleared = self.clear_rows(place, &ended.task.id, &mut ops);
            assert!(marked.is_ok() && cleared.is_ok(), "nothing cuts a prune");
        }
    }

    pub fn schedules(&self, after: Option<&str>, limit: usize) -> Vec<(Box<str>, Bytes)> {
        let rows = self.schedules.range::<str, _>((just_after(after), Bound::Unbounded)).take(limit);
        rows.map(|(name, row)| (name.clone(), row.clone())).collect()
    }

    pub fn live_in(&self, window: WindowId, from: RowKey) -> impl Iterator<Item = &Task> {
        self.rows.window(window, from).filter(|task| self.is_live(task))
    }

    /// Whether no end of it is recorded. Rows of tasks that have ended are left when a write was cut.
    pub fn is_live(&self, task: &Task) -> bool {
        !self.history.has(&task.id)
    }
}

/// Where a page begins that follows `last`.
pub(super) fn just_after<K: ?Sized>(last: Option<&K>) -> Bound<&K> {
    last.map_or(Bound::Unbounded, Bound::Excluded)
}

fn key_of(place: Place) -> RowKey {
    match place {
        Place::Window(_, key) | Place::Parked(_, key) => key,
    }
}
