//! Tasks of one lane run one at a time, in order, across retries, crashes and changes of owner.

use crate::script::check;

#[test]
fn a_failing_task_holds_up_its_lane_but_not_its_partition() {
    check(
        "
        0   accept rent lane=ana due=0
        0   accept food lane=ana due=1
        0   accept book lane=ben due=1
        0   fail rent
        1   succeed book
        10  succeed rent
        10  succeed food
        ",
        "
        0 start rent #1
        0 postpone rent to t10
        1 start book #1
        1 finish book
        10 start rent #2
        10 finish rent
        10 start food #1
        10 finish food
        ",
    );
}

#[test]
fn tasks_of_one_time_run_in_order_of_acceptance() {
    check(
        "
        auto succeed *
        0   accept a lane=x due=5
        0   accept b lane=x due=5
        0   accept c lane=x due=4
        9   tick
        ",
        "
        4 start c #1
        4 finish c
        5 start a #1
        5 finish a
        5 start b #1
        5 finish b
        ",
    );
}

#[test]
fn a_task_that_is_new_does_not_overtake_one_that_is_due_within_the_same_tick() {
    check(
        "
        auto succeed *
        0       accept a lane=x due=1.0001
        1.0001  accept b lane=x due=1.0001
        9       tick
        ",
        "
        1.00025 start a #1
        1.00025 finish a
        1.00025 start b #1
        1.00025 finish b
        ",
    );
}

#[test]
fn a_lane_longer_than_memory_runs_in_order() {
    check(
        "
        limits behind_max=2
        show parks holds
        0   accept t*6 lane=x due=1
        1   succeed t1
        1   succeed t2
        1   succeed t3
        1   succeed t4
        1   succeed t5
        1   succeed t6
        ",
        "
        1 start t1 #1
        1 hold lane x
        1 park t4 under lane x
        1 park t5 under lane x
        1 park t6 under lane x
        1 finish t1
        1 start t2 #1
        1 finish t2
        1 start t3 #1
        1 finish t3
        1 start t4 #1
        1 finish t4
        1 start t5 #1
        1 finish t5
        1 start t6 #1
        1 finish t6
        1 free lane x
        ",
    );
}

#[test]
fn order_holds_when_the_owner_crashes_while_the_head_runs() {
    check(
        "
        limits behind_max=2
        0   accept t*5 lane=x due=0
        1   crash
        1   succeed t1
        1   succeed t2
        1   succeed t3
        1   succeed t4
        1   succeed t5
        ",
        "
        0 start t1 #1
        1 start t1 #2
        1 finish t1
        1 start t2 #1
        1 finish t2
        1 start t3 #1
        1 finish t3
        1 start t4 #1
        1 finish t4
        1 start t5 #1
        1 finish t5
        ",
    );
}

#[test]
fn order_holds_when_the_owner_crashes_while_the_head_waits_to_be_retried() {
    check(
        "
        limits behind_max=2
        0   accept t*5 lane=x due=0
        0   fail t1
        1   crash
        5   tick
        10  succeed t1
        10  succeed t2
        10  succeed t3
        10  crash
        10  succeed t4
        10  succeed t5
        ",
        "
        0 start t1 #1
        0 postpone t1 to t10
        10 start t1 #2
        10 finish t1
        10 start t2 #1
        10 finish t2
        10 start t3 #1
        10 finish t3
        10 start t4 #1
        10 start t4 #2
        10 finish t4
        10 start t5 #1
        10 finish t5
        ",
    );
}

#[test]
fn order_holds_with_some_parked_some_in_the_window_and_some_far_away() {
    // t4 and t5 are parked when the owner crashes; u is loaded after them, and lies between them in time.
    check(
        "
        limits behind_max=2 look_ahead=10
        auto succeed *
        auto fail t1
        0   accept t*5 lane=x due=0
        0   accept u lane=x due=3
        0   accept far lane=x due=500
        2   crash
        4   crash
        4   auto succeed t1
        10  tick
        501 tick
        ",
        "
        0 start t1 #1
        0 postpone t1 to t10
        10 start t1 #2
        10 finish t1
        10 start t2 #1
        10 finish t2
        10 start t3 #1
        10 finish t3
        10 start t4 #1
        10 finish t4
        10 start t5 #1
        10 finish t5
        10 start u #1
        10 finish u
        500 start far #1
        500 finish far
        ",
    );
}

#[test]
fn a_task_filed_before_those_that_are_parked_goes_before_them() {
    check(
        "
        limits behind_max=1
        auto succeed *
        auto fail head
        queue q run_now
        0   accept head lane=x due=0
        5   accept late*4 lane=x due=5
        6   accept early lane=x due=2
        6   auto succeed head
        10  tick
        ",
        "
        0 start head #1
        0 postpone head to t10
        10 start head #2
        10 finish head
        10 start early #1
        10 finish early
        10 start late1 #1
        10 finish late1
        10 start late2 #1
        10 finish late2
        10 start late3 #1
        10 finish late3
        10 start late4 #1
        10 finish late4
        ",
    );
}

#[test]
fn the_next_in_a_lane_starts_only_when_the_end_of_the_one_before_it_is_on_record() {
    check(
        "
        0   accept a lane=x due=0
        0   accept b lane=x due=0
        0   hold_store records
        1   succeed a
        2   let_store
        ",
        "
        0 start a #1
        2 finish a
        2 start b #1
        ",
    );
}

#[test]
fn a_lane_goes_on_where_it_was_when_its_partition_changes_hands() {
    check(
        "
        limits behind_max=2
        0   accept t*5 lane=x due=0
        1   hand_over to=b
        2   succeed t1
        2   succeed t2
        2   hand_over to=a
        3   succeed t3
        3   succeed t4
        3   succeed t5
        ",
        "
        0 start t1 #1
        1 release 0
        2 finish t1
        2 start t2 #1
        2 finish t2
        2 start t3 #1
        2 release 0
        3 finish t3
        3 start t4 #1
        3 finish t4
        3 start t5 #1
        3 finish t5
        ",
    );
}

#[test]
fn a_lane_and_another_of_the_same_name_in_another_queue_are_two_lanes() {
    check(
        "
        0   accept a queue=p lane=x due=0
        0   accept b queue=q lane=x due=0
        ",
        "
        0 start a #1
        0 start b #1
        ",
    );
}

#[test]
fn an_interrupted_head_stays_the_head() {
    check(
        "
        0   accept a lane=x due=0
        0   accept b lane=x due=0
        1   interrupt a
        1   succeed a
        ",
        "
        0 start a #1
        1 refile a
        1 start a #2
        1 finish a
        1 start b #1
        ",
    );
}

#[test]
fn the_last_of_a_lane_leaves_nothing_behind() {
    check(
        "
        show holds
        auto succeed *
        auto fail a
        0   accept a lane=x due=0
        1   auto succeed a
        10  tick
        10  assert loaded == 0
        11  crash
        11  accept b lane=x due=11
        ",
        "
        0 start a #1
        0 hold lane x by a
        0 postpone a to t10
        10 start a #2
        10 finish a
        10 hold lane x
        10 free lane x
        11 start b #1
        11 finish b
        ",
    );
}

#[test]
fn a_lane_without_a_head_gets_one_even_when_too_many_stand_behind_others() {
    // Its next task was read, sent back for want of room, and read again, for ever.
    check(
        "
        limits window_max=2 behind_max=1
        auto succeed x*
        0   accept a1 lane=a due=1
        0   accept a2 lane=a due=1
        0   accept b1 lane=b due=1
        0   accept b2 lane=b due=1
        0   accept c1 lane=c due=1
        0   accept c2 lane=c due=1
        0   accept c3 lane=c due=1
        2   succeed c1
        2   succeed c2
        ",
        "
        1 start a1 #1
        1 start b1 #1
        1 start c1 #1
        2 finish c1
        2 start c2 #1
        2 finish c2
        2 start c3 #1
        ",
    );
}

#[test]
fn a_head_that_came_from_the_store_is_changed_and_still_starts() {
    // It was filed behind itself, and nobody looked for it there.
    check(
        "
        limits behind_max=1 running_max=1
        0   accept a*4 lane=x due=1
        0   accept busy due=1.5 priority=0
        2   succeed a1
        3   succeed busy
        3   succeed a2
        4   accept busier due=4 priority=0
        4   succeed a3
        5   change a4 payload=changed
        6   succeed busier
        6   succeed changed
        6   assert loaded == 0
        ",
        "
        1 start a1 #1
        2 start busy #1
        2 finish a1
        3 start a2 #1
        3 finish busy
        3 finish a2
        3 start a3 #1
        4 start busier #1
        4 finish a3
        5 refile changed
        5 answer change a4: done, due t1
        6 start changed #1
        6 finish busier
        6 finish changed
        ",
    );
}

#[test]
fn nobody_overtakes_a_task_that_is_being_changed() {
    check(
        "
        0   accept a lane=x due=1
        0   accept b lane=x due=1
        0   accept c lane=x due=1
        1   hold_store records
        1   succeed a
        2   change b payload=changed
        3   let_store
        ",
        "
        1 start a #1
        3 finish a
        3 refile changed
        3 answer change b: done, due t1
        3 start changed #1
        ",
    );
}

#[test]
fn what_is_recorded_during_a_hand_over_is_started_by_the_next_owner_alone() {
    check(
        "
        1   hold_store records
        1   accept a lane=x due=1
        2   hand_over to=b
        3   let_store
        ",
        "
        3 release 0
        3 start a #1
        ",
    );
}

#[test]
fn a_write_cut_after_the_holder_was_named_leaves_the_lane_free_to_go_on() {
    // The head's row still lay under its own lane, where nobody looks for a head.
    check(
        "
        limits behind_max=1
        auto succeed b4
        0   accept b*4 lane=x due=1
        1   succeed b1
        1   succeed b2
        2   hold_answers records
        2   tear after=1
        2   fail b3
        9   crash
        9   let_store
        9   succeed b3
        ",
        "
        1 start b1 #1
        1 finish b1
        1 start b2 #1
        1 finish b2
        1 start b3 #1
        9 start b3 #2
        9 finish b3
        9 start b4 #1
        9 finish b4
        ",
    );
}

#[test]
fn seventy_thousand_of_a_lane_may_expire_at_once() {
    // Those that leave a lane were counted in sixteen bits.
    check(
        "
        limits window_max=100000 loaded_max=100000
        watch last
        auto succeed *
        0   accept j*70000 lane=l due=10 expires=10
        0   accept last lane=l due=20
        30  tick
        ",
        "
        20 start last #1
        20 finish last
        ",
    );
}
