//! The fast store: everything in memory, gone with the process. The simulator and the tests run on it.
//!
//! One lock guards the whole store and is taken once per batch: there is one loop per node that writes, and
//! what it writes takes less than a microsecond per task. It keeps every promise of the contract but C1.

mod history;
mod listing;
mod map;
mod ops;
mod partition;
mod rows;

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use punctual_core::{
    Change, Epoch, Fence, Obstacle, PartitionId, QueueId, RowKey, Task, Timestamp, WindowId,
};

use self::map::CoordinationMap;
use self::ops::Ops;
use self::partition::Partition;
use crate::{
    Claim, Filter, Found, Held, Loaded, MapEntry, Meta, Ownership, Page, PageKey, Pruned, Query, Recorded,
    Retention, Standing, Store, StoreError, Swap, Tear, TearableStore,
};

/// A store in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
}

struct State {
    partitions: Vec<Partition>,
    map: CoordinationMap,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(partitions: u16) -> MemoryStore {
        let partitions = (0..partitions).map(|_| Partition::default()).collect();
        MemoryStore { state: Arc::new(Mutex::new(State { partitions, map: CoordinationMap::default() })) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the store")
    }

    fn read<T>(&self, partition: PartitionId, read: impl FnOnce(&Partition) -> T) -> Result<T, StoreError> {
        self.state().partition(partition).map(|partition| read(partition))
    }
}

impl State {
    fn partition(&mut self, id: PartitionId) -> Result<&mut Partition, StoreError> {
        let count = self.partitions.len();
        let missing = || StoreError::Corrupt(format!("no partition {} among {count}", id.0).into());
        self.partitions.get_mut(usize::from(id.0)).ok_or_else(missing)
    }

    fn record(&mut self, fence: Fence, changes: &[Change], tear: Tear) -> Recorded {
        let Some(partition) = self.partitions.get_mut(usize::from(fence.partition.0)) else {
            return Recorded::Fenced;
        };
        if partition.check(fence).is_err() {
            return Recorded::Fenced;
        }
        let mut ops = Ops(match tear {
            Tear::Whole => usize::MAX,
            Tear::After(row_ops) => row_ops,
        });
        let cut = changes.iter().try_for_each(|change| partition.apply(change, &mut ops));
        match (tear, cut) {
            (Tear::Whole, Ok(())) => Recorded::Done,
            _ => Recorded::Unknown,
        }
    }
}

impl TearableStore for MemoryStore {
    async fn record_torn(&self, batch: &[(Fence, Vec<Change>)], tears: &[Tear]) -> Vec<Recorded> {
        assert_eq!(batch.len(), tears.len(), "one tear per fence");
        let mut state = self.state();
        let torn = batch.iter().zip(tears);
        torn.map(|((fence, changes), tear)| state.record(*fence, changes, *tear)).collect()
    }
}

impl Store for MemoryStore {
    async fn meta(&self) -> Result<Meta, StoreError> {
        let partitions = u16::try_from(self.state().partitions.len()).expect("it was made from a u16");
        Ok(Meta { partitions, format: 1, atomic: true })
    }

    async fn ownerships(&self) -> Result<Vec<Ownership>, StoreError> {
        let state = self.state();
        let numbered = (0..).map(PartitionId).zip(&state.partitions);
        Ok(numbered
            .map(|(id, it)| Ownership { partition: id, epoch: it.epoch, owner: it.owner.clone() })
            .collect())
    }

    async fn claim(&self, partition: PartitionId, seen: Epoch, owner: &str) -> Result<Claim, StoreError> {
        Ok(self.state().partition(partition)?.claim(seen, owner))
    }

    async fn release(&self, fence: Fence) -> Result<(), StoreError> {
        let mut state = self.state();
        let partition = state.partition(fence.partition)?;
        partition.check(fence)?;
        partition.owner = None;
        Ok(())
    }

    async fn record(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
        let mut state = self.state();
        batch.iter().map(|(fence, changes)| state.record(*fence, changes, Tear::Whole)).collect()
    }

    async fn standing(&self, partition: PartitionId) -> Result<Standing, StoreError> {
        self.read(partition, Partition::standing)
    }

    async fn held(
        &self,
        partition: PartitionId,
        after: Option<Obstacle>,
        limit: usize,
    ) -> Result<Vec<Held>, StoreError> {
        self.read(partition, |it| it.held(after, limit))
    }

    async fn load(
        &self,
        partition: PartitionId,
        window: WindowId,
        from: RowKey,
        until: Timestamp,
        limit: usize,
    ) -> Result<Loaded, StoreError> {
        self.read(partition, |it| it.load(window, from, until, limit))
    }

    async fn parked(
        &self,
        partition: PartitionId,
        obstacle: Obstacle,
        from: RowKey,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError> {
        self.read(partition, |it| it.parked(obstacle, from, limit))
    }

    async fn find(
        &self,
        partition: PartitionId,
        queries: &[Query],
    ) -> Result<Vec<Option<Found>>, StoreError> {
        self.read(partition, |it| queries.iter().map(|query| it.find(*query)).collect())
    }

    async fn list(&self, filter: &Filter, from: Option<PageKey>, limit: usize) -> Result<Page, StoreError> {
        Ok(listing::list(&self.state().partitions, filter, from, limit))
    }

    async fn prune(
        &self,
        fence: Fence,
        queue: QueueId,
        retention: Retention,
        buckets_max: usize,
    ) -> Result<Pruned, StoreError> {
        let mut state = self.state();
        let partition = state.partition(fence.partition)?;
        partition.check(fence)?;
        Ok(partition.prune(queue, retention, buckets_max))
    }

    async fn schedules(
        &self,
        partition: PartitionId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Box<str>, Bytes)>, StoreError> {
        self.read(partition, |it| it.schedules(after, limit))
    }

    async fn get(&self, now: Timestamp, key: &str) -> Result<Option<MapEntry>, StoreError> {
        Ok(self.state().map.get(now, key))
    }

    async fn entries(
        &self,
        now: Timestamp,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Box<str>, MapEntry)>, StoreError> {
        Ok(self.state().map.entries(now, prefix, after, limit))
    }

    async fn compare_and_set(
        &self,
        now: Timestamp,
        key: &str,
        expected: Option<u64>,
        value: Option<Bytes>,
        expires_at: Option<Timestamp>,
    ) -> Result<Swap, StoreError> {
        Ok(self.state().map.compare_and_set(now, key, expected, value, expires_at))
    }
}
