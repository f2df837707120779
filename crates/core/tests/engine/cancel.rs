//! Cancel is definite: whatever the task is doing, the answer says what happened, and it stays true.

use crate::script::check;

#[test]
fn a_task_that_waits_is_cancelled_and_never_starts() {
    check(
        "
        0   accept a due=10
        1   cancel a
        20  tick
        20  cancel a
        ",
        "
        1 cancel a
        1 answer cancel a: cancelled
        20 answer cancel a: ended cancelled
        ",
    );
}

#[test]
fn a_task_at_the_gate_is_cancelled_and_never_starts() {
    check(
        "
        limits running_max=1
        0   accept a due=0
        0   accept b due=0
        1   cancel b
        2   succeed a
        ",
        "
        0 start a #1
        1 cancel b
        1 answer cancel b: cancelled
        2 finish a
        ",
    );
}

#[test]
fn a_task_behind_another_in_its_lane_is_cancelled_and_never_starts() {
    check(
        "
        0   accept a lane=x due=0
        0   accept b lane=x due=0
        0   accept c lane=x due=0
        1   cancel b
        2   succeed a
        ",
        "
        0 start a #1
        1 cancel b
        1 answer cancel b: cancelled
        2 finish a
        2 start c #1
        ",
    );
}

#[test]
fn a_parked_task_is_cancelled_and_never_starts() {
    check(
        "
        limits behind_max=1
        0   accept a*5 lane=x due=0
        1   cancel a4
        2   succeed a1
        2   succeed a2
        2   succeed a3
        2   succeed a5
        3   crash
        3   assert loaded == 0
        ",
        "
        0 start a1 #1
        1 cancel a4
        1 answer cancel a4: cancelled
        2 finish a1
        2 start a2 #1
        2 finish a2
        2 start a3 #1
        2 finish a3
        2 start a5 #1
        2 finish a5
        ",
    );
}

#[test]
fn a_task_far_in_the_future_is_cancelled_in_the_store() {
    check(
        "
        limits look_ahead=10
        0   accept a due=500
        0   assert loaded == 0
        1   cancel a
        600 tick
        ",
        "
        1 cancel a
        1 answer cancel a: cancelled
        ",
    );
}

#[test]
fn a_running_task_is_not_cancelled_and_the_answer_says_so() {
    check(
        "
        0   accept a due=0
        1   fail a
        10  cancel a
        10  succeed a
        11  cancel a
        ",
        "
        0 start a #1
        1 postpone a to t11
        10 cancel a
        10 answer cancel a: cancelled
        11 answer cancel a: ended cancelled
        ",
    );
}

#[test]
fn the_answer_names_the_attempt_that_runs() {
    check(
        "
        0   accept a due=0
        1   fail a
        11  cancel a
        11  succeed a
        11  cancel a
        ",
        "
        0 start a #1
        1 postpone a to t11
        11 start a #2
        11 answer cancel a: running #2
        11 finish a
        11 answer cancel a: ended succeeded
        ",
    );
}

#[test]
fn a_cancel_waits_for_what_is_being_recorded_about_its_task() {
    check(
        "
        0   accept a due=0
        0   accept b due=0
        1   hold_store records
        1   fail a
        1   succeed b
        2   cancel a
        2   cancel b
        3   let_store
        20  tick
        ",
        "
        0 start a #1
        0 start b #1
        3 postpone a to t11
        3 finish b
        3 cancel a
        3 answer cancel a: cancelled
        3 answer cancel b: ended succeeded
        ",
    );
}

#[test]
fn a_load_in_flight_cannot_bring_back_what_was_cancelled() {
    check(
        "
        limits look_ahead=10
        0   accept a due=50
        0   accept b due=50
        40  hold_answers loads
        45  tick
        46  cancel a
        47  let_store
        60  tick
        ",
        "
        46 cancel a
        46 answer cancel a: cancelled
        50 start b #1
        ",
    );
}

#[test]
fn a_page_of_parked_tasks_in_flight_cannot_bring_back_what_was_cancelled() {
    check(
        "
        limits behind_max=1
        auto succeed *
        auto fail a1
        0   accept a*4 lane=x due=0
        5   hold_answers parked
        5   auto succeed a1
        10  tick
        10  cancel a3
        11  let_store
        ",
        "
        0 start a1 #1
        0 postpone a1 to t10
        10 start a1 #2
        10 finish a1
        10 start a2 #1
        10 finish a2
        10 cancel a3
        10 answer cancel a3: cancelled
        11 start a4 #1
        11 finish a4
        ",
    );
}

#[test]
fn a_lookup_that_crosses_a_start_says_that_it_runs() {
    check(
        "
        limits look_ahead=10
        0   accept a due=50
        40  hold_answers finds
        40  cancel a
        51  let_store
        ",
        "
        50 start a #1
        51 answer cancel a: running #1
        ",
    );
}

#[test]
fn a_head_that_waits_to_be_retried_is_cancelled_and_its_lane_goes_on() {
    check(
        "
        0   accept a lane=x due=0
        0   accept b lane=x due=0
        0   fail a
        1   cancel a
        ",
        "
        0 start a #1
        0 postpone a to t10
        1 cancel a
        1 answer cancel a: cancelled
        1 start b #1
        ",
    );
}

#[test]
fn what_does_not_exist_cannot_be_cancelled() {
    check(
        "
        partitions 2
        0   accept a due=0 partition=1
        0   hand_over partition=1
        1   cancel a
        ",
        "
        0 start a #1
        0 release 1
        1 answer cancel a: not owner
        ",
    );
}

#[test]
fn a_cancel_that_was_answered_survives_a_crash() {
    check(
        "
        0   accept a lane=x due=10
        0   accept b lane=x due=11
        1   cancel a
        2   crash
        20  tick
        ",
        "
        1 cancel a
        1 answer cancel a: cancelled
        11 start b #1
        ",
    );
}

#[test]
fn a_cancel_that_was_not_recorded_is_not_answered() {
    check(
        "
        0   accept a due=10
        1   hold_store records
        1   cancel a
        2   crash
        2   let_store
        20  tick
        ",
        "
        10 start a #1
        ",
    );
}

#[test]
fn what_was_filed_while_a_page_was_read_and_then_cancelled_does_not_come_back_with_the_page() {
    // It waited beside the page, was cancelled in the store, and started when the page came.
    check(
        "
        limits look_ahead=10
        0   accept a due=50
        0   accept b due=900
        0   hold_answers loads
        46  accept c due=52
        47  cancel c
        48  let_store
        60  tick
        ",
        "
        47 cancel c
        47 answer cancel c: cancelled
        50 start a #1
        ",
    );
}
