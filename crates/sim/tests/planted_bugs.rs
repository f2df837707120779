//! Bugs planted on purpose, each caught within a few seeds: the proof that the checkers can see.

use punctual_sim::bugs::Bug;
use punctual_sim::run::{listen_for_panics, run};

/// Plants a bug, and looks for a seed in which the checker of that promise notices.
fn check_caught(bug: Bug, promise: &str) {
    listen_for_panics();
    let notices =
        |seed| run(seed, Some(bug), false).violations.iter().any(|violation| violation.promise == promise);
    assert!((1..=300).any(notices), "{bug:?} did not break {promise} in three hundred seeds");
}

macro_rules! planted {
    ($($name:ident: $bug:ident breaks $promise:ident;)*) => {
        $(#[test]
        fn $name() {
            check_caught(Bug::$bug, stringify!($promise));
        })*

        #[test]
        fn every_bug_has_its_test() {
            assert_eq!(Bug::ALL.len(), [$(Bug::$bug),*].len());
        }
    };
}

planted! {
    a_task_that_was_not_written_is_missed: AcceptedIsNotWritten breaks never_lost;
    a_write_that_a_power_cut_undid_is_missed: PowerCutIsCalledDone breaks never_lost;
    an_end_that_was_not_written_is_missed: EndIsNotWritten breaks never_lost;
    a_cancel_that_was_not_written_is_noticed: CancelIsNotWritten breaks finished_once;
    a_store_that_ignores_fences_is_noticed: StoreIgnoresFences breaks fences_grow;
    a_lane_that_overtakes_its_head_is_noticed: HeldLaneIsNotWritten breaks in_order;
    an_owner_that_forgets_held_lanes_is_noticed: TakeoverForgetsHeldLanes breaks never_lost;
    a_short_look_back_is_noticed: TakeoverLooksBackOneSecond breaks never_lost;
    a_page_that_loses_a_row_is_noticed: FullPageLosesItsLastRow breaks never_lost;
    a_mark_above_something_alive_is_noticed: LowWaterIsTooHigh breaks low_water;
    a_row_filed_too_early_is_noticed: RowsAreFiledEarly breaks never_early;
    a_parked_task_passed_over_is_noticed: ParkedPageSkipsItsFirstRow breaks never_lost;
    a_unique_key_not_looked_up_is_noticed: IdentityIsNotLookedUp breaks same_is_same;
    attempts_that_share_a_fence_are_noticed: AttemptsAreNotWritten breaks fences_grow;
    a_zombie_that_trusts_itself_is_noticed: ZombieTrustsItself breaks fences_grow;
    a_hand_over_that_hides_what_runs_is_noticed: HandOverForgetsWhatRuns breaks one_at_a_time;
    a_clock_that_runs_ahead_is_noticed: ClockRunsAhead breaks never_early;
    history_dropped_too_early_is_noticed: HistoryIsDroppedEarly breaks kept;
    a_key_forgotten_too_early_is_noticed: IdentitiesAreForgottenEarly breaks kept;
    history_that_is_never_dropped_is_noticed: HistoryIsNeverDropped breaks kept;
    a_node_without_limits_is_noticed: LimitsAreIgnored breaks bounded;
    a_page_that_cannot_be_makes_an_engine_panic: PagesRepeatATask breaks never_panics;
    a_slow_take_over_is_noticed: TakeoverReadsEverything breaks served_again;
    a_node_with_a_slot_too_many_is_noticed: OneSlotTooMany breaks limits_hold;
    a_queue_without_its_limit_is_noticed: QueueLimitIsIgnored breaks limits_hold;
    a_queue_without_its_rate_is_noticed: RateIsIgnored breaks limits_hold;
    a_paused_queue_that_goes_on_is_noticed: PauseIsIgnored breaks limits_hold;
    a_crowded_destination_is_noticed: DestinationLimitIsIgnored breaks limits_hold;
    a_breaker_that_never_opens_is_noticed: BreakerNeverOpens breaks limits_hold;
    an_attempt_too_many_is_noticed: OneAttemptTooMany breaks retried_as_asked;
    an_attempt_too_few_is_noticed: OneAttemptTooFew breaks retried_as_asked;
    a_short_wait_is_noticed: WaitsAreTooShort breaks retried_as_asked;
    a_wait_that_a_new_owner_forgets_is_noticed: RetryWaitsAreNotWritten breaks retried_as_asked;
    a_target_that_is_not_given_time_is_noticed: RetryAfterIsIgnored breaks retried_as_asked;
    a_lane_that_goes_on_without_its_head_is_noticed: LanesNeverBlock breaks retried_as_asked;
    a_move_that_was_not_written_is_noticed: MoveIsNotWritten breaks amended_as_answered;
    a_change_that_was_not_written_is_noticed: ChangeIsNotWritten breaks amended_as_answered;
    a_run_that_was_only_answered_is_noticed: RunIsOnlyAnswered breaks amended_as_answered;
    a_retry_without_new_attempts_is_noticed: RetryKeepsTheCount breaks amended_as_answered;
    a_deadline_that_was_forgotten_is_noticed: LoadedTasksForgetTheirDeadline breaks expires_in_time;
    a_deadline_brought_forward_is_noticed: DeadlinesAreBroughtForward breaks expires_in_time;
    an_expired_task_that_was_cancelled_is_noticed: ExpiredIsCalledCancelled breaks expires_in_time;
    a_result_that_was_not_written_is_missed: ResultsAreNotWritten breaks results_kept;
    an_ended_task_that_is_not_found_is_missed: FindMissesWhatHasEnded breaks results_kept;
    a_clock_that_runs_behind_is_noticed: ClockRunsBehind breaks on_time;
    loads_that_take_too_long_are_noticed: LoadsTakeLongerThanTheyLookAhead breaks on_time;
    priorities_turned_round_are_noticed: PrioritiesAreTurnedRound breaks by_priority;
    a_worker_that_a_new_owner_does_not_know_of_is_noticed: WorkerLeaseIsNotWritten breaks one_at_a_time;
    more_time_that_was_only_promised_is_noticed: TouchIsIgnored breaks one_at_a_time;
    more_time_that_a_new_owner_forgets_is_noticed: TouchIsNotWritten breaks one_at_a_time;
    a_late_report_that_is_taken_is_noticed: LateReportIsTaken breaks settled_as_answered;
    a_report_that_was_only_answered_is_noticed: ReportIsOnlyAnswered breaks settled_as_answered;
    a_task_given_to_two_workers_is_noticed: ReservedTwice breaks one_at_a_time;
}
