//! When attempts run out: a lane waits for a person, unless its queue says that it goes on.

use crate::script::check;

#[test]
fn a_head_without_attempts_left_blocks_its_lane_until_a_person_retries_it() {
    check(
        "
        queue q attempts=2 retry=5
        auto fail a
        auto succeed b
        0   accept a lane=x due=1
        0   accept b lane=x due=1
        100 auto succeed a
        100 retry a
        ",
        "
        1 start a #1
        1 postpone a to t6
        6 start a #2
        6 block a
        100 refile a
        100 answer retry a: done, due t6
        100 start a #3
        100 finish a
        100 start b #1
        100 finish b
        ",
    );
}

#[test]
fn cancelling_a_blocked_head_lets_its_lane_go_on() {
    check(
        "
        queue q attempts=1
        0   accept a lane=x due=1
        0   accept b lane=x due=1
        1   fail a
        2   crash
        3   cancel a
        ",
        "
        1 start a #1
        1 block a
        3 cancel a
        3 answer cancel a: cancelled
        3 start b #1
        ",
    );
}

#[test]
fn a_blocked_lane_stays_blocked_across_crashes_and_changes_of_owner() {
    check(
        "
        limits behind_max=2
        queue q attempts=1
        auto succeed b*
        0   accept a lane=x due=1
        1   fail a
        1   accept b*5 lane=x due=2
        2   crash
        3   hand_over to=b
        4   reload
        50  accept b6 lane=x due=50
        60  crash b
        70  auto succeed a
        70  retry a
        ",
        "
        1 start a #1
        1 block a
        3 release 0
        70 refile a
        70 answer retry a: done, due t1
        70 start a #2
        70 finish a
        70 start b1 #1
        70 finish b1
        70 start b2 #1
        70 finish b2
        70 start b3 #1
        70 finish b3
        70 start b4 #1
        70 finish b4
        70 start b5 #1
        70 finish b5
        70 start b6 #1
        70 finish b6
        ",
    );
}

#[test]
fn a_lane_of_a_queue_with_dead_letters_goes_on() {
    check(
        "
        queue q attempts=1 dead_letter
        0   accept a lane=x due=1
        0   accept b lane=x due=1
        1   fail a
        2   retry a
        3   succeed b
        ",
        "
        1 start a #1
        1 give up a
        1 start b #1
        2 revive a
        2 answer retry a: done, due t2
        3 finish b
        3 start a #2
        ",
    );
}

#[test]
fn what_gives_up_at_once_is_not_retried() {
    check(
        "
        0   accept a due=1
        0   accept b due=1 lane=x
        1   give_up a
        1   give_up b
        ",
        "
        1 start a #1
        1 start b #1
        1 give up a
        1 block b
        ",
    );
}

#[test]
fn what_succeeded_cannot_be_retried() {
    check(
        "
        0   accept a due=1
        1   succeed a
        2   retry a
        3   run a
        ",
        "
        1 start a #1
        1 finish a
        2 answer retry a: ended succeeded
        3 answer run a: ended succeeded
        ",
    );
}

#[test]
fn a_changed_head_is_mended_where_it_stands() {
    check(
        "
        queue q attempts=1
        0   accept a lane=x due=1
        0   accept b lane=x due=1
        1   fail a
        2   change a payload=mended
        3   retry mended
        3   succeed mended
        ",
        "
        1 start a #1
        1 block a
        2 block mended
        2 answer change a: done, due t1
        3 refile mended
        3 answer retry mended: done, due t1
        3 start mended #2
        3 finish mended
        3 start b #1
        ",
    );
}

#[test]
fn running_a_blocked_head_gives_it_one_more_attempt() {
    check(
        "
        queue q attempts=1
        0   accept a lane=x due=1
        1   fail a
        2   run a
        2   fail a
        ",
        "
        1 start a #1
        1 block a
        2 refile a
        2 answer run a: done, due t1
        2 start a #2
        2 block a
        ",
    );
}

#[test]
fn a_retry_after_the_clock_was_set_back_leaves_a_task_where_it_lies_in_its_lane() {
    // Below its window's mark there was no place any more for `b`: it was filed at the mark, behind `c`.
    check(
        "
        limits left_per_mark=1 behind_max=1
        queue q attempts=1
        0   accept a lane=y due=1 queue=q
        0   accept f lane=y due=1 queue=q
        0   accept b lane=y due=2 queue=q
        0   accept c lane=y due=3 queue=q
        4   fail a
        5   accept d due=6 queue=q
        5   accept e due=7 queue=q
        5   accept g due=10 queue=q
        10  crash
        11  succeed d
        11  succeed e
        12  accept h due=12 queue=q
        13  succeed h
        20  step_clock -19
        20  retry b
        21  auto succeed *
        21  retry a
        60  tick
        ",
        "
        1 start a #1
        4 block a
        6 start d #1
        7 start e #1
        10 start g #1
        10 start d #2
        10 start e #2
        10 start g #2
        11 finish d
        11 finish e
        12 start h #1
        13 finish h
        20 answer retry b: done, due t2
        21 postpone a to t10
        21 answer retry a: done, due t10
        29 start a #2
        29 finish a
        29 start f #1
        29 finish f
        29 start b #1
        29 finish b
        29 start c #1
        29 finish c
        40 stop g #2
        40 give up g
        ",
    );
}
