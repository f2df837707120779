//! Tasks wait for their time, start when it comes and never before, and are tried again when they fail.

use crate::script::check;

#[test]
fn a_failed_attempt_is_retried_later_and_later() {
    check(
        "
        0   accept rent lane=ana due=0
        0   fail rent
        10  tick
        10  fail rent
        30  tick
        30  succeed rent
        ",
        "
        0 start rent #1
        0 postpone rent to t10
        10 start rent #2
        10 postpone rent to t30
        30 start rent #3
        30 finish rent
        ",
    );
}

#[test]
fn tasks_start_at_their_time_whatever_the_order_they_came_in() {
    check(
        "
        auto succeed *
        0   accept c due=3.5
        0   accept a due=0.001
        0   accept b due=3.499
        0   accept d due=86400
        86399.999 tick
        86400 tick
        ",
        "
        0.001 start a #1
        0.001 finish a
        3.499 start b #1
        3.499 finish b
        3.5 start c #1
        3.5 finish c
        86400 start d #1
        86400 finish d
        ",
    );
}

#[test]
fn a_target_that_asks_for_more_time_gets_it() {
    check(
        "
        0   accept a due=1
        1   fail a retry_after=60
        61  fail a retry_after=1
        ",
        "
        1 start a #1
        1 postpone a to t61
        61 start a #2
        61 postpone a to t81
        ",
    );
}

#[test]
fn an_idle_node_is_not_woken() {
    check(
        "
        auto succeed *
        0      accept a due=1
        0      accept far due=50000
        40000  assert wakes <= 2
        ",
        "
        1 start a #1
        1 finish a
        ",
    );
}

#[test]
fn a_task_that_expires_before_it_can_start_ends_as_expired() {
    check(
        "
        limits running_max=1
        0   accept busy due=1
        0   accept late due=1 expires=5
        0   accept early due=2 expires=100 lane=x
        6   succeed busy
        7   succeed early
        ",
        "
        1 start busy #1
        5 expire late
        6 start early #1
        6 finish busy
        7 finish early
        ",
    );
}

#[test]
fn a_retry_after_the_deadline_ends_as_expired_and_its_lane_goes_on() {
    check(
        "
        0   accept a due=1 expires=5 lane=x
        0   accept b due=1 lane=x
        1   fail a
        20  tick
        ",
        "
        1 start a #1
        1 postpone a to t5
        5 expire a
        5 start b #1
        ",
    );
}

#[test]
fn a_clock_set_back_neither_fires_again_nor_freezes_what_waits() {
    check(
        "
        auto succeed *
        0   accept a due=10
        0   accept b due=100
        20  step_clock -50
        20  accept c due=0
        60  tick
        200 tick
        ",
        "
        10 start a #1
        10 finish a
        50 start c #1
        50 finish c
        150 start b #1
        150 finish b
        ",
    );
}

#[test]
fn a_clock_set_back_below_a_low_water_mark_keeps_nobody_waiting() {
    // No row is filed below a mark. New tasks lay at the mark, and waited until the clock had come back to it.
    check(
        "
        show marks
        limits left_per_mark=1 look_ahead=10
        auto succeed *
        0   accept a due=1000
        0   accept b due=1001
        1001 step_clock -1000
        1001 accept c due=6 lane=x
        1010 crash
        1010 take_over
        1010 accept d due=15 lane=x
        1010 accept e due=16
        1011 move e to=18
        1020 tick
        ",
        "
        1000 start a #1
        1000 mark t1000
        1000 finish a
        1001 start b #1
        1001 mark t1001
        1001 finish b
        1006 start c #1
        1006 finish c
        1011 refile e
        1011 answer move e: done, due t1001
        1015 start d #1
        1015 finish d
        1018 start e #1
        1018 finish e
        ",
    );
}

#[test]
fn a_head_that_is_no_longer_due_gives_its_lane_back() {
    // Behind it at the gate, `b` would have to let `c` go first, which came after it.
    check(
        "
        limits running_max=1
        0   accept busy due=0
        0   accept a due=10 lane=x
        20  step_clock -15
        20  accept b due=5 lane=x
        20  accept c due=5
        21  succeed busy
        22  succeed b
        23  succeed c
        26  tick
        ",
        "
        0 start busy #1
        21 start b #1
        21 finish busy
        22 start c #1
        22 finish b
        23 finish c
        25 start a #1
        ",
    );
}

#[test]
fn a_head_that_is_granted_when_it_is_no_longer_due_gives_its_lane_back() {
    // The grant, which another partition made room for, is the first that its own hears after the step.
    check(
        "
        partitions 2
        limits running_max=1
        0   accept busy due=0 partition=1
        0   accept a due=10 lane=x partition=0
        20  step_clock -15
        21  succeed busy
        21  accept b due=5 lane=x partition=0
        22  succeed b
        26  tick
        ",
        "
        0 start busy #1
        21 finish busy
        21 start b #1
        22 finish b
        25 start a #1
        ",
    );
}

#[test]
fn a_head_that_was_interrupted_and_is_no_longer_due_gives_its_lane_back() {
    check(
        "
        0   accept a due=10 lane=x
        11  hold_store records
        11  interrupt a
        12  step_clock -8
        12  let_store
        12  accept b due=4 lane=x
        13  succeed b
        20  tick
        ",
        "
        10 start a #1
        12 refile a
        12 start b #1
        13 finish b
        18 start a #2
        ",
    );
}

#[test]
fn a_task_at_a_mark_starts_by_the_clock_as_it_is_also_when_its_start_is_recorded_first() {
    check(
        "
        limits left_per_mark=1 look_ahead=10
        queue q exclusive
        auto succeed *
        0    accept a due=1000
        0    accept b due=1001
        1001 step_clock -1000
        1001 accept c due=6
        1020 tick
        ",
        "
        1000 start a #1
        1000 finish a
        1001 start b #1
        1001 finish b
        1006 start c #1
        1006 finish c
        ",
    );
}

#[test]
fn a_clock_set_forward_starts_what_has_become_due() {
    check(
        "
        auto succeed *
        0   accept a due=1000
        0   accept b due=2000
        20  step_clock 1500
        21  tick
        ",
        "
        20 start a #1
        20 finish a
        ",
    );
}

#[test]
fn a_clock_that_steps_does_not_end_a_lease() {
    check(
        "
        0   accept a due=1
        10  step_clock 5000
        20  step_clock -9000
        30  succeed a
        ",
        "
        1 start a #1
        30 finish a
        ",
    );
}

#[test]
fn a_write_with_an_unknown_outcome_loses_nothing_and_repeats_no_report() {
    check(
        "
        0   accept a due=1
        0   accept b due=1
        2   tear after=0
        2   succeed a
        3   tear after=99
        3   succeed b
        ",
        "
        1 start a #1
        1 start b #1
        2 unknown
        2 finish a
        3 unknown
        ",
    );
}

#[test]
fn a_node_that_is_no_longer_sure_of_its_partitions_starts_nothing() {
    check(
        "
        trust until=5
        auto succeed *
        0   accept a due=4
        0   accept b due=6
        20  tick
        ",
        "
        4 start a #1
        4 finish a
        ",
    );
}
