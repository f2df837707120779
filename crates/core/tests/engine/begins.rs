//! That an attempt has begun is put on record when it has run for a moment, or when somebody relies on it.

use crate::script::check;

#[test]
fn what_is_over_in_a_moment_is_written_down_once_and_what_lasts_is_noted() {
    check(
        "
        limits unnoted_max=2
        show begins
        0   accept short due=1
        0   accept long due=1
        2   succeed short
        9   succeed long
        ",
        "
        1 start short #1
        1 start long #1
        2 finish short
        3 begin long #1
        9 finish long
        ",
    );
}

#[test]
fn a_node_with_nothing_that_lasts_is_not_woken_for_it() {
    check(
        "
        limits unnoted_max=2
        0   accept a due=1
        1   succeed a
        1   accept b due=5
        5   succeed b
        60  tick
        60  assert records <= 4
        60  assert wakes <= 5
        ",
        "
        1 start a #1
        1 finish a
        5 start b #1
        5 finish b
        ",
    );
}

#[test]
fn what_ends_out_of_turn_does_not_hide_what_lasts() {
    check(
        "
        limits unnoted_max=2
        show begins
        0   accept first due=1
        0   accept second due=2
        0   accept third due=2.5
        2.5 succeed second
        9   succeed first
        9   succeed third
        ",
        "
        1 start first #1
        2 start second #1
        2.5 start third #1
        2.5 finish second
        3 begin first #1
        5 begin third #1
        9 finish first
        9 finish third
        ",
    );
}

#[test]
fn a_retry_within_the_moment_counts_its_own() {
    check(
        "
        limits unnoted_max=2
        queue q retry=1
        show begins
        0   accept a due=1
        1   fail a
        9   succeed a
        ",
        "
        1 start a #1
        1 postpone a to t2
        2 start a #2
        4 begin a #2
        9 finish a
        ",
    );
}

#[test]
fn whoever_is_promised_more_time_is_on_record_before() {
    check(
        "
        limits unnoted_max=5
        queue q timeout=30
        show begins
        0   accept a due=1 worker
        1   reserve q 1
        2   touch a for=10
        3   crash
        4   take_over
        5   reserve q 1
        20  tick
        40  tick
        ",
        "
        1 start a #1
        2 begin a #1
        2 answer touch a: prolonged
        34 stop a #1
        34 postpone a to t44
        ",
    );
}

#[test]
fn what_runs_when_a_partition_is_handed_over_is_put_on_record_at_once() {
    check(
        "
        limits unnoted_max=5
        queue q timeout=30
        show begins
        0   accept a due=1
        2   hand_over to=b
        3   succeed a
        ",
        "
        1 start a #1
        2 begin a #1
        2 release 0
        3 finish a
        ",
    );
}

#[test]
fn starts_that_must_be_on_record_first_do_not_wait_for_the_moment() {
    check(
        "
        limits unnoted_max=5
        queue q exclusive
        show begins
        0   accept a due=1
        2   succeed a
        ",
        "
        1 begin a #1
        1 start a #1
        2 finish a
        ",
    );
}
