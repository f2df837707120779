//! Engine, gate and memory store on one thread: changes are recorded where the library's loop would await it.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use punctual_bench::echo::Recorder;
use punctual_core::{Change, Epoch, Fence, PartitionId};
use punctual_store::{Claim, MemoryStore, Recorded, Store};

use super::Round;
use super::engine::{self, Load};

/// A memory store, written to where it stands.
pub struct Recording(MemoryStore);

impl Recording {
    /// A store whose partitions are all claimed, under epoch 1.
    pub fn new(partitions: u16) -> Recording {
        let store = MemoryStore::new(partitions);
        for partition in (0..partitions).map(PartitionId) {
            let claim = at_once(store.claim(partition, Epoch(0), "bench"));
            assert!(matches!(claim, Ok(Claim::Won(Epoch(1)))), "a new store is nobody's: {claim:?}");
        }
        Recording(store)
    }
}

impl Recorder for Recording {
    fn record(&mut self, batch: &[(Fence, Vec<Change>)]) {
        let recorded = at_once(self.0.record(batch));
        assert!(recorded.iter().all(|recorded| *recorded == Recorded::Done), "memory does not fail");
    }
}

pub fn with_memory_store(load: Load, tasks: usize) -> Round {
    engine::measure(load, tasks, Recording::new(load.partitions))
}

/// A store in memory has nothing to wait for.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("a store in memory has nothing to wait for"),
    }
}
