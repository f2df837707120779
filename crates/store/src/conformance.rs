//! The contract as a suite: a driver conforms when [`run`] returns.
//!
//! Each check gets a fresh store and is named after what it proves; the letters are those of the contract.
//! C1 needs a store that can be opened again: drivers with a disk also call [`run_reopened`]. A check that
//! fails panics, and the suite's panic names it.

mod ending;
mod identity;
mod listing;
mod map;
mod model;
mod owner;
mod ownership;
mod reading;
mod replay;

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use punctual_core::{Epoch, PartitionId};

use crate::Store;

pub(crate) use self::model::{History, View};
pub(crate) use self::owner::Owner;
#[cfg(test)]
pub(crate) use self::owner::{end, ended, with_key};

/// How many partitions the suite writes to. A fresh store has at least as many.
pub const PARTITIONS_MIN: u16 = 4;

macro_rules! checks {
    ($fresh:ident: $($promise:literal $check:path,)*) => {$(
        let store = $fresh().await;
        let name = concat!($promise, " ", stringify!($check));
        // In a box each, or the compiler takes a minute over forty futures in one.
        if AssertUnwindSafe(Box::pin($check(&store))).catch_unwind().await.is_err() {
            panic!("the store does not conform: {name}");
        }
    )*};
}

/// Runs every check, each on a store of its own that has at least [`PARTITIONS_MIN`] partitions and is empty.
///
/// # Panics
///
/// When the store breaks its contract; the message names the check.
pub async fn run<S: Store>(fresh: impl AsyncFn() -> S) {
    checks!(fresh:
        "C2" ownership::a_fresh_store_belongs_to_nobody,
        "C2" ownership::of_two_claims_one_wins,
        "C2" ownership::many_claims_at_once_have_one_winner,
        "C2" ownership::a_release_leaves_no_owner_and_keeps_the_epoch,
        "C3" ownership::nobody_writes_before_the_first_claim,
        "C3" ownership::an_old_fence_changes_nothing,
        "C3" ownership::only_the_stale_part_of_a_batch_is_fenced,
        "C3" ownership::an_old_fence_neither_releases_nor_prunes,
        "C4" ownership::a_new_owner_sees_all_that_was_done,
        "C4" ownership::a_record_that_races_a_claim_is_seen_or_fenced,
        "C5" replay::every_change_can_be_written_twice,
        "C5" replay::stale_changes_change_nothing,
        "C5" replay::an_attempt_that_ended_does_not_begin_again,
        "C5" replay::records_of_one_owner_at_once_all_count,
        "C6" ending::what_has_ended_is_never_live,
        "C6" ending::an_end_is_found_by_id_with_its_result,
        "C6" ending::a_dead_task_can_be_revived_and_end_again,
        "C6" identity::an_identity_leads_to_its_task,
        "C6" identity::an_identity_outlives_its_history_until_it_is_forgotten,
        "C6" identity::an_identity_is_kept_from_its_last_end_on,
        "C7" reading::a_window_is_read_in_order,
        "C7" reading::a_window_pages_stably_while_rows_come_and_go,
        "C7" reading::a_load_says_what_comes_next,
        "C7" reading::windows_do_not_mix,
        "C7" reading::parked_rows_page_under_their_obstacle_only,
        "C7" reading::a_moved_task_is_found_where_it_lies,
        "C7" reading::obstacles_page_in_order,
        "C7" reading::schedules_page_in_order_of_name,
        "C7" reading::a_new_owner_learns_windows_marks_and_leases,
        "C7" reading::a_low_water_mark_never_falls,
        "C7" listing::live_tasks_are_listed_by_time_across_windows_and_partitions,
        "C7" listing::ended_tasks_are_listed_by_birth,
        "C7" listing::a_filter_leaves_out_what_does_not_match,
        "C7" listing::pages_are_stable_while_tasks_come_and_go,
        "C7" listing::a_needle_is_found_in_a_haystack,
        "C8" ending::a_bucket_goes_when_its_newest_end_is_past,
        "C8" ending::buckets_go_a_few_at_a_time,
        "C8" ending::pruning_says_when_more_can_go,
        "C8" ending::a_budget_of_bytes_drops_the_oldest_first,
        "C8" ending::the_oldest_goes_to_its_end_before_the_next,
        "C8" ending::bytes_are_counted_once_and_taken_back,
        "C8" ending::pruning_touches_one_queue_of_one_partition,
        "map" map::an_entry_is_set_only_as_expected,
        "map" map::of_many_writers_one_wins,
        "map" map::versions_grow_across_removal_and_expiry,
        "map" map::an_expired_entry_is_absent,
        "map" map::entries_page_in_order_under_their_prefix,
        "C5" replay::random_histories_read_like_a_naive_model,
    );
}

/// C1 for drivers that keep their data: `open` opens the same store each time, empty at first.
///
/// # Panics
///
/// When something that was answered is gone after the store was dropped and opened again.
pub async fn run_reopened<S: Store>(open: impl AsyncFn() -> S) {
    let partition = PartitionId(1);
    let mut history = History::new(1, partition);
    {
        let store = open().await;
        let owner = Owner::claim(&store, partition).await;
        for _ in 0..20 {
            owner.record(history.batch()).await;
        }
    }
    let store = open().await;
    assert_eq!(owner::epoch(&store, partition).await, Epoch(1), "the claim is still known");
    let owner = Owner::claim(&store, partition).await;
    View::read(&owner, &history).await.expect_equal(&history.view());
    owner.record(history.batch()).await;
    View::read(&owner, &history).await.expect_equal(&history.view());
}
