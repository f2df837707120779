//! One conditional write in the making: what it read must still be there when it is written.

use std::collections::BTreeMap;
use std::future::Future;

use bytes::Bytes;
use punctual_core::{PartitionId, Seq};

use super::rows::{Row, decode, encode};
use super::{OrderedKv, Write};
use crate::StoreError;

/// Rows that are read and written together.
pub(crate) trait Rows {
    /// The value of a key, with what was written here.
    fn get(&mut self, key: &Bytes) -> impl Future<Output = Result<Option<Bytes>, StoreError>>;

    fn put_bytes(&mut self, key: Bytes, value: Bytes);

    fn delete(&mut self, key: Bytes);

    /// The same as `put`, of a key that was never there: a driver may make use of that.
    fn put_new<R: Row>(&mut self, key: Bytes, row: &R) {
        self.put(key, row);
    }

    /// Whether it is certain that nothing is known of the task of this number. From now on something may be.
    fn is_new(&mut self, _partition: PartitionId, _seq: Seq) -> bool {
        false
    }

    fn row<R: Row>(&mut self, key: &Bytes) -> impl Future<Output = Result<Option<R>, StoreError>> {
        async { self.get(key).await?.map(|value| decode(&value)).transpose() }
    }

    fn put<R: Row>(&mut self, key: Bytes, row: &R) {
        self.put_bytes(key, encode(row));
    }
}

/// Reads through to the store, remembers what it saw, and collects what to write.
pub(super) struct Txn<'a, K> {
    kv: &'a K,
    seen: BTreeMap<Bytes, Option<Bytes>>,
    puts: BTreeMap<Bytes, Option<Bytes>>,
    ranges: Vec<(Bytes, Bytes)>,
}

impl<'a, K: OrderedKv> Txn<'a, K> {
    pub fn new(kv: &'a K) -> Txn<'a, K> {
        Txn { kv, seen: BTreeMap::new(), puts: BTreeMap::new(), ranges: Vec::new() }
    }

    /// How much of the store's limit for one write is used.
    pub fn size(&self) -> usize {
        self.seen.len() + self.puts.len() + self.ranges.len()
    }

    /// Fetches keys that are about to be read, in one call.
    pub async fn prefetch(&mut self, keys: Vec<Bytes>) -> Result<(), StoreError> {
        let values = self.kv.get_many(&keys).await?;
        self.seen.extend(keys.into_iter().zip(values));
        Ok(())
    }

    pub fn delete_range(&mut self, from: Bytes, until: Bytes) {
        self.ranges.push((from, until));
    }

    /// Writes everything, unless something that was read has changed: then nothing, and the answer is false.
    pub async fn commit(self) -> Result<bool, StoreError> {
        let guards: Vec<_> = self.seen.into_iter().collect();
        let ranges = self.ranges.into_iter().map(|(from, until)| Write::DeleteRange(from, until));
        let puts = self.puts.into_iter().map(|(key, value)| match value {
            Some(value) => Write::Put(key, value),
            None => Write::Delete(key),
        });
        self.kv.write(&guards, ranges.chain(puts).collect()).await
    }
}

impl<K: OrderedKv> Rows for Txn<'_, K> {
    async fn get(&mut self, key: &Bytes) -> Result<Option<Bytes>, StoreError> {
        if let Some(known) = self.puts.get(key).or_else(|| self.seen.get(key)) {
            return Ok(known.clone());
        }
        let value = self.kv.get(key).await?;
        self.seen.insert(key.clone(), value.clone());
        Ok(value)
    }

    fn put_bytes(&mut self, key: Bytes, value: Bytes) {
        self.puts.insert(key, Some(value));
    }

    fn delete(&mut self, key: Bytes) {
        self.puts.insert(key, None);
    }
}
