//! Two tasks that carry a unique key and agree in queue, lane and time are one task.

use crate::script::check;

#[test]
fn a_task_that_waits_is_replaced_kept_or_defended() {
    check(
        "
        0   accept a key=k due=10
        1   accept b key=k due=10 conflict=keep
        2   accept c key=k due=10 conflict=error
        3   accept d key=k due=10 conflict=replace
        10  tick
        ",
        "
        1 answer accept b: kept a scheduled
        2 answer accept c: conflict a
        3 refile d
        3 answer accept d: replaced
        10 start d #1
        ",
    );
}

#[test]
fn another_time_lane_or_queue_makes_another_task() {
    check(
        "
        0   accept a key=k due=10
        0   accept b key=k due=11
        0   accept c key=k due=10 lane=x
        0   accept d key=k due=10 queue=p
        12  tick
        ",
        "
        10 start a #1
        10 start c #1
        10 start d #1
        11 start b #1
        ",
    );
}

#[test]
fn a_running_task_is_never_replaced() {
    check(
        "
        0   accept a key=k due=1
        2   accept b key=k due=1
        3   accept c key=k due=1 conflict=keep
        4   succeed a
        ",
        "
        1 start a #1
        2 answer accept b: conflict a
        3 answer accept c: kept a scheduled
        4 finish a
        ",
    );
}

#[test]
fn what_has_ended_never_runs_again() {
    check(
        "
        0   accept a key=k due=1
        1   succeed a
        2   accept b key=k due=1
        3   crash
        3   accept c key=k due=1 conflict=error
        ",
        "
        1 start a #1
        1 finish a
        2 answer accept b: ended a succeeded
        3 answer accept c: conflict a
        ",
    );
}

#[test]
fn two_creates_of_one_identity_in_flight_make_one_task() {
    check(
        "
        0   hold_store finds
        0   accept a key=k due=10 conflict=keep
        0   accept b key=k due=10 conflict=keep
        1   hold_store records
        1   let_store finds
        2   let_store
        10  tick
        ",
        "
        2 answer accept b: kept a scheduled
        10 start a #1
        ",
    );
}

#[test]
fn the_same_identity_twice_in_one_request_makes_one_task() {
    check(
        "
        0   accept a b c key=k due=10
        10  tick
        ",
        "
        0 answer accept b: replaced
        0 answer accept c: replaced
        10 start c #1
        ",
    );
}

#[test]
fn a_task_that_waits_to_be_retried_is_replaced_and_starts_afresh() {
    check(
        "
        queue q attempts=2
        0   accept a key=k due=1
        1   fail a
        2   accept b key=k due=1
        2   fail b
        20  tick
        ",
        "
        1 start a #1
        1 postpone a to t11
        2 bring b to t1
        2 answer accept b: replaced
        2 start b #2
        2 postpone b to t12
        12 start b #3
        ",
    );
}

#[test]
fn a_create_that_crosses_the_end_of_its_twin_is_told_that_it_ended() {
    check(
        "
        0   accept a key=k due=1
        1   hold_answers finds
        2   accept b key=k due=1
        3   succeed a
        4   let_store
        ",
        "
        1 start a #1
        3 finish a
        4 answer accept b: ended a succeeded
        ",
    );
}

#[test]
fn a_task_in_the_store_is_replaced_there() {
    check(
        "
        limits look_ahead=10
        0   accept a key=k due=500
        1   accept b key=k due=500
        1   assert loaded == 0
        500 tick
        ",
        "
        1 refile b
        1 answer accept b: replaced
        500 start b #1
        ",
    );
}

#[test]
fn times_too_far_in_the_past_are_refused_unless_the_task_is_there_already() {
    check(
        "
        queue late run_now
        0   accept a key=k due=1
        1   succeed a
        50  accept b due=30
        50  accept c due=41
        50  accept d due=3 queue=late
        50  accept e key=k due=1
        ",
        "
        1 start a #1
        1 finish a
        50 answer accept b: past
        50 start c #1
        50 start d #1
        50 answer accept e: ended a succeeded
        ",
    );
}

#[test]
fn the_same_identity_twice_in_one_request_replaces_what_is_there_twice() {
    // The second was refused, because the first was being recorded.
    check(
        "
        0   accept a key=k due=10
        1   accept b c key=k due=10
        11  tick
        ",
        "
        1 refile c
        1 answer accept b: replaced
        1 answer accept c: replaced
        10 start c #1
        ",
    );
}

/// The same request a thousand times.
fn a_thousand_times(request: impl Fn(usize) -> String) -> String {
    (0..1_000).map(|n| format!("1 {}\n", request(n))).collect()
}

#[test]
fn a_thousand_creates_of_one_identity_at_once_wait_once_each() {
    // Each record asked all that waited again: with the number of creates, their cost grew with its square.
    let creates = a_thousand_times(|n| format!("accept a{n} key=k due=500"));
    let script = format!(
        "
        watch a999
        1   hold_store finds
        {creates}
        2   let_store
        2   assert finds == 1000
        2   assert deferrals == 999
        500 tick
        "
    );
    check(&script, "2 refile a999\n2 answer accept a999: replaced\n500 start a999 #1");
}

#[test]
fn a_thousand_creates_that_meet_a_task_in_flight_wait_once_or_twice_each() {
    let creates = a_thousand_times(|n| format!("accept b{n} key=k due=500 conflict=keep"));
    let script = format!(
        "
        watch b999
        0   accept a key=k due=500
        1   hold_store records
        1   cancel a
        {creates}
        2   let_store
        2   assert finds <= 1010
        2   assert deferrals <= 1010
        "
    );
    check(&script, "2 answer accept b999: ended a cancelled");
}
