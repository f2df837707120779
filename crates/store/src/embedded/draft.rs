//! Writes in the making: applied to the layers at once, and noted for the journal.

use bytes::Bytes;
use punctual_core::{Fence, PartitionId, Seq};

use super::cold::ColdTier;
use super::frame::Batch;
use super::key::Key;
use super::layer::Said;
use super::ops;
use super::shared::{Layers, Shared};
use crate::StoreError;
use crate::kv::{Row, Rows, admits, encode, ownership_key};

/// One record of the journal in the making.
pub struct Draft<'a, C> {
    layers: &'a mut Layers,
    shared: &'a Shared<C>,
    batch: &'a mut Batch,
    ops: Vec<u8>,
}

impl<'a, C: ColdTier> Draft<'a, C> {
    pub fn new(layers: &'a mut Layers, shared: &'a Shared<C>, batch: &'a mut Batch) -> Draft<'a, C> {
        batch.clear();
        Draft { layers, shared, batch, ops: Vec::new() }
    }

    /// Whether anything was written.
    pub fn finish(self) -> bool {
        if !self.ops.is_empty() {
            self.batch.push(&self.ops);
        }
        !self.ops.is_empty()
    }

    /// The value of a key, with what was written here.
    pub fn read(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        match self.layers.get(key) {
            Said::Is(value) => Ok(Some(value)),
            Said::IsNot => Ok(None),
            Said::Nothing => self.shared.get_cold(key),
        }
    }

    /// Whether writes under this fence count.
    pub fn admits(&self, fence: Fence) -> Result<bool, StoreError> {
        admits(self.read(&ownership_key(fence.partition))?.as_ref(), fence)
    }

    pub fn put(&mut self, key: &[u8], value: Bytes, is_new: bool) {
        ops::put(&mut self.ops, key, &value, is_new);
        self.layers.recent.put(Key::from(key), value, is_new);
    }

    pub fn clear(&mut self, from: &[u8], until: &[u8]) {
        ops::clear(&mut self.ops, from, until);
        self.layers.recent.clear(Key::from(from), Key::from(until));
    }
}

impl<C: ColdTier> Rows for Draft<'_, C> {
    async fn get(&mut self, key: &Bytes) -> Result<Option<Bytes>, StoreError> {
        self.read(key)
    }

    fn put_bytes(&mut self, key: Bytes, value: Bytes) {
        self.put(&key, value, false);
    }

    fn put_new<R: Row>(&mut self, key: Bytes, row: &R) {
        self.put(&key, encode(row), true);
    }

    fn delete(&mut self, key: Bytes) {
        ops::delete(&mut self.ops, &key);
        self.layers.recent.delete(&key);
    }

    fn is_new(&mut self, partition: PartitionId, seq: Seq) -> bool {
        let Some(unseen) = self.layers.unseen.get_mut(usize::from(partition.0)) else { return false };
        let is_new = seq.0 >= *unseen;
        *unseen = (*unseen).max(seq.0.saturating_add(1));
        is_new
    }
}
