//! Stores that do not behave: faults by script, one that lies about what it holds, and one that counts.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual::{MemoryStore, Store, StoreError};
use punctual_core::{Change, Fence, Loaded, PartitionId, RowKey, Timestamp, WindowId};
use punctual_store::faulty::{Call, Fate, Faults, Faulty, Verdict};
use punctual_store::{Recorded, Tear, Wrapper};

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

impl Wrapper for Liar {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

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
}

/// A store that counts how often it is called.
#[derive(Clone)]
pub struct Counting {
    store: MemoryStore,
    calls: Arc<AtomicUsize>,
}

impl Counting {
    pub fn new(store: MemoryStore) -> Counting {
        Counting { store, calls: Arc::default() }
    }

    /// The calls since this was last asked.
    pub fn calls(&self) -> usize {
        self.calls.swap(0, Ordering::Relaxed)
    }

    fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wrapper for Counting {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn read<T: Send>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.count();
        call.await
    }

    async fn write<T: Send>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.count();
        call.await
    }

    async fn record(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
        self.count();
        self.store.record(batch).await
    }
}
