//! The store as it truly is: notes what was written whole, before any fault can hide it. Bugs are planted here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use punctual::clock::SimulatedClock;
use punctual_core::{
    Change, EndState, Epoch, Fence, Obstacle, PartitionId, QueueId, RowKey, Task, TaskId, Timestamp, WindowId,
};
use punctual_store::{
    Claim, Filter, Found, Held, Listed, Loaded, Pruned, Query, Recorded, Retention, Standing, Store,
    StoreError, Tear, TearableStore, Wrapper,
};

use crate::bugs::Bug;
use crate::history::{Happening, History};
use crate::machine::SimStore;
use crate::targets::pass;
use crate::world::PARTITIONS;

/// No run has so many tasks.
const ROWS_MAX: usize = 10_000;

/// The store as it truly is.
#[derive(Clone)]
pub struct Watched {
    pub store: SimStore,
    pub history: Arc<History>,
    pub clock: SimulatedClock,
    pub bug: Option<Bug>,
}

impl Watched {
    fn written(&self, fence: Fence, changes: &[Change]) {
        let at = self.clock.true_now().wall;
        self.history.note(at, Happening::Written { fence, changes: changes.to_vec() });
    }

    async fn write(&self, asked: &[(Fence, Vec<Change>)], tears: &[Tear]) -> Vec<Recorded> {
        let batch = self.bug.map_or_else(|| asked.to_vec(), |bug| bug.bend_batch(asked));
        let mut answers = self.store.record_torn(&batch, tears).await;
        for (place, answer) in answers.iter_mut().enumerate() {
            let ((fence, changes), tear) = (&batch[place], &tears[place]);
            if *answer == Recorded::Fenced && self.bug == Some(Bug::StoreIgnoresFences) {
                *answer = self.write_unfenced(*fence, changes).await;
            }
            if *answer == Recorded::Unknown && self.bug == Some(Bug::PowerCutIsCalledDone) {
                *answer = Recorded::Done;
            }
            if *answer == Recorded::Done && *tear == Tear::Whole {
                // What the owner believes is written, whatever a planted bug made of it.
                self.written(*fence, &asked[place].1);
                self.check_marks(*fence, changes).await;
            } else if *tear != Tear::Whole || *answer == Recorded::Unknown {
                self.history.note(self.clock.true_now().wall, Happening::Torn(changes.clone()));
            }
        }
        answers
    }

    /// Looks below each mark that was just written.
    async fn check_marks(&self, fence: Fence, changes: &[Change]) {
        for change in changes {
            let Change::LowWater(window, mark) = change else { continue };
            let below = self.store.load(fence.partition, *window, RowKey::FIRST, *mark, 1).await;
            if let Some(task) = below.ok().and_then(|below| below.tasks.into_iter().next()) {
                let what = format!("task {} lives at {:?}, below the mark {mark:?}", task.id, task.wake_at);
                self.history.note(self.clock.true_now().wall, Happening::MarkPassed(what));
            }
        }
    }

    /// What has ended in a queue of a partition, and is still there.
    async fn ended(&self, partition: PartitionId, queue: QueueId) -> BTreeMap<TaskId, (EndState, Timestamp)> {
        let filter = Filter { queue: Some(queue), ended: true, ..Filter::default() };
        let page = self.store.list(&filter, None, ROWS_MAX).await.unwrap_or_default();
        let ended = page.tasks.into_iter().filter_map(|listed| match listed {
            Listed::Ended(ended) => Some((ended.task.id, (ended.end.state, ended.end.at))),
            Listed::Live(_) => None,
        });
        ended.filter(|(id, _)| id.partition(PARTITIONS) == partition).collect()
    }

    /// As a store without fences would: under whatever epoch is in force.
    async fn write_unfenced(&self, fence: Fence, changes: &[Change]) -> Recorded {
        let ownerships = self.store.ownerships().await.unwrap_or_default();
        let present = ownerships.iter().find(|ownership| ownership.partition == fence.partition);
        let Some(present) = present else { return Recorded::Fenced };
        let forged = Fence { epoch: present.epoch, ..fence };
        let answers = self.store.record(&[(forged, changes.to_vec())]).await;
        answers.first().copied().unwrap_or(Recorded::Fenced)
    }
}

impl TearableStore for Watched {
    async fn record_torn(&self, batch: &[(Fence, Vec<Change>)], tears: &[Tear]) -> Vec<Recorded> {
        self.write(batch, tears).await
    }
}

impl Wrapper for Watched {
    type Inner = SimStore;

    fn inner(&self) -> &SimStore {
        &self.store
    }

    async fn claim(&self, partition: PartitionId, seen: Epoch, owner: &str) -> Result<Claim, StoreError> {
        let claim = self.store.claim(partition, seen, owner).await?;
        if let Claim::Won(epoch) = claim {
            self.history.note(self.clock.true_now().wall, Happening::Claimed { partition, epoch });
        }
        Ok(claim)
    }

    async fn record(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
        self.write(batch, &vec![Tear::Whole; batch.len()]).await
    }

    async fn standing(&self, partition: PartitionId) -> Result<Standing, StoreError> {
        let mut standing = self.store.standing(partition).await?;
        if self.bug == Some(Bug::TakeoverReadsEverything) {
            pass(Duration::from_secs(5)).await;
        }
        if let Some(bug) = self.bug {
            bug.bend_standing(self.clock.true_now().wall, &mut standing);
        }
        Ok(standing)
    }

    async fn held(
        &self,
        partition: PartitionId,
        after: Option<Obstacle>,
        limit: usize,
    ) -> Result<Vec<Held>, StoreError> {
        let held = self.store.held(partition, after, limit).await?;
        Ok(if self.bug == Some(Bug::TakeoverForgetsHeldLanes) { Vec::new() } else { held })
    }

    async fn load(
        &self,
        partition: PartitionId,
        window: WindowId,
        from: RowKey,
        until: Timestamp,
        limit: usize,
    ) -> Result<Loaded, StoreError> {
        if self.bug == Some(Bug::LoadsTakeLongerThanTheyLookAhead) {
            pass(Duration::from_secs(6)).await;
        }
        let mut loaded = self.store.load(partition, window, from, until, limit).await?;
        if let Some(bug) = self.bug {
            bug.bend_loaded(limit, &mut loaded);
        }
        Ok(loaded)
    }

    async fn parked(
        &self,
        partition: PartitionId,
        obstacle: Obstacle,
        from: RowKey,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError> {
        let mut tasks = self.store.parked(partition, obstacle, from, limit).await?;
        if self.bug == Some(Bug::ParkedPageSkipsItsFirstRow) && tasks.len() > 1 {
            tasks.remove(0);
        }
        Ok(tasks)
    }

    async fn find(
        &self,
        partition: PartitionId,
        queries: &[Query],
    ) -> Result<Vec<Option<Found>>, StoreError> {
        let mut found = self.store.find(partition, queries).await?;
        if self.bug == Some(Bug::IdentityIsNotLookedUp) {
            for (query, found) in queries.iter().zip(&mut found) {
                found.take_if(|_| matches!(query, Query::Identity(_)));
            }
        }
        if self.bug == Some(Bug::FindMissesWhatHasEnded) {
            found.iter_mut().for_each(|found| _ = found.take_if(|found| matches!(found, Found::Ended(_))));
        }
        Ok(found)
    }

    async fn prune(
        &self,
        fence: Fence,
        queue: QueueId,
        mut retention: Retention,
        buckets_max: usize,
    ) -> Result<Pruned, StoreError> {
        match self.bug {
            Some(Bug::HistoryIsNeverDropped) => return Ok(Pruned::default()),
            Some(bug) => bug.bend_retention(&mut retention),
            None => {}
        }
        let before = self.ended(fence.partition, queue).await;
        let pruned = self.store.prune(fence, queue, retention, buckets_max).await;
        let after = self.ended(fence.partition, queue).await;
        let is_past = |(state, at): (EndState, Timestamp)| match state {
            EndState::Dead => at < retention.dead_before,
            EndState::Succeeded | EndState::Cancelled | EndState::Expired => at < retention.finished_before,
        };
        for (id, end) in before {
            // When the power went meanwhile, whatever may be gone may be gone.
            let is_gone = match pruned {
                Ok(_) => !after.contains_key(&id),
                Err(StoreError::Fenced) => false,
                Err(_) => is_past(end),
            };
            if is_gone {
                self.history.note(self.clock.true_now().wall, Happening::Dropped { id, end });
            }
        }
        pruned
    }
}
