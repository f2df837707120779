//! A suite must be able to fail: each of these drivers breaks one promise, and is found out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{Change, Epoch, Fence, PartitionId, QueueId, RowKey, Timestamp, WindowId};
use punctual_store::{
    Claim, Filter, Found, Listed, Loaded, MemoryStore, Page, PageKey, Pruned, Query, Recorded, Retention,
    Standing, Store, StoreError, Swap, Wrapper, conformance,
};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Flaw {
    None,
    ClaimsWhateverWasSeen,
    WritesBeforeAnyClaim,
    IgnoresFences,
    FencesTheWholeBatch,
    LosesTheLastChange,
    TrustsStaleRefiles,
    LoadsWhatHasEnded,
    RepeatsRowsOfOneTime,
    SkipsRowsOfOneTime,
    ForgetsMovedRows,
    ForgetsIdentitiesAtTheEnd,
    ListsBackwards,
    LowersTheMark,
    PrunesTooSoon,
    SaysTooLateWhatIsLeft,
    SwapsWhateverIsThere,
    NeverExpires,
}

/// The memory driver with one flaw.
struct Broken {
    store: MemoryStore,
    flaw: Flaw,
    writes: AtomicU64,
}

impl Broken {
    fn new(flaw: Flaw) -> Broken {
        Broken { store: MemoryStore::new(4), flaw, writes: AtomicU64::new(0) }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    async fn present(&self, fence: Fence) -> Fence {
        let all = self.store.ownerships().await.expect("memory answers");
        Fence { epoch: all[usize::from(fence.partition.0)].epoch, ..fence }
    }

    fn falsify(&self, changes: &mut Vec<Change>) {
        if self.is(Flaw::LosesTheLastChange) && changes.len() > 1 {
            changes.pop();
        }
        for change in changes {
            if let Change::Refiled { task, .. } = change
                && self.is(Flaw::TrustsStaleRefiles)
            {
                task.revision += 100 * (1 + self.writes.fetch_add(1, Ordering::Relaxed) as u32);
            }
        }
    }
}

impl Wrapper for Broken {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn claim(&self, partition: PartitionId, seen: Epoch, owner: &str) -> Result<Claim, StoreError> {
        let present = self.present(Fence { partition, epoch: seen }).await.epoch;
        let seen = if self.is(Flaw::ClaimsWhateverWasSeen) { present } else { seen };
        self.store.claim(partition, seen, owner).await
    }

    async fn record(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
        let mut batch = batch.to_vec();
        for (fence, changes) in &mut batch {
            let present = self.present(*fence).await;
            if self.is(Flaw::FencesTheWholeBatch) && *fence != present {
                return vec![Recorded::Fenced; batch.len()];
            }
            if self.is(Flaw::WritesBeforeAnyClaim) && fence.epoch == Epoch(0) && *fence == present {
                return vec![Recorded::Done; batch.len()];
            }
            if self.is(Flaw::IgnoresFences) {
                *fence = present;
            }
            self.falsify(changes);
        }
        self.store.record(&batch).await
    }

    async fn standing(&self, partition: PartitionId) -> Result<Standing, StoreError> {
        let mut standing = self.store.standing(partition).await?;
        if self.is(Flaw::LowersTheMark) {
            standing
                .windows
                .iter_mut()
                .for_each(|it| it.low_water = it.low_water.min(Timestamp::from_secs(100)));
        }
        Ok(standing)
    }

    async fn load(
        &self,
        partition: PartitionId,
        window: WindowId,
        from: RowKey,
        until: Timestamp,
        limit: usize,
    ) -> Result<Loaded, StoreError> {
        let from = match self.flaw {
            Flaw::RepeatsRowsOfOneTime => RowKey::at(from.wake_at),
            Flaw::SkipsRowsOfOneTime if from.seq.0 > 0 => {
                RowKey::at(Timestamp::from_micros(from.wake_at.as_micros() + 1))
            }
            _ => from,
        };
        let mut loaded = self.store.load(partition, window, from, until, limit).await?;
        if self.is(Flaw::LoadsWhatHasEnded) {
            let ended = self.store.list(&Filter { ended: true, ..Filter::default() }, None, limit).await?;
            loaded.tasks.extend(ended.tasks.into_iter().filter_map(|listed| match listed {
                Listed::Ended(ended) if ended.task.window() == window => Some(ended.task),
                _ => None,
            }));
        }
        Ok(loaded)
    }

    async fn find(
        &self,
        partition: PartitionId,
        queries: &[Query],
    ) -> Result<Vec<Option<Found>>, StoreError> {
        let mut found = self.store.find(partition, queries).await?;
        for (query, found) in queries.iter().zip(&mut found) {
            let forgets = match (query, &found) {
                (Query::Id(id), Some(Found::Live(task))) => {
                    self.is(Flaw::ForgetsMovedRows) && task.wake_at != id.birth
                }
                (Query::Identity(_), Some(Found::Forgotten { .. })) => {
                    self.is(Flaw::ForgetsIdentitiesAtTheEnd)
                }
                _ => false,
            };
            if forgets {
                *found = None;
            }
        }
        Ok(found)
    }

    async fn list(&self, filter: &Filter, from: Option<PageKey>, limit: usize) -> Result<Page, StoreError> {
        let mut page = self.store.list(filter, from, limit).await?;
        if self.is(Flaw::ListsBackwards) {
            page.tasks.reverse();
        }
        Ok(page)
    }

    async fn prune(
        &self,
        fence: Fence,
        queue: QueueId,
        retention: Retention,
        buckets_max: usize,
    ) -> Result<Pruned, StoreError> {
        let dead_before = if self.is(Flaw::PrunesTooSoon) { Timestamp::MAX } else { retention.dead_before };
        let retention = Retention { dead_before, ..retention };
        let mut pruned = self.store.prune(fence, queue, retention, buckets_max).await?;
        if self.is(Flaw::SaysTooLateWhatIsLeft) {
            pruned.next_in = pruned.next_in.map(|wait| wait + Duration::from_secs(1));
        }
        Ok(pruned)
    }

    async fn compare_and_set(
        &self,
        now: Timestamp,
        key: &str,
        expected: Option<u64>,
        value: Option<Bytes>,
        expires_at: Option<Timestamp>,
    ) -> Result<Swap, StoreError> {
        let expected = match self.flaw {
            Flaw::SwapsWhateverIsThere => self.store.get(now, key).await?.map(|entry| entry.version),
            _ => expected,
        };
        let expires_at = expires_at.filter(|_| !self.is(Flaw::NeverExpires));
        self.store.compare_and_set(now, key, expected, value, expires_at).await
    }
}

/// Which check finds the flaw.
fn verdict(flaw: Flaw) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime is made");
    let suite = || runtime.block_on(conformance::run(async || Broken::new(flaw)));
    let panic = catch_unwind(AssertUnwindSafe(suite)).err()?;
    Some(panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

#[test]
fn the_wrapper_itself_breaks_nothing() {
    assert_eq!(verdict(Flaw::None), None);
}

#[test]
fn every_broken_driver_is_found_out_by_the_check_of_its_promise() {
    let expected = [
        (Flaw::ClaimsWhateverWasSeen, "C2 ownership::of_two_claims_one_wins"),
        (Flaw::WritesBeforeAnyClaim, "C3 ownership::nobody_writes_before_the_first_claim"),
        (Flaw::IgnoresFences, "C3 ownership::an_old_fence_changes_nothing"),
        (Flaw::FencesTheWholeBatch, "C3 ownership::only_the_stale_part_of_a_batch_is_fenced"),
        (Flaw::LosesTheLastChange, "C5 "),
        (Flaw::TrustsStaleRefiles, "C5 "),
        (Flaw::LoadsWhatHasEnded, "C5 replay::stale_changes_change_nothing"),
        (Flaw::RepeatsRowsOfOneTime, "C7 "),
        (Flaw::SkipsRowsOfOneTime, "C7 "),
        (Flaw::ForgetsMovedRows, "C5 replay::every_change_can_be_written_twice"),
        (Flaw::ForgetsIdentitiesAtTheEnd, "C6 identity::"),
        (Flaw::ListsBackwards, "C7 listing::live_tasks_are_listed_by_time"),
        (Flaw::LowersTheMark, "C7 reading::a_low_water_mark_never_falls"),
        (Flaw::PrunesTooSoon, "C8 ending::a_bucket_goes_when_its_newest_end_is_past"),
        (Flaw::SaysTooLateWhatIsLeft, "C8 ending::pruning_says_when_more_can_go"),
        (Flaw::SwapsWhateverIsThere, "map map::an_entry_is_set_only_as_expected"),
        (Flaw::NeverExpires, "map map::"),
    ];
    for (flaw, check) in expected {
        let verdict = verdict(flaw);
        let message = verdict.as_deref().unwrap_or("the suite found nothing");
        assert!(message.contains(check), "{flaw:?}: {message}, not {check}");
    }
}
