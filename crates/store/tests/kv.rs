//! The adapter proves itself on the smallest key-value store, with and without a limit on its writes.

use bytes::Bytes;
use punctual_store::kv::{Guard, KvStore, MemoryKv, OrderedKv, WRITE_MAX_MIN, Write};
use punctual_store::{StoreError, conformance};
use tokio::task::yield_now;

async fn open(kv: MemoryKv) -> KvStore<MemoryKv> {
    KvStore::open(kv, 4).await.expect("the store opens")
}

#[tokio::test]
async fn a_key_value_store_conforms() {
    conformance::run(async || open(MemoryKv::new()).await).await;
}

#[tokio::test]
async fn a_key_value_store_with_small_writes_conforms() {
    conformance::run(async || open(MemoryKv::with_write_max(WRITE_MAX_MIN)).await).await;
}

/// A map whose every call lets others go first, so that writers that race do meet.
struct Yielding(MemoryKv);

impl OrderedKv for Yielding {
    fn write_max(&self) -> usize {
        self.0.write_max()
    }

    async fn get(&self, key: &Bytes) -> Result<Option<Bytes>, StoreError> {
        yield_now().await;
        self.0.get(key).await
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StoreError> {
        yield_now().await;
        self.0.get_many(keys).await
    }

    async fn scan(
        &self,
        from: &Bytes,
        until: &Bytes,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        yield_now().await;
        self.0.scan(from, until, limit).await
    }

    async fn write(&self, guards: &[Guard], writes: Vec<Write>) -> Result<bool, StoreError> {
        yield_now().await;
        self.0.write(guards, writes).await
    }
}

#[tokio::test]
async fn a_key_value_store_conforms_when_its_calls_interleave() {
    conformance::run(async || KvStore::open(Yielding(MemoryKv::new()), 4).await.expect("it opens")).await;
}

#[tokio::test]
async fn what_was_written_is_there_when_it_is_opened_again() {
    let kv = MemoryKv::new();
    conformance::run_reopened(async || open(kv.clone()).await).await;
}

#[tokio::test]
async fn another_number_of_partitions_is_refused() {
    let kv = MemoryKv::new();
    open(kv.clone()).await;
    assert!(matches!(KvStore::open(kv, 8).await, Err(StoreError::Corrupt(_))));
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_when_it_is_opened() {
    let kv = MemoryKv::new();
    let damaged = Write::Put(Bytes::from_static(&[0]), Bytes::from_static(&[9, 4, 1]));
    kv.write(&[], vec![damaged]).await.expect("written");
    assert!(matches!(KvStore::open(kv, 4).await, Err(StoreError::Corrupt(_))));
}
