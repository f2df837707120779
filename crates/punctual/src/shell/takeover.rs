//! Taking partitions over, losing them, and giving them up.

use std::sync::Arc;
use std::time::Duration;

use punctual_core::{
    Answer, BootTime, Epoch, Fence, Found, Held, Inheritance, Now, Outcome, PartitionId, Query, Task, Token,
    Trust,
};
use punctual_store::{Claim, Ownership, Store, StoreError};

use super::act::{TRY_AGAIN_MAX, TRY_AGAIN_MIN, until_answered};
use super::{Done, Shell};
use crate::observer::{Note, Observer};

/// How many obstacles are read at once.
const HELD_PAGE: usize = 1_000;
/// How often a release is tried.
const RELEASES_MAX: usize = 8;

impl<S: Store> Shell<S> {
    /// Tries to take a partition over from the ownership that is to end.
    pub(super) fn claim(&mut self, now: Now, ending: Fence) {
        match self.node.fence(ending.partition) {
            // Our own: it starts nothing more until it is begun anew.
            Some(owned) if owned == ending => self.reload(now, ending),
            // It has ended, and is ours already.
            Some(_) => {}
            None => self.take(ending, Duration::ZERO),
        }
    }

    /// Attempts may start until then. After a time when others could have taken our partitions, each is begun anew.
    pub(super) fn trust_until(&mut self, now: Now, until: BootTime) {
        if self.node.trust_until(now, until) == Trust::Lapsed {
            self.lapses += 1;
            let fences: Vec<Fence> = self.node.fences().collect();
            fences.into_iter().for_each(|fence| self.reload(now, fence));
        }
    }

    /// Tries to take a partition over after a while, if it has not changed hands by then.
    fn take(&mut self, ending: Fence, wait: Duration) {
        let partition = ending.partition;
        if self.stopping.is_some() || !self.taking.insert(partition) {
            return;
        }
        let takeover = Takeover {
            store: self.store.clone(),
            observer: self.observer.clone(),
            name: self.name.clone(),
            ending,
            atomic: self.meta.atomic,
            live: self.node.live_of(partition),
        };
        let lapses = self.lapses;
        self.calls.push(Box::pin(async move {
            if !wait.is_zero() {
                super::sleep(wait).await;
            }
            match takeover.run().await {
                Some((fence, inheritance)) => Done::Taken(fence, Box::new(inheritance), lapses),
                None => Done::NotTaken(partition),
            }
        }));
    }

    pub(super) fn taken(&mut self, now: Now, fence: Fence, inheritance: Inheritance, lapses: u64) {
        self.taking.remove(&fence.partition);
        if self.is_handing_over() {
            return self.release(fence);
        }
        if lapses != self.lapses {
            // Others could have taken it while we were busy taking it.
            return self.take(fence, Duration::ZERO);
        }
        self.answer_all(fence.partition, Answer::Unknown);
        self.observer.observe(Note::PartitionTaken(fence));
        self.node.take_over(now, fence, inheritance, &mut self.effects);
        self.doubt_reports(fence.partition, &self.node.live_of(fence.partition));
        let (queues, limits) = (&self.settings.queues, &self.settings.limits);
        self.pruning.taken(now.wall, fence, queues, limits.prune_spread);
        self.note_time_now_and_then(now);
        self.hear_early_reports(now, fence.partition);
        self.look_for_ends(fence.partition);
        self.tell_when_owned();
    }

    pub(super) fn not_taken(&mut self, now: Now, partition: PartitionId) {
        self.taking.remove(&partition);
        self.lose_partition(now, partition);
        self.hear_early_reports(now, partition);
        self.tell_when_owned();
    }

    fn hear_early_reports(&mut self, now: Now, partition: PartitionId) {
        let partitions = self.meta.partitions;
        let of_partition = |(token, _): &(Token, Outcome)| token.id.partition(partitions) == partition;
        let (heard, early) = std::mem::take(&mut self.early_reports).into_iter().partition(of_partition);
        self.early_reports = early;
        let heard: Vec<(Token, Outcome)> = heard;
        for (token, outcome) in heard {
            self.reported(now, token, outcome);
        }
    }

    /// Tells those who wait for it that nothing is being taken over any more.
    pub(super) fn tell_when_owned(&mut self) {
        if self.taking.is_empty() {
            for reply in self.awaiting_owned.drain(..) {
                reply.send(()).ok();
            }
        }
    }

    /// Somebody else owns it now.
    pub(super) fn lose(&mut self, now: Now, fence: Fence) {
        if self.node.fence(fence.partition) == Some(fence) {
            self.lose_partition(now, fence.partition);
        }
    }

    fn lose_partition(&mut self, now: Now, partition: PartitionId) {
        self.node.forget(now, partition);
        self.pruning.lost(partition);
        // The store refused what they asked for, or was never told of it.
        self.answer_all(partition, Answer::NotOwner);
        self.leave_waiting(partition);
        self.leave_workers(now, partition, true);
        self.observer.observe(Note::PartitionLost(partition));
        self.continue_stopping(now);
    }

    /// Nobody knows what is on record, or something impossible happened: begin anew from the store, under
    /// a higher epoch, so that what may still be on its way cannot arrive any more.
    pub(super) fn reload(&mut self, now: Now, fence: Fence) {
        let partition = fence.partition;
        let is_past = self.node.fence(partition).is_some_and(|owned| owned != fence);
        if is_past || self.taking.contains(&partition) {
            return;
        }
        self.node.forget(now, partition);
        self.pruning.lost(partition);
        self.answer_all(partition, Answer::Unknown);
        self.observer.observe(Note::PartitionReloaded(partition));
        let wait = self.reload_wait(partition);
        self.take(fence, wait);
        self.leave_workers(now, partition, false);
        self.continue_stopping(now);
    }

    /// The first reload is at once. If nothing could be recorded since, the next ones are slower and slower, so
    /// that a partition beyond help does not keep the loop from its neighbours.
    fn reload_wait(&mut self, partition: PartitionId) -> Duration {
        let before = self.reloads.entry(partition).or_default();
        let doublings = *before;
        *before = doublings.saturating_add(1);
        match doublings {
            0 => Duration::ZERO,
            doublings => (TRY_AGAIN_MIN * (1 << doublings.min(10))).min(TRY_AGAIN_MAX),
        }
    }

    pub(super) fn release(&mut self, fence: Fence) {
        let store = self.store.clone();
        self.calls.push(Box::pin(async move {
            let mut wait = TRY_AGAIN_MIN;
            // If it cannot be said, we are an owner that is gone: whoever claims next raises the epoch all the same.
            for _ in 0..RELEASES_MAX {
                if matches!(store.release(fence).await, Ok(()) | Err(StoreError::Fenced)) {
                    break;
                }
                super::sleep(wait).await;
                wait = (2 * wait).min(TRY_AGAIN_MAX);
            }
            Done::Released(fence)
        }));
    }

    pub(super) fn released(&mut self, now: Now, fence: Fence) {
        let partition = fence.partition;
        let is_past = self.node.fence(partition).is_some_and(|owned| owned != fence);
        if is_past || self.taking.contains(&partition) {
            // It was begun anew while the store was slow to answer, and what was given up then is over.
            return;
        }
        self.node.forget(now, partition);
        self.pruning.lost(partition);
        self.answer_all(partition, Answer::Unknown);
        self.leave_waiting(partition);
        self.leave_workers(now, partition, true);
        self.observer.observe(Note::PartitionReleased(partition));
        self.continue_stopping(now);
    }
}

/// One attempt to take one partition over.
struct Takeover<S> {
    store: Arc<S>,
    observer: Arc<dyn Observer>,
    name: Box<str>,
    /// The ownership that is to end.
    ending: Fence,
    atomic: bool,
    live: Vec<Token>,
}

impl<S: Store> Takeover<S> {
    async fn run(self) -> Option<(Fence, Inheritance)> {
        let epoch = self.claim().await?;
        let fence = Fence { partition: self.ending.partition, epoch };
        Some((fence, self.inheritance().await))
    }

    async fn claim(&self) -> Option<Epoch> {
        let mut seen = self.ending.epoch;
        let mut wait = TRY_AGAIN_MIN;
        loop {
            match self.store.claim(self.ending.partition, seen, &self.name).await {
                Ok(Claim::Won(epoch)) => return Some(epoch),
                Ok(Claim::Lost(_)) | Err(StoreError::Fenced) => return None,
                Err(error) => self.observer.observe(Note::StoreTrouble(&error.to_string())),
            }
            super::sleep(wait).await;
            wait = (2 * wait).min(TRY_AGAIN_MAX);
            // Whoever was quicker may be ourselves, in a claim whose answer was lost.
            let present = self.ownership().await?;
            if present.epoch != seen && present.owner.as_deref() != Some(&*self.name) {
                return None;
            }
            seen = present.epoch;
        }
    }

    async fn ownership(&self) -> Option<Ownership> {
        let all = until_answered(&self.observer, || self.store.ownerships()).await;
        all.into_iter().find(|ownership| ownership.partition == self.ending.partition)
    }

    async fn inheritance(&self) -> Inheritance {
        let standing = until_answered(&self.observer, || self.store.standing(self.ending.partition)).await;
        let held = self.held().await;
        let live = self.live_tasks().await;
        Inheritance { standing, held, live, suspects: Default::default() }
    }

    async fn held(&self) -> Vec<Held> {
        let mut all = Vec::new();
        loop {
            let after = all.last().map(|held: &Held| held.obstacle);
            let read = || self.store.held(self.ending.partition, after, HELD_PAGE);
            let mut page = until_answered(&self.observer, read).await;
            let last = page.len() < HELD_PAGE;
            if !self.atomic {
                self.check_holders(&mut page).await;
            }
            all.append(&mut page);
            if last {
                return all;
            }
        }
    }

    /// A store that is not atomic may have recorded the end of a lane's head, and not that it left the lane; or who
    /// the head is, and not where it went: then it is still first among those parked.
    async fn check_holders(&self, page: &mut [Held]) {
        let queries: Vec<Query> = page.iter().filter_map(|held| held.holder.map(Query::Id)).collect();
        let found = until_answered(&self.observer, || self.store.find(self.ending.partition, &queries)).await;
        let held = page.iter_mut().filter(|held| held.holder.is_some());
        for (held, found) in held.zip(found) {
            held.holder = punctual_core::node::true_holder(*held, found.as_ref());
        }
    }

    /// Tasks of attempts that still run on this node; those that have ended are nobody's concern.
    async fn live_tasks(&self) -> Vec<(Token, Task)> {
        if self.live.is_empty() {
            return Vec::new();
        }
        let queries: Vec<Query> = self.live.iter().map(|token| Query::Id(token.id)).collect();
        let found = until_answered(&self.observer, || self.store.find(self.ending.partition, &queries)).await;
        let tasks = self.live.iter().zip(found);
        tasks
            .filter_map(|(token, found)| match found {
                Some(Found::Live(task)) => Some((*token, task)),
                _ => None,
            })
            .collect()
    }
}
