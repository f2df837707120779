//! Whoever runs an attempt holds a lease: it ends, can be prolonged, and is waited for by the next owner.

use crate::script::check;

#[test]
fn an_attempt_that_takes_too_long_is_stopped_and_counts() {
    check(
        "
        queue q timeout=5 attempts=2 retry=1
        0   accept a due=1
        20  tick
        ",
        "
        1 start a #1
        6 stop a #1
        6 postpone a to t7
        7 start a #2
        12 stop a #2
        12 give up a
        ",
    );
}

#[test]
fn a_touch_gives_more_time_and_a_late_one_does_not() {
    check(
        "
        queue q timeout=5
        0   accept a due=1
        5   touch a for=10
        14  tick
        15  touch a for=10
        16  succeed a
        30  tick
        ",
        "
        1 start a #1
        5 answer touch a: prolonged
        15 stop a #1
        15 postpone a to t25
        15 answer touch a: late
        25 start a #2
        30 stop a #2
        30 postpone a to t50
        ",
    );
}

#[test]
fn an_attempt_that_has_not_begun_does_not_take_too_long() {
    // Its time counted from the grant: when the start took longer to record, it had failed without having begun (found
    // by `punctual-sim --seed 3005`).
    check(
        "
        queue q timeout=2 exclusive attempts=1
        0   accept a due=1
        0   hold_store records
        10  let_store
        11  succeed a
        ",
        "
        10 start a #1
        11 finish a
        ",
    );
}

#[test]
fn a_late_report_changes_nothing() {
    check(
        "
        queue q timeout=5 retry=3
        0   accept a due=1
        9   succeed a #1
        10  succeed a #2
        11  fail a #2
        12  fail a #1
        ",
        "
        1 start a #1
        6 stop a #1
        6 postpone a to t9
        9 start a #2
        10 finish a
        ",
    );
}

#[test]
fn an_interrupted_attempt_is_no_attempt() {
    check(
        "
        queue q attempts=1
        0   accept a due=1
        2   interrupt a
        2   interrupt a
        2   interrupt a
        3   fail a
        ",
        "
        1 start a #1
        2 refile a
        2 start a #2
        2 refile a
        2 start a #3
        2 refile a
        2 start a #4
        3 give up a
        ",
    );
}

#[test]
fn a_new_owner_waits_for_what_runs_at_the_old_one() {
    check(
        "
        queue q timeout=20
        0   accept a due=1
        0   accept b due=1
        5   hand_over to=b
        10  succeed a
        30  tick
        ",
        "
        1 start a #1
        1 start b #1
        5 release 0
        10 finish a
        21 stop b #1
        21 refile b
        21 start b #2
        ",
    );
}

#[test]
fn a_report_that_comes_while_nobody_owns_the_partition_reaches_the_next_owner() {
    check(
        "
        0   accept a due=1
        5   hand_over
        6   succeed a
        7   take_over by=b
        60  tick
        ",
        "
        1 start a #1
        5 release 0
        7 finish a
        ",
    );
}

#[test]
fn the_report_of_an_old_attempt_does_not_take_the_slot_of_a_later_one_with_it() {
    // Node a lost the partition while attempt 3 ran there. The late report of attempt 1 made it forget attempt 3, whose
    // own report then freed no slot: this node ran one attempt less from then on. Found by `punctual sim --seed 111`.
    check(
        "
        limits running_max=1 crashes_max=9
        queue q timeout=100
        0   accept x due=1
        0   accept y due=50
        2   take_over by=b
        3   take_over by=a
        4   take_over by=b
        5   cancel y via=a
        6   succeed x #1
        7   fail x #3
        8   take_over by=a
        9   tick
        ",
        "
        1 start x #1
        2 start x #2
        3 stop x #1
        3 start x #3
        4 stop x #2
        4 start x #4
        5 fenced a
        8 start x #5
        ",
    );
}

#[test]
fn an_exclusive_attempt_of_a_crashed_owner_is_waited_for() {
    check(
        "
        queue q exclusive timeout=20
        0   accept a due=1
        5   crash
        30  tick
        ",
        "
        1 start a #1
        25 stop a #1
        25 refile a
        25 start a #2
        ",
    );
}

#[test]
fn a_start_of_an_exclusive_queue_waits_until_it_is_on_record() {
    check(
        "
        queue q exclusive
        0   accept a due=1
        0   accept b due=1 queue=other
        0   hold_store records
        2   let_store
        ",
        "
        1 start b #1
        2 start a #1
        ",
    );
}

#[test]
fn a_task_that_crashes_its_owner_again_and_again_is_set_aside() {
    check(
        "
        limits crashes_max=3
        0   accept bad due=1
        0   accept good due=1 lane=x
        0   accept next due=1 lane=x
        1   succeed good
        2   crash
        3   crash
        3   succeed next
        4   crash
        5   tick
        ",
        "
        1 start bad #1
        1 start good #1
        1 finish good
        1 start next #1
        2 start bad #2
        2 start next #2
        3 start bad #3
        3 start next #3
        3 finish next
        4 give up bad
        ",
    );
}

#[test]
fn a_task_of_an_exclusive_queue_that_crashes_its_owner_is_set_aside_too() {
    // Each new owner waited for the lease, and then forgot that there had been a crash.
    check(
        "
        limits crashes_max=2
        queue q exclusive timeout=5
        0   accept bad due=1
        2   crash
        8   crash
        20  tick
        ",
        "
        1 start bad #1
        7 stop bad #1
        7 refile bad
        7 start bad #2
        13 stop bad #2
        13 give up bad
        ",
    );
}

#[test]
fn a_task_whose_report_makes_its_partition_fail_is_set_aside() {
    // The report was heard again after each reload, and failed again: nothing counted, because nothing was recorded.
    check(
        "
        limits crashes_max=3
        0   accept bomb due=1 attempts=5 retry=none
        0   accept b due=2
        1   fail bomb
        2   succeed b
        3   assert panics == 3
        ",
        "
        1 start bomb #1
        1 panic
        1 panic
        1 panic
        1 give up bomb
        2 start b #1
        2 finish b
        ",
    );
}

#[test]
fn the_lane_of_a_task_that_is_set_aside_for_its_report_waits_for_a_person() {
    check(
        "
        limits crashes_max=2
        0   accept bomb lane=x due=1 attempts=5 retry=none
        0   accept b lane=x due=2
        1   fail bomb
        9   retry bomb
        9   succeed bomb
        9   succeed b
        ",
        "
        1 start bomb #1
        1 panic
        1 panic
        1 block bomb
        9 refile bomb
        9 answer retry bomb: done, due t1
        9 start bomb #2
        9 finish bomb
        9 start b #1
        9 finish b
        ",
    );
}

#[test]
fn crashes_are_forgotten_when_an_attempt_comes_to_an_end() {
    check(
        "
        limits crashes_max=2
        queue q retry=1
        0   accept a due=1
        2   crash
        2   fail a
        3   crash
        3   succeed a
        ",
        "
        1 start a #1
        2 start a #2
        2 postpone a to t3
        3 start a #3
        3 start a #4
        3 finish a
        ",
    );
}

#[test]
fn a_reload_on_the_same_node_neither_repeats_nor_forgets_what_runs() {
    check(
        "
        0   accept a due=1
        0   accept b due=1 lane=x
        0   accept c due=1 lane=x
        2   reload
        3   succeed a
        3   succeed b
        ",
        "
        1 start a #1
        1 start b #1
        3 finish a
        3 finish b
        3 start c #1
        ",
    );
}

#[test]
fn a_former_owner_cannot_write_any_more() {
    check(
        "
        0   accept a due=1
        0   accept b due=50
        2   take_over by=b
        3   cancel b via=a
        4   succeed a
        60  tick
        ",
        "
        1 start a #1
        2 start a #2
        3 fenced a
        4 finish a
        50 start b #1
        ",
    );
}

#[test]
fn a_timeout_that_was_recorded_but_not_answered_is_not_waited_for_again() {
    // The row said that the attempt was over, and the next ownership waited for it all the same.
    check(
        "
        queue q timeout=5 attempts=1
        0   accept a lane=x due=1
        5   tear after=99
        6   tick
        20  retry a
        ",
        "
        1 start a #1
        6 stop a #1
        6 unknown
        20 refile a
        20 answer retry a: done, due t1
        20 start a #2
        ",
    );
}

#[test]
fn an_owner_that_was_away_waits_for_the_later_attempt_not_for_its_own_old_one() {
    check(
        "
        queue q timeout=20
        0   accept a due=1
        5   take_over by=b
        10  hand_over to=a
        40  tick
        ",
        "
        1 start a #1
        5 start a #2
        10 release 0
        10 stop a #1
        25 stop a #2
        25 refile a
        25 start a #3
        ",
    );
}

#[test]
fn a_worker_has_the_time_it_was_given_when_its_owner_crashes() {
    check(
        "
        queue q timeout=2
        0   accept a lane=x due=0 worker
        0   accept b due=0 worker
        0   reserve q 2 ttr=20
        1   crash
        2   take_over
        3   reserve q 2
        40  reserve q 2
        ",
        "
        0 start a #1
        0 start b #1
        22 stop a #1
        22 stop b #1
        22 postpone a to t32
        22 postpone b to t32
        40 start b #2
        40 start a #2
        ",
    );
}

#[test]
fn a_worker_has_the_time_it_asked_for_since_when_its_owner_crashes() {
    check(
        "
        queue q timeout=5
        0   accept a lane=x due=0 worker
        0   reserve q
        1   touch a for=20
        2   crash
        3   take_over
        40  reserve q
        ",
        "
        0 start a #1
        1 answer touch a: prolonged
        23 stop a #1
        23 postpone a to t33
        40 start a #2
        ",
    );
}

#[test]
fn a_worker_is_told_that_it_has_more_time_when_that_is_on_record() {
    // It was told at once. When its owner crashed before it was written, the next one gave the lane to another worker
    // while the first was sure of it (found by `punctual-sim --seed 12`).
    check(
        "
        queue q timeout=5
        0   accept a lane=x due=0 worker
        0   reserve q
        1   hold_store records
        1   touch a for=20
        2   touch a for=4
        3   let_store records
        4   touch a for=20
        ",
        "
        0 start a #1
        3 answer touch a: prolonged
        3 answer touch a: prolonged
        4 answer touch a: prolonged
        ",
    );
}

#[test]
fn a_worker_has_the_time_it_was_given_when_its_partition_begins_anew() {
    // Its start was not on record yet, and it had only its queue's time from then on; and nobody noted it later
    // (found by `punctual-sim --seed 658`).
    check(
        "
        queue q timeout=2
        0   accept a due=1 worker
        1   hold_store records
        1   reserve q ttr=20
        2   reload
        2   let_store
        3   crash
        4   take_over
        40  reserve q
        ",
        "
        1 start a #1
        24 stop a #1
        24 postpone a to t34
        40 start a #2
        ",
    );
}

#[test]
fn what_workers_hold_counts_when_their_owner_has_crashed() {
    check(
        "
        queue q timeout=20 running_max=2
        0   accept a*4 due=0 worker
        0   reserve q 4
        1   crash
        2   take_over
        3   reserve q 4
        23  reserve q 4
        ",
        "
        0 start a1 #1
        0 start a2 #1
        22 stop a1 #1
        22 stop a2 #1
        22 postpone a1 to t32
        22 postpone a2 to t32
        23 start a3 #1
        23 start a4 #1
        ",
    );
}

#[test]
fn an_attempt_that_was_stopped_is_given_back_when_its_partition_goes_elsewhere() {
    // Its end was not on record, so that it was taken over once more, and counted; nobody would ever report on it.
    check(
        "
        partitions 2
        queue q running_max=1
        watch y
        auto succeed y
        0   accept x due=1 timeout=5 partition=0
        0   accept y due=30 partition=1
        5   hold_store records
        7   reload partition=0
        8   let_store
        9   hand_over to=b partition=0
        40  tick
        ",
        "
        30 start y #1
        30 finish y
        ",
    );
}
