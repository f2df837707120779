//! A task that is not started by its `expires_at` ends then, whatever it waits for. What runs is left alone.

use crate::script::check;

#[test]
fn a_task_behind_a_held_lane_expires_at_its_time_and_the_others_keep_their_order() {
    check(
        "
        0   accept head due=1 lane=x
        0   accept b due=2 lane=x expires=5
        0   accept c due=3 lane=x
        0   accept d due=4 lane=x expires=20
        10  succeed head
        11  succeed c
        12  succeed d
        ",
        "
        1 start head #1
        5 expire b
        10 finish head
        10 start c #1
        11 finish c
        11 start d #1
        12 finish d
        ",
    );
}

#[test]
fn a_task_that_waits_for_the_gate_expires_at_its_time() {
    check(
        "
        queue mail running_max=1
        0   accept busy due=1 queue=mail
        0   accept late due=1 queue=mail expires=5
        0   accept next due=2 queue=mail
        7   succeed busy
        8   succeed next
        8   assert loaded == 0
        ",
        "
        1 start busy #1
        5 expire late
        7 start next #1
        7 finish busy
        8 finish next
        ",
    );
}

#[test]
fn a_task_that_waits_for_its_destination_expires_at_its_time() {
    check(
        "
        limits destination_running_max=1 destination_waiting_max=5
        0   accept busy due=1 destination=host
        0   accept late due=1 destination=host expires=5
        6   succeed busy
        ",
        "
        1 start busy #1
        5 expire late
        6 finish busy
        ",
    );
}

#[test]
fn a_head_that_waits_to_be_retried_expires_and_the_next_goes() {
    check(
        "
        0   accept a due=1 expires=5 lane=x
        0   accept b due=1 lane=x
        0   accept c due=2 lane=x
        1   fail a
        6   succeed b
        20  succeed c
        ",
        "
        1 start a #1
        1 postpone a to t5
        5 expire a
        5 start b #1
        6 finish b
        6 start c #1
        20 finish c
        ",
    );
}

#[test]
fn a_head_whose_retry_lies_far_away_costs_no_memory_and_expires_all_the_same() {
    check(
        "
        limits look_ahead=10
        queue q retry=5000,5000
        0    accept a due=1 expires=1000 lane=x queue=q
        1    fail a
        500  assert loaded == 0
        500  accept b due=500 lane=x queue=q
        1010 tick
        ",
        "
        1 start a #1
        1 postpone a to t1000
        1000 expire a
        1000 start b #1
        ",
    );
}

#[test]
fn a_blocked_head_expires_and_its_lane_goes_on_in_order() {
    check(
        "
        limits look_ahead=10 behind_max=1
        queue q attempts=1
        auto succeed b
        auto succeed c
        0    accept a due=1 expires=100 lane=x queue=q
        0    accept b due=2 lane=x queue=q
        0    accept c due=3 lane=x queue=q
        0    accept d due=4 lane=x queue=q expires=90
        1    fail a
        50   crash
        50   take_over
        120  tick
        ",
        "
        1 start a #1
        1 block a
        100 expire a
        100 start b #1
        100 finish b
        100 start c #1
        100 finish c
        100 expire d
        ",
    );
}

#[test]
fn a_blocked_head_that_will_expire_can_still_be_mended() {
    check(
        "
        queue q attempts=1
        0    accept a due=1 expires=100 lane=x queue=q
        0    accept b due=2 lane=x queue=q
        1    fail a
        10   change a
        20   retry a
        21   succeed a
        22   succeed b
        200  assert loaded == 0
        ",
        "
        1 start a #1
        1 block a
        10 block a
        10 answer change a: done, due t100
        20 bring a to t20
        20 answer retry a: done, due t20
        20 start a #2
        21 finish a
        21 start b #1
        22 finish b
        ",
    );
}

#[test]
fn what_gives_up_after_its_deadline_does_not_block_its_lane() {
    check(
        "
        queue q attempts=1
        0    accept a due=1 expires=5 lane=x queue=q
        0    accept b due=2 lane=x queue=q
        6    fail a
        ",
        "
        1 start a #1
        6 give up a
        6 start b #1
        ",
    );
}

#[test]
fn a_running_attempt_is_not_interrupted_and_not_tried_again_too_late() {
    check(
        "
        0   accept a due=1 expires=5
        0   accept b due=1 expires=5
        9   succeed a
        9   fail b
        ",
        "
        1 start a #1
        1 start b #1
        9 finish a
        9 expire b
        ",
    );
}

#[test]
fn a_start_that_takes_too_long_to_record_is_no_start() {
    check(
        "
        queue q exclusive
        0   accept a due=1 expires=5 queue=q
        0.5 hold_answers records
        6   let_store
        7   tick
        ",
        "
        6 stop a #1
        6 expire a
        ",
    );
}

#[test]
fn whatever_is_asked_of_a_task_past_its_deadline_ends_it() {
    // In a paused queue nothing is in memory: it is ended when somebody next asks for it, and only then.
    check(
        "
        0   accept a due=1 expires=5
        0   accept b due=1 expires=5
        0   accept c due=1 expires=5
        0   accept d due=1 expires=50
        0   pause q
        6   assert loaded == 0
        6   cancel a
        6   move b to=70
        6   expire c
        6   expire d
        6   assert loaded == 0
        7   resume q
        ",
        "
        6 expire a
        6 answer cancel a: ended expired
        6 expire b
        6 answer move b: ended expired
        6 expire c
        6 answer expire c: ended expired
        6 answer expire d: done, due t1
        7 start d #1
        ",
    );
}

#[test]
fn asking_for_a_task_that_is_about_to_be_loaded_does_not_lose_it() {
    // It was brought into memory to be looked at, and put back; but the load under way counted on nobody having it.
    for ask in ["expire a", "change a if_revision=7"] {
        let script = format!(
            "
            watch a
            auto succeed *
            limits look_ahead=10
            hold_answers loads
            0    accept far due=100
            96   accept a due=99
            97   {ask}
            98   let_store
            101  assert started == 2
            "
        );
        let answer = if ask == "expire a" { "done, due t99" } else { "outdated, revision 1" };
        let what = ask.split(" if").next().expect("a word");
        check(&script, &format!("97 answer {what}: {answer}\n99 start a #1\n99 finish a"));
    }
}

#[test]
fn what_is_parked_past_its_deadline_ends_when_it_is_asked_for_or_read() {
    check(
        "
        receivers none
        0   accept a due=1 expires=5 handler=h
        0   accept b due=1 expires=5 handler=h
        0   accept c due=1 expires=50 handler=h
        6   assert loaded == 0
        6   expire a
        6   expire c
        6   assert loaded == 0
        10  receivers h
        ",
        "
        6 expire a
        6 answer expire a: ended expired
        6 answer expire c: done, due t1
        10 start c #1
        10 expire b
        ",
    );
}

#[test]
fn a_create_that_meets_a_task_past_its_deadline_is_told_that_it_has_ended() {
    check(
        "
        queue q run_now
        0   accept a due=1 key=k expires=5
        0   pause q
        6   accept again due=1 key=k conflict=replace expires=50
        6   accept once-more due=1 key=k conflict=keep
        ",
        "
        6 expire a
        6 answer accept again: ended a expired
        6 answer accept once-more: ended a expired
        ",
    );
}

#[test]
fn a_task_moved_past_its_deadline_ends_at_its_deadline() {
    check(
        "
        0   accept a due=10 expires=20
        1   move a to=50
        60  tick
        ",
        "
        1 postpone a to t20
        1 answer move a: done, due t20
        20 expire a
        ",
    );
}

#[test]
fn a_clock_set_back_puts_deadlines_off_too() {
    check(
        "
        limits running_max=1
        0   accept busy due=1
        0   accept late due=2 expires=10
        8   step_clock -6
        12  tick
        20  tick
        ",
        "
        1 start busy #1
        16 expire late
        ",
    );
}

#[test]
fn deadlines_wake_nobody_when_nothing_waits_past_its_time() {
    check(
        "
        limits look_ahead=10
        auto succeed *
        0      accept a due=1 expires=100
        0      accept b due=5000 expires=6000
        4000   assert wakes <= 2
        ",
        "
        1 start a #1
        1 finish a
        ",
    );
}
