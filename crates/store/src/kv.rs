//! Any ordered key-value store is a driver: five methods of its own, and [`KvStore`] does the rest.
//!
//! ```text
//!   Store ──▶ KvStore ──▶ OrderedKv: get, get_many, scan, write (if … then …), write_max
//! ```
//!
//! Everything rests on one conditional write: *if these keys still have these values, then write those*.
//! etcd calls it a transaction, FoundationDB and SQL have it, an embedded tree does it under a lock. The
//! owner's epoch is always among the conditions: that is the fence. A store with single-key
//! compare-and-set only cannot be fenced this way, and is not one of these.

mod changes;
mod keys;
mod listing;
mod map;
mod memory;
mod prune;
mod raw;
mod reads;
mod rows;
mod txn;
mod verify;

use std::future::Future;

use bytes::Bytes;
use futures_util::future::join_all;
use punctual_core::{
    Change, Epoch, Fence, Obstacle, PartitionId, QueueId, RowKey, Task, Timestamp, WindowId,
};

#[cfg(not(feature = "embedded"))]
use self::rows::decode;
use self::rows::{FORMAT, MetaRow, OwnerRow};
use self::txn::Txn;
use crate::{
    Claim, Filter, Found, Held, Loaded, MapEntry, Meta, Ownership, Page, PageKey, Pruned, Query, Recorded,
    Retention, Standing, Store, StoreError, Swap, TearableStore,
};

#[cfg(feature = "embedded")]
pub(crate) use self::changes::Writer as ChangeWriter;
#[cfg(feature = "embedded")]
pub(crate) use self::keys::{
    bucket as bucket_key, ended as ended_key, is_in_window, is_ownership, leased as leased_key,
    ownership as ownership_key, partition_of, place as place_key, seq_of_row,
};
pub use self::memory::MemoryKv;
#[cfg(feature = "embedded")]
pub(crate) use self::rows::{
    BucketRow, Row, decode, encode, encode_into, read_beginning, read_end, write_beginning, write_end,
};
pub(crate) use self::txn::Rows;
pub use self::verify::Report;
#[cfg(feature = "embedded")]
pub(crate) use self::verify::verify;

/// How many rows of a table that is read whole are read at once.
const SCAN_MAX: usize = 1_000;
/// No store takes fewer guards and writes at once than this.
pub const WRITE_MAX_MIN: usize = 64;

/// A key, and the value it must have: `None` for no value.
pub type Guard = (Bytes, Option<Bytes>);

/// One part of a write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Write {
    /// Gives a key a value.
    Put(Bytes, Bytes),
    /// Takes a key away, if it is there.
    Delete(Bytes),
    /// Takes all keys away from the first on and before the second.
    DeleteRange(Bytes, Bytes),
}

/// An ordered key-value store: keys are bytes, in their order.
///
/// An error of `write` is [`StoreError::Unavailable`] only if nothing was written; else it is `Unknown`.
pub trait OrderedKv: Send + Sync + 'static {
    /// How many guards and writes one write takes: at least [`WRITE_MAX_MIN`], `usize::MAX` for any number.
    fn write_max(&self) -> usize;

    /// The value of a key. Sees every write that was answered.
    fn get(&self, key: &Bytes) -> impl Future<Output = Result<Option<Bytes>, StoreError>> + Send;

    /// The values of many keys, in the order asked. They need not be of one moment.
    fn get_many(&self, keys: &[Bytes])
    -> impl Future<Output = Result<Vec<Option<Bytes>>, StoreError>> + Send;

    /// Keys and values in `from..until`, in order, `limit` at most. Nothing when the range is empty.
    fn scan(
        &self,
        from: &Bytes,
        until: &Bytes,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Bytes, Bytes)>, StoreError>> + Send;

    /// If all guards hold, does all writes and answers true; else does nothing and answers false. Atomic,
    /// linearizable, and on stable storage before it answers. No key is named by two writes.
    fn write(
        &self,
        guards: &[Guard],
        writes: Vec<Write>,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// A store of tasks on an ordered key-value store.
#[derive(Clone)]
pub struct KvStore<K> {
    kv: K,
    partitions: u16,
}

impl<K: OrderedKv> KvStore<K> {
    /// Opens a store, or makes one if the key-value store is empty.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] when it was made with another number of partitions, or by a newer Punctual.
    pub async fn open(kv: K, partitions: u16) -> Result<KvStore<K>, StoreError> {
        assert!(kv.write_max() >= WRITE_MAX_MIN, "a write takes {WRITE_MAX_MIN} guards and writes at least");
        let meta = MetaRow { partitions, format: u32::from(FORMAT) };
        loop {
            let mut txn = Txn::new(&kv);
            let Some(stored) = txn.get(&keys::META).await? else {
                txn.put(keys::META, &meta);
                // If not, somebody else made it just now.
                txn.commit().await?;
                continue;
            };
            check_meta(&decode(&stored)?, &meta)?;
            return Ok(KvStore { kv, partitions });
        }
    }

    /// Reads every row and checks whether it can be right, alone and beside the others. Nobody may write meanwhile.
    pub async fn verify(&self) -> Result<Report, StoreError> {
        verify::verify(&self.kv, self.partitions, &mut |_| {}).await
    }

    fn check(&self, partition: PartitionId) -> Result<(), StoreError> {
        if partition.0 < self.partitions {
            return Ok(());
        }
        Err(StoreError::Corrupt(format!("no partition {} among {}", partition.0, self.partitions).into()))
    }

    /// Decides on the present owner, and writes what was decided unless he changed meanwhile.
    async fn change_owner<T>(
        &self,
        partition: PartitionId,
        decide: impl Fn(OwnerRow) -> Result<OwnerRow, T>,
    ) -> Result<Result<OwnerRow, T>, StoreError> {
        self.check(partition)?;
        loop {
            let mut txn = Txn::new(&self.kv);
            let owner = match decide(read_owner(&mut txn, partition).await?) {
                Ok(owner) => owner,
                Err(refused) => return Ok(Err(refused)),
            };
            txn.put(keys::ownership(partition), &owner);
            if txn.commit().await? {
                return Ok(Ok(owner));
            }
        }
    }
}

fn check_meta(stored: &MetaRow, wanted: &MetaRow) -> Result<(), StoreError> {
    let corrupt = |why: String| Err(StoreError::Corrupt(why.into()));
    if stored.format > wanted.format {
        return corrupt(format!(
            "the store's format is {}, this program reads {}",
            stored.format, wanted.format
        ));
    }
    if stored.partitions != wanted.partitions {
        let (stored, wanted) = (stored.partitions, wanted.partitions);
        return corrupt(format!("the store was made with {stored} partitions, {wanted} are configured"));
    }
    Ok(())
}

/// Who owns a partition; nobody in epoch 0 when it was never claimed.
async fn read_owner<K: OrderedKv>(
    txn: &mut Txn<'_, K>,
    partition: PartitionId,
) -> Result<OwnerRow, StoreError> {
    let row = txn.row(&keys::ownership(partition)).await?;
    Ok(row.unwrap_or(OwnerRow { epoch: 0, owner: None }))
}

/// Which epoch is the present one, by the owner's row.
#[cfg(feature = "embedded")]
pub(crate) fn owner_epoch(row: Option<&Bytes>) -> Result<Epoch, StoreError> {
    let row: Option<OwnerRow> = row.map(|row| decode(row)).transpose()?;
    Ok(Epoch(row.map_or(0, |row| row.epoch)))
}

/// Writes are atomic, so there is nothing to cut.
impl<K: OrderedKv> TearableStore for KvStore<K> {}

impl<K: OrderedKv> Store for KvStore<K> {
    async fn meta(&self) -> Result<Meta, StoreError> {
        let atomic = self.kv.write_max() == usize::MAX;
        Ok(Meta { partitions: self.partitions, format: u32::from(FORMAT), atomic })
    }

    async fn ownerships(&self) -> Result<Vec<Ownership>, StoreError> {
        let partitions = (0..self.partitions).map(PartitionId);
        let keys: Vec<Bytes> = partitions.clone().map(keys::ownership).collect();
        let rows = self.kv.get_many(&keys).await?;
        let ownership = |(partition, row): (PartitionId, Option<Bytes>)| {
            let row: Option<OwnerRow> = row.map(|row| decode(&row)).transpose()?;
            let OwnerRow { epoch, owner } = row.unwrap_or(OwnerRow { epoch: 0, owner: None });
            Ok(Ownership { partition, epoch: Epoch(epoch), owner })
        };
        partitions.zip(rows).map(ownership).collect()
    }

    async fn claim(&self, partition: PartitionId, seen: Epoch, owner: &str) -> Result<Claim, StoreError> {
        let claimed = self.change_owner(partition, |row| {
            let claimed = OwnerRow { epoch: seen.0 + 1, owner: Some(owner.into()) };
            if row.epoch == seen.0 { Ok(claimed) } else { Err(row.epoch) }
        });
        Ok(match claimed.await? {
            Ok(row) => Claim::Won(Epoch(row.epoch)),
            Err(epoch) => Claim::Lost(Epoch(epoch)),
        })
    }

    async fn release(&self, fence: Fence) -> Result<(), StoreError> {
        let released = self.change_owner(fence.partition, |row| {
            if row.admits(fence) { Ok(OwnerRow { owner: None, ..row }) } else { Err(StoreError::Fenced) }
        });
        released.await?.map(drop)
    }

    async fn record(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
        join_all(batch.iter().map(|(fence, changes)| changes::record(&self.kv, *fence, changes))).await
    }

    async fn standing(&self, partition: PartitionId) -> Result<Standing, StoreError> {
        self.check(partition)?;
        reads::standing(&self.kv, partition).await
    }

    async fn held(
        &self,
        partition: PartitionId,
        after: Option<Obstacle>,
        limit: usize,
    ) -> Result<Vec<Held>, StoreError> {
        self.check(partition)?;
        reads::held(&self.kv, partition, after, limit).await
    }

    async fn load(
        &self,
        partition: PartitionId,
        window: WindowId,
        from: RowKey,
        until: Timestamp,
        limit: usize,
    ) -> Result<Loaded, StoreError> {
        self.check(partition)?;
        reads::load(&self.kv, partition, window, from, until, limit).await
    }

    async fn parked(
        &self,
        partition: PartitionId,
        obstacle: Obstacle,
        from: RowKey,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError> {
        self.check(partition)?;
        reads::parked(&self.kv, partition, obstacle, from, limit).await
    }

    async fn find(
        &self,
        partition: PartitionId,
        queries: &[Query],
    ) -> Result<Vec<Option<Found>>, StoreError> {
        self.check(partition)?;
        reads::find(&self.kv, partition, queries).await
    }

    async fn list(&self, filter: &Filter, from: Option<PageKey>, limit: usize) -> Result<Page, StoreError> {
        listing::list(&self.kv, self.partitions, filter, from, limit).await
    }

    async fn prune(
        &self,
        fence: Fence,
        queue: QueueId,
        retention: Retention,
        buckets_max: usize,
    ) -> Result<Pruned, StoreError> {
        self.check(fence.partition)?;
        prune::prune(&self.kv, fence, queue, retention, buckets_max).await
    }

    async fn schedules(
        &self,
        partition: PartitionId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Box<str>, Bytes)>, StoreError> {
        self.check(partition)?;
        reads::schedules(&self.kv, partition, after, limit).await
    }

    async fn get(&self, now: Timestamp, key: &str) -> Result<Option<MapEntry>, StoreError> {
        map::get(&self.kv, now, key).await
    }

    async fn entries(
        &self,
        now: Timestamp,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Box<str>, MapEntry)>, StoreError> {
        map::entries(&self.kv, now, prefix, after, limit).await
    }

    async fn compare_and_set(
        &self,
        now: Timestamp,
        key: &str,
        expected: Option<u64>,
        value: Option<Bytes>,
        expires_at: Option<Timestamp>,
    ) -> Result<Swap, StoreError> {
        map::compare_and_set(&self.kv, now, key, expected, value, expires_at).await
    }
}
