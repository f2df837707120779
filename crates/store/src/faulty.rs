//! A store that fails on purpose: late, lost or torn, as a seed says, and counted so that no test passes idly.
//!
//! Time is the caller's: a delay is waited for through [`Faults::sleep`], so that the simulator can pass a
//! minute in a microsecond.

mod seeded;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use punctual_core::{Change, Fence};

use crate::{Meta, Recorded, StoreError, Tear, TearableStore, Wrapper};

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

impl<S: TearableStore, F: Faults> Wrapper for Faulty<S, F> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.store
    }

    /// A call that changes nothing: whatever is lost, it can be repeated.
    async fn read<T: Send>(
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
    async fn write<T: Send>(
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

    async fn meta(&self) -> Result<Meta, StoreError> {
        let meta = self.read(self.store.meta()).await?;
        Ok(Meta { atomic: meta.atomic && !self.shared.faults.can_tear(), ..meta })
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
}
