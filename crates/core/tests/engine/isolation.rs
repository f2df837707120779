//! A stuck lane, a paused or slow queue, a missing handler slow only themselves, however much waits behind them.

use crate::script::check;

#[test]
fn a_lane_with_a_hundred_thousand_due_tasks_behind_a_failing_head() {
    check(
        "
        watch other
        auto fail stuck1
        auto succeed other
        0    accept stuck*100000 due=1 lane=x
        0    accept other due=50
        0    assert loaded <= 4000
        49   assert loaded <= 4000
        60   assert loaded <= 20
        60   assert started <= 10
        ",
        "
        50 start other #1
        50 finish other
        ",
    );
}

#[test]
fn a_paused_queue_with_a_hundred_thousand_due_tasks() {
    check(
        "
        queue paused paused
        watch other
        auto succeed *
        0    accept stuck*100000 due=1 queue=paused
        0    accept other due=50
        0    assert loaded <= 1
        60   assert loaded == 0
        60   assert loads <= 2
        ",
        "
        50 start other #1
        50 finish other
        ",
    );
}

#[test]
fn a_slow_queue_with_a_hundred_thousand_due_tasks() {
    check(
        "
        queue slow rate=10/1
        watch other
        auto succeed *
        0    accept stuck*100000 due=1 queue=slow
        0    accept other due=50
        0    assert loaded <= 2100
        49   assert loaded <= 2100
        60   assert started <= 610
        60   assert started >= 580
        ",
        "
        50 start other #1
        50 finish other
        ",
    );
}

#[test]
fn a_hundred_thousand_blocked_lanes() {
    check(
        "
        queue bad attempts=1
        watch other next7
        auto give_up stuck*
        auto succeed next*
        auto succeed other
        0    accept stuck*100000 due=1 queue=bad lane=l*
        0    accept next*20000 due=2 queue=bad lane=l*
        0    accept other due=50
        49   assert loaded <= 4000
        49   assert started == 100000
        50   crash
        50   assert loaded <= 4000
        60   auto succeed stuck7
        60   retry stuck7
        61   assert loaded <= 4000
        ",
        "
        50 start other #1
        50 finish other
        60 start next7 #1
        60 finish next7
        ",
    );
}

#[test]
fn a_handler_that_exists_nowhere_with_a_hundred_thousand_due_tasks() {
    check(
        "
        watch other
        auto succeed *
        0    accept stuck*100000 due=1 handler=nowhere
        0    accept other due=50
        49   assert loaded <= 2000
        60   assert loaded == 0
        60   assert started == 1
        70   receivers h nowhere
        71   assert ended == 100001
        ",
        "
        50 start other #1
        50 finish other
        ",
    );
}

#[test]
fn a_destination_that_hangs_with_a_hundred_thousand_due_tasks() {
    check(
        "
        watch other
        auto succeed other
        0    accept stuck*100000 due=1 destination=hanging timeout=1000
        0    accept other due=50 destination=fine
        49   assert loaded <= 2000
        60   assert started <= 21
        60   assert loaded <= 100
        ",
        "
        50 start other #1
        50 finish other
        ",
    );
}

#[test]
fn a_destination_takes_its_share_of_eight_partitions_without_reading_all_of_them_again() {
    // Each time there was room for a few, a page of every partition was read, and all but those few sent back.
    let accept = |n: usize| {
        format!("0 accept {}*250 due=1 destination=busy partition={n}\n", "abcdefgh".as_bytes()[n] as char)
    };
    let accepts: String = (0..8).map(accept).collect();
    check(
        &format!(
            "
            partitions 8
            watch nothing
            auto succeed * after=0.01
            {accepts}
            60   assert ended == 2000
            60   assert loads <= 200
            "
        ),
        "",
    );
}
