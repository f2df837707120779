//! The contract of a store. The letters C1 to C8 name the promises that the conformance suite checks.
//!
//! - **C1** what is answered `Done` survives a crash of the process, and of any one store node.
//! - **C2** `claim` is linearizable: one winner per epoch.
//! - **C3** nothing is answered `Done` under a fence older than the present epoch, nor before the first claim.
//! - **C4** after `claim` returns, reads see every write that was answered `Done` under older epochs.
//! - **C5** changes are idempotent: the same batch again changes nothing.
//! - **C6** three outcomes, not two: done, fenced, unknown. After unknown, a *prefix* of the changes may
//!   be in effect, the last of it in part; a row whose end is written is never returned as live.
//! - **C7** a range is read in order and pages stably.
//! - **C8** history is dropped by whole buckets, not row by row; only a budget of bytes cuts a bucket, the oldest.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use punctual_core::{
    Change, EndState, EndedTask, Epoch, Fence, Obstacle, PartitionId, QueueId, RowKey, Task, Timestamp,
    WindowId,
};
pub use punctual_core::{Found, Held, Loaded, Pruned, Query, Retention, Standing, WindowStanding};

use crate::StoreError;

/// Durable tasks, history, ownership, and a small map for coordination.
///
/// All methods but `record`, `release` and `prune` are reads or compare-and-set, and need no fence.
pub trait Store: Send + Sync + 'static {
    /// What is fixed for the life of this store.
    fn meta(&self) -> impl Future<Output = Result<Meta, StoreError>> + Send;

    /// Who owns each partition, as far as the store knows; in order of partition.
    fn ownerships(&self) -> impl Future<Output = Result<Vec<Ownership>, StoreError>> + Send;

    /// Takes a partition over, if its epoch is still `seen`: raises the epoch and names the owner (C2).
    fn claim(
        &self,
        partition: PartitionId,
        seen: Epoch,
        owner: &str,
    ) -> impl Future<Output = Result<Claim, StoreError>> + Send;

    /// Gives a partition up: it has no owner until the next claim, which raises the epoch.
    fn release(&self, fence: Fence) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Writes the changes of many partitions, each under its own fence, and answers for each in turn.
    fn record(&self, batch: &[(Fence, Vec<Change>)]) -> impl Future<Output = Vec<Recorded>> + Send;

    /// What a new owner must know before it begins: its windows, and the attempts that may still run.
    fn standing(&self, partition: PartitionId) -> impl Future<Output = Result<Standing, StoreError>> + Send;

    /// The obstacles that stand in a partition, in order, from just after `after`.
    fn held(
        &self,
        partition: PartitionId,
        after: Option<Obstacle>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Held>, StoreError>> + Send;

    /// The tasks of a window that lie in `from..until`, in order, `limit` at most (C7).
    fn load(
        &self,
        partition: PartitionId,
        window: WindowId,
        from: RowKey,
        until: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<Loaded, StoreError>> + Send;

    /// The tasks parked under an obstacle at or after `from`, in order.
    fn parked(
        &self,
        partition: PartitionId,
        obstacle: Obstacle,
        from: RowKey,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Task>, StoreError>> + Send;

    /// Looks tasks up by id or identity; answers in the order asked. Each is one or two point reads.
    fn find(
        &self,
        partition: PartitionId,
        queries: &[Query],
    ) -> impl Future<Output = Result<Vec<Option<Found>>, StoreError>> + Send;

    /// A page of tasks for people to look at: live ones by (wake time, partition, seq), or ended ones by
    /// (birth, partition, seq). Looks at 10,000 rows at most, so a page may be short and still have a `next`.
    fn list(
        &self,
        filter: &Filter,
        from: Option<PageKey>,
        limit: usize,
    ) -> impl Future<Output = Result<Page, StoreError>> + Send;

    /// Drops history of a queue: whole buckets whose newest end is past retention (C8), and then the oldest while there
    /// are more bytes than are to be kept; a few at a time. Says how many bytes are left, and when more can go.
    fn prune(
        &self,
        fence: Fence,
        queue: QueueId,
        retention: Retention,
        buckets_max: usize,
    ) -> impl Future<Output = Result<Pruned, StoreError>> + Send;

    /// Rows of recurring schedules in a partition, in order of name, from just after `after`.
    fn schedules(
        &self,
        partition: PartitionId,
        after: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Box<str>, Bytes)>, StoreError>> + Send;

    /// An entry of the coordination map that has not expired at `now`.
    fn get(
        &self,
        now: Timestamp,
        key: &str,
    ) -> impl Future<Output = Result<Option<MapEntry>, StoreError>> + Send;

    /// Entries whose key begins with `prefix`, in order of key, from just after `after`.
    fn entries(
        &self,
        now: Timestamp,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Box<str>, MapEntry)>, StoreError>> + Send;

    /// Sets (`Some`) or removes (`None`) an entry, if its version is still `expected`; `None` expects no
    /// live entry. Linearizable. Versions of one key only grow, also across removal and expiry.
    fn compare_and_set(
        &self,
        now: Timestamp,
        key: &str,
        expected: Option<u64>,
        value: Option<Bytes>,
        expires_at: Option<Timestamp>,
    ) -> impl Future<Output = Result<Swap, StoreError>> + Send;
}

/// What is fixed for the life of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// How many partitions there are: routing depends on it.
    pub partitions: u16,
    /// The version of the stored formats.
    pub format: u32,
    /// Whether the changes under one fence are written whole or not at all. If not, a new owner checks
    /// more of what it finds.
    pub atomic: bool,
}

/// A partition's owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ownership {
    /// Which.
    pub partition: PartitionId,
    /// The present epoch; 0 before the first claim.
    pub epoch: Epoch,
    /// Who claimed it; `None` when it was released, or never claimed.
    pub owner: Option<Box<str>>,
}

impl Ownership {
    /// The fence of this ownership.
    pub fn fence(&self) -> Fence {
        Fence { partition: self.partition, epoch: self.epoch }
    }
}

/// How a claim went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// The partition is yours, under this epoch.
    Won(Epoch),
    /// Somebody was quicker: this is the present epoch.
    Lost(Epoch),
}

/// How a record went, for one fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recorded {
    /// All of it is on stable storage.
    Done,
    /// Another node owns the partition; nothing of it counts.
    Fenced,
    /// All, some or none of it happened. Claim anew and read back.
    Unknown,
    /// There is no room for more, and nothing of it happened. What ends tasks may still be taken: ask again without
    /// what is new.
    Full,
}

/// Which tasks to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Only of this queue.
    pub queue: Option<QueueId>,
    /// Only of these queues, which are in order: what others may not see is not looked at.
    pub queues: Option<Arc<[QueueId]>>,
    /// Only of this lane name.
    pub lane: Option<Box<str>>,
    /// Only of this name.
    pub name: Option<Box<str>>,
    /// Ended ones rather than live ones.
    pub ended: bool,
    /// With `ended`: only those that ended so.
    pub state: Option<EndState>,
    /// Not before this (wake time of live ones, birth of ended ones).
    pub from: Option<Timestamp>,
    /// Before this.
    pub until: Option<Timestamp>,
}

/// Where a page begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageKey {
    /// Wake time, or birth.
    pub at: Timestamp,
    /// Partition.
    pub partition: PartitionId,
    /// The row within it.
    pub seq: punctual_core::Seq,
}

/// One listed task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listed {
    /// It has not ended.
    Live(Task),
    /// It has.
    Ended(EndedTask),
}

/// A page of tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// In order.
    pub tasks: Vec<Listed>,
    /// Where the next page begins; `None` when this was the last.
    pub next: Option<PageKey>,
}

/// An entry of the coordination map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapEntry {
    /// What was set.
    pub value: Bytes,
    /// What to expect in the next compare-and-set.
    pub version: u64,
}

/// How a compare-and-set went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Swap {
    /// Done: the version now, or `None` after a removal.
    Done(Option<u64>),
    /// Something else is there.
    Conflict(Option<MapEntry>),
}
