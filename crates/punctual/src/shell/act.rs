//! Carries out what was decided: store calls and attempts run beside the loop, and come back as events.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use punctual_core::{Change, Effect, Event, Fence, Now, Outcome, Token};
use punctual_store::{Recorded, Store, StoreError};

use super::{Batch, Done, Shell};
use crate::observer::{Note, Observer};

/// Waits between tries of a read that the store did not answer.
pub(super) const TRY_AGAIN_MIN: Duration = Duration::from_millis(10);
pub(super) const TRY_AGAIN_MAX: Duration = Duration::from_secs(1);
/// So many changes are recorded from within the loop.
const SMALL_BATCH: usize = 32;

impl<S: Store> Shell<S> {
    /// Carries effects out in order, then records what changed, for all partitions or for half of them.
    pub(super) fn act(&mut self, now: Now) {
        let mut effects = std::mem::take(&mut self.effects);
        while !effects.is_empty() {
            for (fence, effect) in effects.drain(..) {
                self.carry_out(now, fence, effect);
            }
            // Some cause others, as when a worker has gone away that a task was to be given to.
            std::mem::swap(&mut effects, &mut self.effects);
        }
        self.runners.begin(&mut self.starting);
        if self.full_until.is_some_and(|until| now.boot < until) {
            return;
        }
        if let Some(mut batch) = self.node.take_batch() {
            self.write_down_debts(&mut batch);
            self.record(Arc::new(batch));
        }
    }

    /// Records a batch: a large one beside the loop, so that a store that computes does not hold it up; a small one
    /// from within, because waking another thread takes longer. A store that panics has not said what it did.
    fn record(&mut self, batch: Arc<Batch>) {
        let (store, written) = (self.store.clone(), batch.clone());
        let record = async move { store.record(&written).await };
        let is_small = batch.iter().map(|(_, changes)| changes.len()).sum::<usize>() <= SMALL_BATCH;
        if self.inline {
            return self.calls.push(Box::pin(async move { Done::Recorded(batch, record.await) }));
        }
        let unknown = |batch: &Batch| vec![Recorded::Unknown; batch.len()];
        if is_small {
            let record = AssertUnwindSafe(record).catch_unwind();
            self.calls.push(Box::pin(async move {
                let answers = record.await.unwrap_or_else(|_| unknown(&batch));
                Done::Recorded(batch, answers)
            }));
        } else {
            let record = tokio::spawn(record);
            self.calls.push(Box::pin(async move {
                let answers = record.await.unwrap_or_else(|_| unknown(&batch));
                Done::Recorded(batch, answers)
            }));
        }
    }

    fn carry_out(&mut self, now: Now, fence: Fence, effect: Effect) {
        match effect {
            Effect::Answer(no, answer) => self.answer(no, answer),
            Effect::StartAttempt(attempt) => self.start(now, attempt),
            Effect::StopAttempt(token) => self.stop_attempt(now, token),
            Effect::ReleasePartition(fence) => self.release(fence),
            Effect::ReloadPartition => self.reload(now, fence),
            Effect::ForwardReport(token, outcome) => self.forward(token, outcome),
            Effect::LoadTasks { .. } | Effect::LoadParked { .. } | Effect::FindTasks(..) => {
                self.read(fence, effect)
            }
            Effect::OfferTask(_)
            | Effect::WithdrawOffer(_)
            | Effect::DeclineOffer(_)
            | Effect::AdoptAttempt(_)
            | Effect::ForgetAttempt(_) => {
                unreachable!("the node keeps these to itself")
            }
        }
    }

    fn read(&mut self, fence: Fence, effect: Effect) {
        let (store, observer, partition) = (self.store.clone(), self.observer.clone(), fence.partition);
        self.calls.push(Box::pin(async move {
            match effect {
                Effect::LoadTasks { window, from, until, limit } => {
                    let read = || store.load(partition, window, from, until, limit);
                    Done::Loaded(fence, window, until_answered(&observer, read).await)
                }
                Effect::LoadParked { obstacle, from, limit } => {
                    let read = || store.parked(partition, obstacle, from, limit);
                    Done::Parked(fence, obstacle, until_answered(&observer, read).await)
                }
                Effect::FindTasks(no, queries) => {
                    let read = || store.find(partition, &queries);
                    Done::Found(fence, no, until_answered(&observer, read).await)
                }
                _ => Done::StillTrying,
            }
        }));
    }

    pub(super) fn recorded(&mut self, now: Now, batch: Arc<Batch>, answers: Vec<Recorded>) {
        self.node.batch_done();
        self.note_time_now_and_then(now);
        for ((fence, changes), answer) in batch.iter().zip(answers) {
            match answer {
                Recorded::Done => {
                    self.observer.observe(Note::Recorded(*fence, changes));
                    self.tell_of_ends(changes);
                    self.tell_workers(changes);
                    self.pruning.recorded(*fence, changes, &self.settings.queues);
                    self.reloads.remove(&fence.partition);
                    self.node.handle(now, *fence, Event::ChangesRecorded, &mut self.effects);
                }
                Recorded::Fenced => self.lose(now, *fence),
                Recorded::Unknown => self.reload(now, *fence),
                Recorded::Full => self.refused(now, *fence, changes),
            }
        }
    }

    /// The store is full. Without what is new it may have room; if there was nothing new, it is asked again later.
    fn refused(&mut self, now: Now, fence: Fence, changes: &[Change]) {
        if !changes.iter().any(Change::is_new) {
            self.observer.observe(Note::StoreTrouble("the disk is full: what has ended cannot be recorded"));
            self.full_until = Some(now.boot + TRY_AGAIN_MAX);
        }
        self.node.handle(now, fence, Event::ChangesRefused(changes.to_vec()), &mut self.effects);
    }

    fn tell_of_ends(&mut self, changes: &[Change]) {
        if self.waiters.is_empty() {
            return;
        }
        for change in changes {
            if let Change::Ended { task, end, .. } = change {
                self.task_ended(task, end);
            }
        }
    }

    /// Alone, there is nobody to forward to. In a cluster the membership layer listens for these.
    fn forward(&mut self, token: Token, outcome: Outcome) {
        if let Some(forward_to) = &self.forward_to {
            forward_to.try_send((token, outcome)).ok();
        }
    }
}

/// Asks the store again and again, more and more slowly, until it answers. For reads only.
pub(super) async fn until_answered<T, F: Future<Output = Result<T, StoreError>>>(
    observer: &Arc<dyn Observer>,
    mut read: impl FnMut() -> F,
) -> T {
    let mut wait = TRY_AGAIN_MIN;
    loop {
        match read().await {
            Ok(answer) => return answer,
            Err(error) => observer.observe(Note::StoreTrouble(&error.to_string())),
        }
        super::sleep(wait).await;
        wait = (2 * wait).min(TRY_AGAIN_MAX);
    }
}
