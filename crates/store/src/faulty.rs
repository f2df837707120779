//! A store that fails on purpose: late, lost or torn, as a seed says, and counted so that no test passes idly.
//!
//! Time is the caller's: a delay is waited for through [`Faults::sleep`], so that the simulator can pass a
//! minute in a microsecond.

mod seeded;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{
    Change, Epoch, Fence, Obstacle, PartitionId, QueueId, RowKey, Task, Timestamp, WindowId,
};

use crate::{
    Claim, Filter, Found, Held, Loaded, MapEntry, Meta, Ownership, Page, PageKey, Pruned, Query, Recorded,
    Retention, Standing, Store, StoreError, Swap, Tear, TearableStore,
};

pub use self::seeded::{FaultRates, SeededFaults};

/// What kind of call is about to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// It changes nothing.
    Read,
    /// A claim, a release, a prune or a compare-and-set: one step that happens or does not.
    Write,
    /// A record, which can also be torn.
    Record,
}

/// What happens to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// How long the request is under way.
    pub request_delay: Duration,
    /// What becomes of it.
    pub fate: Fate,
    /// How long the answer is under way.
    pub answer_delay: Duration,
}

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fate {
    /// It is carried out and answered.
    #[default]
    Fine,
    /// It never arrives.
    RequestLost,
    /// It is carried out, and nobody hears of it.
    AnswerLost,
    /// A record is cut: each fence's changes where [`Faults::tear`] says. Other calls take it for `Fine`.
    Torn,
}

/// Decides what goes wrong, and passes the time.
pub trait Faults: Send + Sync + 'static {
    /// What happens to the next call.
    fn before(&self, call: Call) -> Verdict;

    /// Whether a record is ever torn: then the store does not call itself atomic.
    fn can_tear(&self) -> bool;

    /// Where the changes of one fence of a torn record are cut.
    fn tear(&self, changes: usize) -> Tear;

    /// Waits, on whatever clock the test runs by.
    fn sleep(&self, delay: Duration) -> impl Future<Output = ()> + Send;
}

/// How often each fault happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultCounts {
    /// Requests or answers that were late.
    pub delays: u64,
    /// Calls that never arrived.
    pub requests_lost: u64,
    /// Calls that were carried out unheard.
    pub answers_lost: u64,
    /// Fences whose changes were cut.
    pub torn: u64,
}

/// A store with faults. Clones share the faults, the counts and the switch.
pub struct Faulty<S, F> {
    store: S,
    shared: Arc<Shared<F>>,
}

struct Shared<F> {
    faults: F,
    is_calm: AtomicBool,
    delays: AtomicU64,
    requests_lost: AtomicU64,
    answers_lost: AtomicU64,
    torn: AtomicU64,
}

impl<S: Clone, F> Clone for Faulty<S, F> {
    fn clone(&self) -> Self {
        Faulty { store: self.store.clone(), shared: self.shared.clone() }
    }
}

impl<S: TearableStore, F: Faults> Faulty<S, F> {
    /// The store, with these faults from now on.
    pub fn new(store: S, faults: F) -> Faulty<S, F> {
        let shared = Shared {
            faults,
            is_calm: AtomicBool::new(false),
            delays: AtomicU64::new(0),
            requests_lost: AtomicU64::new(0),
            answers_lost: AtomicU64::new(0),
            torn: AtomicU64::new(0),
        };
        Faulty { store, shared: Arc::new(shared) }
    }

    /// The store behind it, which does not fail.
    pub fn inner(&self) -> &S {
        &self.store
    }

    /// No more faults. Delays that have begun still end.
    pub fn calm(&self) {
        self.shared.is_calm.store(true, Ordering::Relaxed);
    }

    /// Faults again.
    pub fn storm(&self) {
        self.shared.is_calm.store(false, Ordering::Relaxed);
    }

    /// How often each fault happened so far.
    pub fn counts(&self) -> FaultCounts {
        let shared = &self.shared;
        FaultCounts {
            delays: shared.delays.load(Ordering::Relaxed),
            requests_lost: shared.requests_lost.load(Ordering::Relaxed),
            answers_lost: shared.answers_lost.load(Ordering::Relaxed),
            torn: shared.torn.load(Ordering::Relaxed),
        }
    }

    /// Decides, counts, and lets the request arrive late.
    async fn before(&self, call: Call) -> Verdict {
        if self.shared.is_calm.load(Ordering::Relaxed) {
            return Verdict::default();
        }
        let verdict = self.shared.faults.before(call);
        match verdict.fate {
            Fate::RequestLost => count(&self.shared.requests_lost),
            Fate::AnswerLost => count(&self.shared.answers_lost),
            Fate::Fine | Fate::Torn => {}
        }
        self.wait(verdict.request_delay).await;
        verdict
    }

    async fn wait(&self, delay: Duration) {
        if !delay.is_zero() {
            count(&self.shared.delays);
            self.shared.faults.sleep(delay).await;
        }
    }

    /// A call that changes nothing: whatever is lost, it can be repeated.
    async fn read<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let verdict = self.before(Call::Read).await;
        let answer = if verdict.fate == Fate::RequestLost { Err(request_lost()) } else { call.await };
        self.wait(verdict.answer_delay).await;
        if verdict.fate == Fate::AnswerLost {
            return Err(StoreError::Unavailable("the answer was lost".into()));
        }
        answer
    }

    /// A call that changes something: once it was sent, its loss leaves us in doubt.
    async fn write<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let verdict = self.before(Call::Write).await;
        let answer = if verdict.fate == Fate::RequestLost { Err(request_lost()) } else { call.await };
        self.wait(verdict.answer_delay).await;
        if verdict.fate == Fate::AnswerLost {
            return Err(StoreError::Unknown("the answer was lost".into()));
        }
        answer
    }

    async fn tear(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
        let tears: Vec<Tear> =
            batch.iter().map(|(_, changes)| self.shared.faults.tear(changes.len())).collect();
        let cut = tears.iter().filter(|tear| **tear != Tear::Whole).count();
        self.shared.torn.fetch_add(cut as u64, Ordering::Relaxed);
        self.store.record_torn(batch, &tears).await
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn request_lost() -> StoreError {
    StoreError::Unavailable("the request was lost".into())
}

impl<S: TearableStore, F: Faults> Store for Faulty<S, F> {
    async fn meta(&self) -> Result<Meta, StoreError> {
        let meta = self.read(self.store.meta()).await?;
        Ok(Meta { atomic: meta.atomic && !self.shared.faults.can_tear(), ..meta })
    }

    async fn ownerships(&self) -> Result<Vec<Ownership>, StoreError> {
        self.read(self.store.ownerships()).await
    }

    async fn claim(&self, partition: PartitionId, seen: Epoch, owner: &str) -> Result<Claim, StoreError> {
        self.write(self.store.claim(partition, seen, owner)).await
    }

    async fn release(&self, fence: Fence) -> Result<(), StoreError> {
        self.write(self.store.release(fence)).await
    }

    async fn record(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
        let verdict = self.before(Call::Record).await;
        let unknown = || vec![Recorded::Unknown; batch.len()];
        let answers = match verdict.fate {
            Fate::RequestLost => unknown(),
            Fate::Torn => self.tear(batch).await,
            Fate::Fine | Fate::AnswerLost => self.store.record(batch).await,
        };
        self.wait(verdict.answer_delay).await;
        if verdict.fate == Fate::AnswerLost { unknown() } else { answers }
    }

    async fn standing(&self, partition: PartitionId) -> Result<Standing, StoreError> {
        self.read(self.store.standing(partition)).await
    }

    async fn held(
        &self,
        partition: PartitionId,
        after: Option<Obstacle>,
        limit: usize,
    ) -> Result<Vec<Held>, StoreError> {
        self.read(self.store.held(partition, after, limit)).await
    }

    async fn load(
        &self,
        partition: PartitionId,
        window: WindowId,
        from: RowKey,
        until: Timestamp,
        limit: usize,
    ) -> Result<Loaded, StoreError> {
        self.read(self.store.load(partition, window, from, until, limit)).await
    }

    async fn parked(
        &self,
        partition: PartitionId,
        obstacle: Obstacle,
        from: RowKey,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError> {
        self.read(self.store.parked(partition, obstacle, from, limit)).await
    }

    async fn find(
        &self,
        partition: PartitionId,
        queries: &[Query],
    ) -> Result<Vec<Option<Found>>, StoreError> {
        self.read(self.store.find(partition, queries)).await
    }

    async fn list(&self, filter: &Filter, from: Option<PageKey>, limit: usize) -> Result<Page, StoreError> {
        self.read(self.store.list(filter, from, limit)).await
    }

    async fn prune(
        &self,
        fence: Fence,
        queue: QueueId,
        retention: Retention,
        buckets_max: usize,
    ) -> Result<Pruned, StoreError> {
        self.write(self.store.prune(fence, queue, retention, buckets_max)).await
    }

    async fn schedules(
        &self,
        partition: PartitionId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Box<str>, Bytes)>, StoreError> {
        self.read(self.store.schedules(partition, after, limit)).await
    }

    async fn get(&self, now: Timestamp, key: &str) -> Result<Option<MapEntry>, StoreError> {
        self.read(self.store.get(now, key)).await
    }

    async fn entries(
        &self,
        now: Timestamp,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Box<str>, MapEntry)>, StoreError> {
        self.read(self.store.entries(now, prefix, after, limit)).await
    }

    async fn compare_and_set(
        &self,
        now: Timestamp,
        key: &str,
        expected: Option<u64>,
        value: Option<Bytes>,
        expires_at: Option<Timestamp>,
    ) -> Result<Swap, StoreError> {
        self.write(self.store.compare_and_set(now, key, expected, value, expires_at)).await
    }
}
