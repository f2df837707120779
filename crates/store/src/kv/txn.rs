//! One conditional write in the making: what it read must still be there when it is written.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::rows::{Row, decode, encode};
use super::{OrderedKv, Write};
use crate::StoreError;

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

    pub async fn get(&mut self, key: &Bytes) -> Result<Option<Bytes>, StoreError> {
        if let Some(known) = self.puts.get(key).or_else(|| self.seen.get(key)) {
            return Ok(known.clone());
        }
        let value = self.kv.get(key).await?;
        self.seen.insert(key.clone(), value.clone());
        Ok(value)
    }

    pub async fn row<R: Row>(&mut self, key: &Bytes) -> Result<Option<R>, StoreError> {
        self.get(key).await?.map(|value| decode(&value)).transpose()
    }

    pub fn put<R: Row>(&mut self, key: Bytes, row: &R) {
        self.put_bytes(key, encode(row));
    }

    pub fn put_bytes(&mut self, key: Bytes, value: Bytes) {
        self.puts.insert(key, Some(value));
    }

    pub fn delete(&mut self, key: Bytes) {
        self.puts.insert(key, None);
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
