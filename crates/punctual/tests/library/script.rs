//! Stores that fail on command: faults by script, and one that lies about what it holds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use punctual::{MemoryStore, Store, StoreError};
use punctual_core::{
    Change, Epoch, Fence, Found, Held, Loaded, Obstacle, PartitionId, Query, QueueId, RowKey, Standing, Task,
    Timestamp, WindowId,
};
use punctual_store::faulty::{Call, Fate, Faults, Faulty, Verdict};
use punctual_store::{
    Claim, Filter, MapEntry, Meta, Ownership, Page, PageKey, Pruned, Recorded, Retention, Swap, Tear,
};

/// What goes wrong next. Clones share it.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<VecDeque<(Call, Verdict)>>>);

impl Script {
    /// A store that follows this script.
    pub fn store(&self, store: MemoryStore) -> Faulty<MemoryStore, Script> {
        Faulty::new(store, self.clone())
    }

    /// The next call of this kind meets this fate.
    pub fn then(&self, call: Call, fate: Fate) -> &Script {
        self.0.lock().unwrap().push_back((call, Verdict { fate, ..Verdict::default() }));
        self
    }

    /// The answer of the next call of this kind is so long under way.
    pub fn then_answer_late(&self, call: Call, answer_delay: Duration) -> &Script {
        self.0.lock().unwrap().push_back((call, Verdict { answer_delay, ..Verdict::default() }));
        self
    }

    /// The next call of this kind is so long under way.
    pub fn then_late(&self, call: Call, request_delay: Duration) -> &Script {
        self.0.lock().unwrap().push_back((call, Verdict { request_delay, ..Verdict::default() }));
        self
    }
}

impl Faults for Script {
    fn before(&self, call: Call) -> Verdict {
        let mut script = self.0.lock().unwrap();
        if script.front().is_some_and(|(next, _)| *next == call) {
            return script.pop_front().expect("there is a first").1;
        }
        Verdict::default()
    }

    fn can_tear(&self) -> bool {
        false
    }

    fn tear(&self, _changes: usize) -> Tear {
        Tear::Whole
    }

    async fn sleep(&self, delay: Duration) {
        super::world::pass(delay).await;
    }
}

/// A store that tells an impossible thing: pages of one partition that name each task twice.
#[derive(Clone)]
pub struct Liar {
    store: MemoryStore,
    partition: PartitionId,
    lies_left: Arc<AtomicUsize>,
}

impl Liar {
    pub fn new(store: MemoryStore, partition: PartitionId, lies: usize) -> Liar {
        Liar { store, partition, lies_left: Arc::new(AtomicUsize::new(lies)) }
    }

    fn lies(&self, partition: PartitionId) -> bool {
        let spend = |left: usize| left.checked_sub(1);
        partition == self.partition
            && self.lies_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok()
    }
}

impl Store for Liar {
    async fn load(
        &self,
        partition: PartitionId,
        window: WindowId,
        from: RowKey,
        until: Timestamp,
        limit: usize,
    ) -> Result<Loaded, StoreError> {
        let mut loaded = self.store.load(partition, window, from, until, limit).await?;
        if !loaded.tasks.is_empty() && self.lies(partition) {
            loaded.tasks.extend(loaded.tasks.clone());
        }
        Ok(loaded)
    }

    async fn meta(&self) -> Result<Meta, StoreError> {
        self.store.meta().await
    }

    async fn ownerships(&self) -> Result<Vec<Ownership>, StoreError> {
        self.store.ownerships().await
    }

    async fn claim(&self, partition: PartitionId, seen: Epoch, owner: &str) -> Result<Claim, StoreError> {
        self.store.claim(partition, seen, owner).await
    }

    async fn release(&self, fence: Fence) -> Result<(), StoreError> {
        self.store.release(fence).await
    }

    async fn record(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
        self.store.record(batch).await
    }

    async fn standing(&self, partition: PartitionId) -> Result<Standing, StoreError> {
        self.store.standing(partition).await
    }

    async fn held(
        &self,
        partition: PartitionId,
        after: Option<Obstacle>,
        limit: usize,
    ) -> Result<Vec<Held>, StoreError> {
        self.store.held(partition, after, limit).await
    }

    async fn parked(
        &self,
        partition: PartitionId,
        obstacle: Obstacle,
        from: RowKey,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError> {
        self.store.parked(partition, obstacle, from, limit).await
    }

    async fn find(
        &self,
        partition: PartitionId,
        queries: &[Query],
    ) -> Result<Vec<Option<Found>>, StoreError> {
        self.store.find(partition, queries).await
    }

    async fn list(&self, filter: &Filter, from: Option<PageKey>, limit: usize) -> Result<Page, StoreError> {
        self.store.list(filter, from, limit).await
    }

    async fn prune(
        &self,
        fence: Fence,
        queue: QueueId,
        retention: Retention,
        buckets_max: usize,
    ) -> Result<Pruned, StoreError> {
        self.store.prune(fence, queue, retention, buckets_max).await
    }

    async fn schedules(
        &self,
        partition: PartitionId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Box<str>, Bytes)>, StoreError> {
        self.store.schedules(partition, after, limit).await
    }

    async fn get(&self, now: Timestamp, key: &str) -> Result<Option<MapEntry>, StoreError> {
        self.store.get(now, key).await
    }

    async fn entries(
        &self,
        now: Timestamp,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Box<str>, MapEntry)>, StoreError> {
        self.store.entries(now, prefix, after, limit).await
    }

    async fn compare_and_set(
        &self,
        now: Timestamp,
        key: &str,
        expected: Option<u64>,
        value: Option<Bytes>,
        expires_at: Option<Timestamp>,
    ) -> Result<Swap, StoreError> {
        self.store.compare_and_set(now, key, expected, value, expires_at).await
    }
}
