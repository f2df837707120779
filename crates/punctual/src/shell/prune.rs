//! Drops old history beside the loop: when `Pruning` says so, one queue of one partition at a time.

use std::time::Duration;

use punctual_core::{Now, Prune, Pruned, QueueId, QueueSettings};
use punctual_store::{Store, StoreError};

use super::{Done, Shell};
use crate::observer::Note;

impl<S: Store> Shell<S> {
    /// Begins to drop what is due, if anything is. A store that takes its time over it holds up nobody.
    pub(super) fn prune(&mut self, now: Now) {
        if self.stopping.is_some() {
            return;
        }
        let Some(prune) = self.pruning.begin(now.wall, &self.settings.queues) else { return };
        let (store, buckets_max) = (self.store.clone(), self.settings.limits.prune_buckets_max);
        let call = async move { store.prune(prune.fence, prune.queue, prune.retention, buckets_max).await };
        if self.inline {
            return self.calls.push(Box::pin(async move { Done::Pruned(prune, call.await) }));
        }
        let call = tokio::spawn(call);
        self.calls.push(Box::pin(async move {
            let answer = call.await.unwrap_or_else(|panic| Err(StoreError::Unknown(panic.into())));
            Done::Pruned(prune, answer)
        }));
    }

    /// Whatever went wrong, history can wait: it is tried again later.
    pub(super) fn pruned(&mut self, now: Now, prune: Prune, answer: Result<Pruned, StoreError>) {
        match &answer {
            Ok(Pruned { buckets: 0, .. }) | Err(StoreError::Fenced) => {}
            Ok(pruned) => {
                self.observer.observe(Note::HistoryDropped(prune.fence, prune.queue, pruned.buckets))
            }
            Err(error) => self.observer.observe(Note::StoreTrouble(&error.to_string())),
        }
        self.pruning.done(now.wall, answer.ok(), &self.settings.queues);
    }

    /// How long the loop may sleep before there is history to drop.
    pub(super) fn prune_delay(&self, now: Now) -> Option<Duration> {
        let wake_at = self.pruning.wake_at().filter(|_| self.stopping.is_none());
        wake_at.map(|at| at.since(now.wall))
    }

    /// Called before a queue has these settings.
    pub(super) fn retention_may_change(&mut self, now: Now, queue: QueueId, settings: &QueueSettings) {
        let keeps = |settings: &QueueSettings| (settings.retention(now.wall), settings.keep_bytes);
        if self.settings.queues.own(queue).map(keeps) != Some(keeps(settings)) {
            self.pruning.retention_changed(now.wall, queue, self.settings.limits.prune_spread);
        }
    }
}
