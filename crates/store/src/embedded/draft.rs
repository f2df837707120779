//! Writes in the making: applied to the layers at once, and noted for the journal.

use bytes::{Bytes, BytesMut};
use punctual_core::{Epoch, Fence, PartitionId, Seq};
use rustc_hash::FxHashMap;

use super::cold::ColdTier;
use super::key::Key;
use super::layer::Said;
use super::ops;
use super::shared::{Layers, Shared};
use super::value::Value;
use crate::StoreError;
use crate::kv::{
    BucketRow, Row, Rows, bucket_key, decode, encode, encode_into, is_ownership, owner_epoch, ownership_key,
};
use crate::place::BucketId;

/// Values are made in pieces of memory of this size. A piece is free again when its last value is.
const ARENA_BYTES: usize = 64 << 10;
const ARENA_LEFT_MIN: usize = 1 << 10;

/// Rows of the tables that were read before anything was locked. Only one writes, so that they are as they were.
pub type Fetched = FxHashMap<Key, Bytes>;

/// One record of the journal in the making.
pub struct Draft<'a, C> {
    pub(super) layers: &'a mut Layers,
    shared: &'a Shared<C>,
    pub(super) ops: &'a mut Vec<u8>,
    /// Where values are made: many share one piece of memory.
    arena: &'a mut BytesMut,
    /// The value in the making.
    row: Vec<u8>,
    pub fetched: Fetched,
    /// When buckets may be dropped, as far as ends written here tell. Few are written to at a time.
    pub(super) buckets: Vec<(PartitionId, BucketId, BucketRow)>,
}

impl<'a, C: ColdTier> Draft<'a, C> {
    /// `ops` is where it is noted for the journal; its memory is used again.
    pub fn new(
        layers: &'a mut Layers,
        shared: &'a Shared<C>,
        (ops, arena): (&'a mut Vec<u8>, &'a mut BytesMut),
    ) -> Draft<'a, C> {
        ops.clear();
        Draft {
            layers,
            shared,
            ops,
            arena,
            row: Vec::new(),
            fetched: Fetched::default(),
            buckets: Vec::new(),
        }
    }

    /// A row as it is written.
    pub(super) fn encode<R: Row>(&mut self, row: &R) -> Bytes {
        if self.arena.capacity() < ARENA_LEFT_MIN {
            self.arena.reserve(ARENA_BYTES);
        }
        // Field by field a plain vector takes it faster.
        self.row.clear();
        encode_into(&mut self.row, row);
        self.arena.extend_from_slice(&self.row);
        self.arena.split().freeze()
    }

    /// Whether anything was written.
    pub fn finish(mut self) -> Result<bool, StoreError> {
        self.write_buckets()?;
        Ok(!self.ops.is_empty())
    }

    /// Whoever reads the rows of buckets finds what ends written here told of them.
    pub(super) fn write_buckets(&mut self) -> Result<(), StoreError> {
        for (partition, id, newest) in std::mem::take(&mut self.buckets) {
            let key = bucket_key(partition, id);
            let known: Option<BucketRow> = self.read(&key)?.map(|row| decode(&row)).transpose()?;
            let newest = known.map_or(newest.clone(), |known| newest.and(&known));
            self.put_bytes(key, encode(&newest));
        }
        Ok(())
    }

    /// The value of a key, with what was written here.
    pub fn read(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let own = Key::from(key);
        match self.layers.get(&own) {
            Said::Is(value) => Ok(Some(value.to_bytes())),
            Said::IsNot => Ok(None),
            Said::Nothing => match self.fetched.get(&own) {
                Some(row) => Ok(Some(row.clone())),
                None => self.shared.get_cold(key),
            },
        }
    }

    /// Whether writes under this fence count. Nobody has won epoch 0.
    pub fn admits(&mut self, fence: Fence) -> Result<bool, StoreError> {
        let epoch = match self.layers.epochs.get(usize::from(fence.partition.0)) {
            Some(Some(epoch)) => *epoch,
            _ => self.read_epoch(fence.partition)?,
        };
        Ok(epoch == fence.epoch && epoch != Epoch(0))
    }

    fn read_epoch(&mut self, partition: PartitionId) -> Result<Epoch, StoreError> {
        let row = self.read(&ownership_key(partition))?;
        let epoch = owner_epoch(row.as_ref())?;
        if let Some(known) = self.layers.epochs.get_mut(usize::from(partition.0)) {
            *known = Some(epoch);
        }
        Ok(epoch)
    }

    fn put(&mut self, key: &[u8], value: Bytes, is_new: bool) {
        if is_ownership(key) {
            self.layers.epochs.fill(None);
        }
        ops::put(self.ops, key, &value, is_new);
        self.layers.recent.put(Key::from(key), Value::Bytes(value), is_new);
    }

    pub fn clear(&mut self, from: &[u8], until: &[u8]) {
        ops::clear(self.ops, from, until);
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
        let value = self.encode(row);
        self.put(&key, value, true);
    }

    fn delete(&mut self, key: Bytes) {
        ops::delete(self.ops, &key);
        self.layers.recent.delete(&Key::from(&key[..]));
    }

    fn is_new(&mut self, partition: PartitionId, seq: Seq) -> bool {
        let Some(unseen) = self.layers.unseen.get_mut(usize::from(partition.0)) else { return false };
        let is_new = seq.0 >= *unseen;
        *unseen = (*unseen).max(seq.0.saturating_add(1));
        is_new
    }
}
