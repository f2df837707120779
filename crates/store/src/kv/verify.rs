//! Looks at every row and asks whether it can be right: readable, where it belongs, and at one with the others.

use std::fmt::Display;

use bytes::Bytes;
use punctual_core::{EndState, EndedTask, Identity, PartitionId, Place, Task, TaskId, Timestamp, WindowId};

use super::keys::Table;
use super::rows::{BucketRow, IdentityRow, MapRow, MetaRow, OwnerRow, Row, VersionRow, decode};
use super::{OrderedKv, SCAN_MAX, keys};
use crate::place::{BucketId, birth_place};
use crate::{Held, StoreError};

/// So many problems are described; more are counted.
const DESCRIBED_MAX: usize = 100;

/// What was found in a store.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Rows of all kinds.
    pub rows: u64,
    /// Tasks that wait, or run.
    pub live: u64,
    /// Tasks that have ended.
    pub ended: u64,
    /// How many things are wrong.
    pub problems: u64,
    /// The first of them, in words.
    pub described: Vec<String>,
}

impl Report {
    fn problem(&mut self, what: impl Display) {
        self.problems += 1;
        if self.described.len() < DESCRIBED_MAX {
            self.described.push(what.to_string());
        }
    }
}

/// Reads every row of a store that nobody writes to meanwhile. `progress` is told now and then.
pub(crate) async fn verify<K: OrderedKv>(
    kv: &K,
    partitions: u16,
    progress: &mut (dyn FnMut(&Report) + Send),
) -> Result<Report, StoreError> {
    let mut verifier = Verifier { kv, partitions, report: Report::default(), low_water: None };
    let (mut from, until) = (Bytes::new(), keys::ROWS_END);
    // It is the first row that is ever written: without it a store is new, and has no other.
    let has_meta = kv.get(&keys::META).await?.is_some();
    loop {
        let page = kv.scan(&from, &until, SCAN_MAX).await?;
        if !has_meta && from.is_empty() && !page.is_empty() {
            verifier.report.problem("the row that says what the store is is missing");
        }
        for (key, value) in &page {
            verifier.look(key, value).await?;
        }
        progress(&verifier.report);
        match page.last() {
            Some((last, _)) if page.len() == SCAN_MAX => from = keys::just_after(last),
            _ => return Ok(verifier.report),
        }
    }
}

struct Verifier<'a, K> {
    kv: &'a K,
    partitions: u16,
    report: Report,
    /// The mark of the window that was looked at last.
    low_water: Option<(PartitionId, WindowId, Timestamp)>,
}

impl<K: OrderedKv> Verifier<'_, K> {
    async fn look(&mut self, key: &Bytes, value: &Bytes) -> Result<(), StoreError> {
        self.report.rows += 1;
        match keys::kind_of(key) {
            keys::Kind::Meta => {
                let meta: Option<MetaRow> = self.read(key, value);
                if meta.is_some_and(|meta| meta.partitions != self.partitions) {
                    self.report
                        .problem(format!("the store was not made with {} partitions", self.partitions));
                }
            }
            keys::Kind::MapVersion => _ = self.read::<VersionRow>(key, value),
            keys::Kind::Ownership => _ = self.read::<OwnerRow>(key, value),
            keys::Kind::Map(name) => self.look_at_map(key, name, value).await?,
            keys::Kind::MapExpiry(name) => {
                let row = self.kv.get(&keys::map(name).done()).await?;
                self.expect(row.is_some(), || format!("map entry `{name}` expires, and is not there"));
            }
            keys::Kind::Table(partition, table) if partition.0 < self.partitions => {
                self.look_at_table(partition, table, key, value).await?;
            }
            keys::Kind::Table(..) | keys::Kind::Unknown => {
                self.report.problem(format!("nobody knows what the row {} is", hex(key)));
            }
        }
        Ok(())
    }

    async fn look_at_table(
        &mut self,
        p: PartitionId,
        table: Table,
        key: &Bytes,
        value: &Bytes,
    ) -> Result<(), StoreError> {
        match table {
            Table::Windows | Table::Parked => {
                if let Some(task) = self.read::<Task>(key, value) {
                    self.report.live += 1;
                    self.look_at_task(p, key, &task).await?;
                }
            }
            Table::ParkedOrder | Table::Moved => {
                if let Some(place) = self.read::<Place>(key, value) {
                    self.look_at_place(p, table, key, place).await?;
                }
            }
            Table::Leased => {
                if let Some(id) = self.read::<TaskId>(key, value) {
                    let task = self.live(p, &id).await?;
                    let has_lease = |task: Task| task.begun.is_some_and(|begun| begun.lease.is_some());
                    self.expect(task.is_some_and(has_lease), || {
                        format!("task {id} is said to be leased, and is not")
                    });
                }
            }
            Table::Ended => {
                if let Some(ended) = self.read::<EndedTask>(key, value) {
                    self.report.ended += 1;
                    self.look_at_ended(p, key, &ended).await?;
                }
            }
            Table::Identities => {
                if let Some(row) = self.read::<IdentityRow>(key, value) {
                    let is_right = row.ended.is_some() || self.live(p, &row.id).await?.is_some();
                    self.expect(is_right, || format!("task {} has a unique key, and is not there", row.id));
                }
            }
            Table::Buckets => _ = self.read::<BucketRow>(key, value),
            Table::EndedIdentities => _ = self.read::<TaskId>(key, value),
            Table::Held => {
                let row: Option<Held> = self.read(key, value);
                let is_right = row.is_none_or(|row| keys::held(p, row.obstacle) == *key);
                self.expect(is_right, || format!("the obstacle of {} is another one", hex(key)));
            }
            Table::LowWater => {
                let row: Option<(WindowId, Timestamp)> = self.read(key, value);
                let is_right = row.is_none_or(|(window, _)| keys::low_water(p, window) == *key);
                self.expect(is_right, || format!("the mark of {} is of another window", hex(key)));
            }
            Table::Schedules => {
                let has_name = keys::schedule_name(key).is_some();
                self.expect(has_name, || format!("the schedule {} has no name", hex(key)));
            }
        }
        Ok(())
    }

    async fn look_at_task(&mut self, p: PartitionId, key: &Bytes, task: &Task) -> Result<(), StoreError> {
        let (id, place) = (task.id, task.place());
        if keys::place(p, place) != *key {
            self.report.problem(format!("task {id} lies where it does not belong"));
            return Ok(());
        }
        let moved = self.kv.get(&keys::moved(p, id.seq)).await?;
        let moved = moved.and_then(|moved| decode::<Place>(&moved).ok());
        let expected = Some(place).filter(|place| *place != birth_place(&id));
        self.expect(moved == expected, || format!("task {id} cannot be found by its id"));
        let has_ended = self.kv.get(&keys::ended(p, &id)).await?.is_some();
        self.expect(!has_ended, || format!("task {id} waits, and has ended"));
        if let Place::Parked(obstacle, row) = place {
            let order = self.kv.get(&keys::parked_order(p, obstacle, row)).await?;
            self.expect(order.is_some(), || format!("task {id} is parked, and would not be listed"));
        }
        if task.begun.is_some_and(|begun| begun.lease.is_some()) {
            let leased = self.kv.get(&keys::leased(p, id.seq)).await?;
            self.expect(leased.is_some(), || {
                format!("task {id} is leased, and its lease would be forgotten")
            });
        }
        if let Some(identity) = task.spec.identity(id.queue) {
            self.look_at_identity(p, id, identity).await?;
        }
        if let Place::Window(window, row) = place {
            let mark = self.low_water(p, window).await?;
            self.expect(row.wake_at >= mark, || {
                format!("task {id} lies before its window's low-water mark, and would never run")
            });
        }
        Ok(())
    }

    async fn look_at_identity(
        &mut self,
        p: PartitionId,
        id: TaskId,
        identity: Identity,
    ) -> Result<(), StoreError> {
        let row = self.kv.get(&keys::identity(p, identity)).await?;
        let row = row.and_then(|row| decode::<IdentityRow>(&row).ok());
        let is_right = row.is_some_and(|row| row.id != id || row.ended.is_none());
        self.expect(is_right, || format!("task {id} has a unique key that others could take"));
        Ok(())
    }

    async fn look_at_place(
        &mut self,
        p: PartitionId,
        table: Table,
        key: &Bytes,
        place: Place,
    ) -> Result<(), StoreError> {
        let row = self.kv.get(&keys::place(p, place)).await?;
        let task = row.and_then(|row| decode::<Task>(&row).ok());
        let is_right = match (table, place, task) {
            (Table::Moved, _, Some(task)) => keys::moved(p, task.id.seq) == *key,
            (_, Place::Parked(obstacle, row), Some(_)) => keys::parked_order(p, obstacle, row) == *key,
            _ => false,
        };
        self.expect(is_right, || format!("the index row {} points to no task", hex(key)));
        Ok(())
    }

    async fn look_at_ended(
        &mut self,
        p: PartitionId,
        key: &Bytes,
        ended: &EndedTask,
    ) -> Result<(), StoreError> {
        let id = ended.task.id;
        self.expect(keys::ended(p, &id) == *key, || {
            format!("the end of task {id} lies where it does not belong")
        });
        let bucket = self.kv.get(&keys::bucket(p, BucketId::of(&id))).await?;
        let bucket = bucket.and_then(|bucket| decode::<BucketRow>(&bucket).ok());
        let newest = bucket.and_then(|bucket| match ended.end.state {
            EndState::Dead => bucket.newest_dead,
            EndState::Succeeded | EndState::Cancelled | EndState::Expired => bucket.newest_finished,
        });
        let is_kept = newest >= Some(ended.end.at.as_micros());
        self.expect(is_kept, || format!("the end of task {id} would be dropped too early, or never"));
        Ok(())
    }

    async fn look_at_map(&mut self, key: &Bytes, name: &str, value: &Bytes) -> Result<(), StoreError> {
        let expires_at = self.read::<MapRow>(key, value).and_then(|row| row.expires_at);
        if let Some(at) = expires_at {
            let expiry = self.kv.get(&keys::map_expiry(Timestamp::from_micros(at), name)).await?;
            self.expect(expiry.is_some(), || format!("map entry `{name}` would never expire"));
        }
        Ok(())
    }

    async fn low_water(&mut self, p: PartitionId, window: WindowId) -> Result<Timestamp, StoreError> {
        if let Some((of, its, mark)) = self.low_water
            && (of, its) == (p, window)
        {
            return Ok(mark);
        }
        let row = self.kv.get(&keys::low_water(p, window)).await?;
        let row = row.and_then(|row| decode::<(WindowId, Timestamp)>(&row).ok());
        let mark = row.map_or(Timestamp::MIN, |(_, mark)| mark);
        self.low_water = Some((p, window, mark));
        Ok(mark)
    }

    /// The task's row, where its id leads to.
    async fn live(&self, p: PartitionId, id: &TaskId) -> Result<Option<Task>, StoreError> {
        let moved = self.kv.get(&keys::moved(p, id.seq)).await?;
        let place = moved.and_then(|moved| decode::<Place>(&moved).ok()).unwrap_or_else(|| birth_place(id));
        let row = self.kv.get(&keys::place(p, place)).await?;
        Ok(row.and_then(|row| decode::<Task>(&row).ok()).filter(|task| task.id == *id))
    }

    fn read<R: Row>(&mut self, key: &Bytes, value: &Bytes) -> Option<R> {
        decode(value)
            .map_err(|error| {
                let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                self.report.problem(format!("the row {}: {why}", hex(key)));
            })
            .ok()
    }

    fn expect(&mut self, is_right: bool, otherwise: impl FnOnce() -> String) {
        if !is_right {
            self.report.problem(otherwise());
        }
    }
}

fn hex(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
