//! Move, change and run: a waiting task takes another time or another shape, a running one does not.

use crate::script::check;

#[test]
fn a_task_is_moved_later_and_sooner() {
    check(
        "
        0   accept a due=10
        0   accept b due=10
        1   move a to=20
        2   move b to=5
        30  tick
        ",
        "
        1 postpone a to t20
        1 answer move a: done, due t20
        2 bring b to t5
        2 answer move b: done, due t5
        5 start b #1
        20 start a #1
        ",
    );
}

#[test]
fn a_moved_head_lets_its_lane_go_on() {
    check(
        "
        0   accept a lane=x due=1
        0   accept b lane=x due=2
        1   fail a
        3   move a to=50
        4   succeed b
        60  tick
        ",
        "
        1 start a #1
        1 postpone a to t11
        3 postpone a to t50
        3 answer move a: done, due t50
        3 start b #1
        4 finish b
        50 start a #2
        ",
    );
}

#[test]
fn a_task_in_the_store_is_moved_into_memory_and_back() {
    check(
        "
        limits look_ahead=10
        auto succeed *
        0   accept a due=900
        1   move a to=5
        1   assert loaded == 1
        2   move a to=800
        2   assert loaded == 0
        900 tick
        ",
        "
        1 bring a to t5
        1 answer move a: done, due t5
        2 postpone a to t800
        2 answer move a: done, due t800
        800 start a #1
        800 finish a
        ",
    );
}

#[test]
fn a_running_task_is_not_moved() {
    check(
        "
        0   accept a due=1
        2   move a to=900
        3   change a payload=b
        4   run a
        ",
        "
        1 start a #1
        2 answer move a: running #1
        3 answer change a: running #1
        4 answer run a: running #1
        ",
    );
}

#[test]
fn run_starts_a_task_before_its_time() {
    check(
        "
        0   accept a due=900
        0   accept b due=90 lane=x
        1   run a
        2   run b
        ",
        "
        1 bring a to t1
        1 answer run a: done, due t1
        1 start a #1
        2 bring b to t2
        2 answer run b: done, due t2
        2 start b #1
        ",
    );
}

#[test]
fn running_what_is_due_already_does_not_cost_it_its_place() {
    // It used to be filed anew under the present time, behind those that had been waiting behind it.
    check(
        "
        limits running_max=1
        0   accept busy due=1
        0   accept a lane=x due=2
        0   accept b lane=x due=3
        5   run a
        6   succeed busy
        ",
        "
        1 start busy #1
        5 refile a
        5 answer run a: done, due t2
        6 start a #1
        6 finish busy
        ",
    );
}

#[test]
fn a_change_is_refused_when_somebody_was_quicker() {
    check(
        "
        0   accept a due=10
        1   change a payload=first if_revision=1
        2   change first payload=second if_revision=1
        10  tick
        ",
        "
        1 refile first
        1 answer change a: done, due t10
        2 answer change first: outdated, revision 2
        10 start first #1
        ",
    );
}

#[test]
fn a_load_in_flight_cannot_bring_back_the_old_time_of_what_was_moved() {
    check(
        "
        limits look_ahead=10
        0   accept a due=50
        45  hold_answers loads
        45  tick
        46  move a to=70
        47  let_store
        80  tick
        ",
        "
        46 postpone a to t70
        46 answer move a: done, due t70
        70 start a #1
        ",
    );
}

#[test]
fn a_parked_task_is_moved_out_of_its_lane_and_changed_in_it() {
    check(
        "
        limits behind_max=1
        auto succeed *
        auto fail a1
        0   accept a*5 lane=x due=1
        2   move a3 to=100
        2   change a4 payload=changed
        5   auto succeed a1
        11  tick
        100 tick
        ",
        "
        1 start a1 #1
        1 postpone a1 to t11
        2 postpone a3 to t100
        2 answer move a3: done, due t100
        2 answer change a4: done, due t1
        11 start a1 #2
        11 finish a1
        11 start a2 #1
        11 finish a2
        11 start changed #1
        11 finish changed
        11 start a5 #1
        11 finish a5
        100 start a3 #1
        100 finish a3
        ",
    );
}

#[test]
fn nobody_overtakes_a_task_whose_cancel_or_move_is_still_being_recorded() {
    // The cancel could be lost in a crash, and then the task would run after those that come after it.
    check(
        "
        0   accept a lane=x due=10
        0   accept b lane=x due=11
        5   hold_store records
        5   cancel a
        12  crash
        12  let_store
        12  succeed a
        ",
        "
        12 start a #1
        12 finish a
        12 start b #1
        ",
    );
}

#[test]
fn a_task_that_was_only_looked_at_is_not_forgotten_when_a_page_is_under_way() {
    // The page was read before it was there, and it left memory because a page was to bring it.
    check(
        "
        auto succeed *
        0    accept a due=400
        1    hold_answers loads
        260  accept b due=500
        261  change b payload=changed if_revision=7
        262  let_store
        1000 tick
        ",
        "
        261 answer change b: outdated, revision 1
        400 start a #1
        400 finish a
        500 start b #1
        500 finish b
        ",
    );
}

#[test]
fn a_task_given_to_another_handler_leaves_the_obstacle_of_the_old_one() {
    // It stayed parked under the handler that nobody has.
    check(
        "
        auto succeed *
        0    accept a due=1 handler=nowhere
        2    change a handler=h
        1000 tick
        ",
        "
        2 refile a
        2 answer change a: done, due t1
        2 start a #1
        2 finish a
        ",
    );
}

#[test]
fn a_thousand_changes_of_one_task_at_once_wait_once_or_twice_each() {
    // Each record asked all that waited again: with the number of changes, their cost grew with its square.
    for due in ["100", "5000"] {
        let moves: String = (0..1_000).map(|n| format!("1 move a to={due}.{n:03}\n")).collect();
        let script = format!(
            "
            watch nobody
            auto succeed a
            0   accept a due={due}
            1   hold_store records
            1   move a to={due}.5
            {moves}
            2   let_store
            2   assert deferrals <= 2100
            2   assert finds <= 2100
            6000 assert ended == 1
            "
        );
        check(&script, "");
    }
}

#[test]
fn a_task_moved_to_an_earlier_time_keeps_that_place_however_long_it_takes_to_record() {
    // Found by random scripts: the lane was given to the next before the moved task was back in it.
    check(
        "
        0    accept a due=11 lane=x
        0    accept b due=11 lane=x
        0    hold_answers records
        0    move b to=5
        20   let_store
        21   succeed b
        ",
        "
        0 bring b to t5
        20 answer move b: done, due t5
        20 start b #1
        21 finish b
        21 start a #1
        ",
    );
}

#[test]
fn running_a_task_that_is_parked_behind_its_lanes_head_does_not_put_it_last() {
    // Found by random scripts: its row went back to its window, where a low-water mark had passed its place.
    check(
        "
        limits behind_max=1 left_per_mark=2
        auto succeed o*
        0    accept head due=0 lane=x
        0    accept b due=1 lane=x
        0    accept c due=2 lane=x
        0    accept d due=3 lane=x
        0    accept o1 due=5
        0    accept o2 due=6
        0    accept o3 due=7
        10   run c
        11   succeed head
        12   succeed b
        13   succeed c
        ",
        "
        0 start head #1
        5 start o1 #1
        5 finish o1
        6 start o2 #1
        6 finish o2
        7 start o3 #1
        7 finish o3
        10 answer run c: done, due t2
        11 finish head
        11 start b #1
        12 finish b
        12 start c #1
        13 finish c
        13 start d #1
        ",
    );
}

#[test]
fn a_task_changed_in_a_paused_queue_is_not_overtaken_when_the_queue_goes_on() {
    // Found by random scripts: the changed task lay in the store, and the next of its lane stood in memory.
    check(
        "
        auto succeed *
        0    pause q
        0    accept a due=1 lane=x
        0    accept b due=1 lane=x
        2    hold_answers loads
        2    resume q
        2    hold_store records
        2    change a
        2    pause q
        3    let_store loads
        4    let_store
        5    resume q
        ",
        "
        4 refile a
        4 answer change a: done, due t1
        5 start a #1
        5 finish a
        5 start b #1
        5 finish b
        ",
    );
}

#[test]
fn a_task_that_was_run_and_is_moved_back_to_its_time_goes_after_those_before_it_again() {
    for first_at in [11, 5] {
        check(
            &format!(
                "
                limits running_max=1
                auto succeed a
                auto succeed b
                0    accept busy due=0
                0    accept a due=11 lane=x
                0    accept b due={first_at} lane=x
                1    move b to=11
                2    run b
                3    move b to=11
                4    succeed busy
                12   tick
                "
            ),
            &format!(
                "
                0 start busy #1
                {}1 answer move b: done, due t11
                2 bring b to t2
                2 answer run b: done, due t2
                3 postpone b to t11
                3 answer move b: done, due t11
                4 finish busy
                11 start a #1
                11 finish a
                11 start b #1
                11 finish b
                ",
                if first_at == 5 { "1 postpone b to t11\n" } else { "1 refile b\n" }
            ),
        );
    }
}

#[test]
fn a_change_with_another_time_is_one_change() {
    check(
        "
        limits look_ahead=10
        0   accept a due=900
        0   accept b due=5
        1   change a payload=mended to=7 if_revision=1
        2   change b payload=later to=20
        3   cancel mended if_revision=1
        3   cancel mended if_revision=2
        30  tick
        ",
        "
        1 bring mended to t7
        1 answer change a: done, due t7
        2 postpone later to t20
        2 answer change b: done, due t20
        3 answer cancel mended: outdated, revision 2
        3 cancel mended
        3 answer cancel mended: cancelled
        20 start later #1
        ",
    );
}

#[test]
fn a_head_that_is_changed_and_moved_lets_its_lane_go_on() {
    check(
        "
        0   accept a lane=x due=1
        0   accept b lane=x due=2
        1   fail a
        3   change a payload=mended to=50
        4   succeed b
        60  tick
        ",
        "
        1 start a #1
        1 postpone a to t11
        3 postpone mended to t50
        3 answer change a: done, due t50
        3 start b #1
        4 finish b
        50 start mended #2
        ",
    );
}

#[test]
fn what_was_parked_for_want_of_a_handler_is_changed_and_moved_at_once() {
    check(
        "
        0   accept a due=1 handler=nowhere
        2   change a handler=h payload=mended to=5
        6   tick
        ",
        "
        2 postpone mended to t5
        2 answer change a: done, due t5
        5 start mended #1
        ",
    );
}

#[test]
fn whatever_is_asked_of_another_revision_is_refused() {
    check(
        "
        queue q attempts=1 dead_letter
        0   accept a due=10
        1   move a to=9 if_revision=2
        1   cancel a if_revision=2
        1   run a if_revision=2
        1   retry a if_revision=2
        1   run a if_revision=1
        2   run a if_revision=1
        2   run a if_revision=2
        3   fail a
        4   retry a if_revision=2
        4   retry a if_revision=3
        5   cancel a if_revision=1
        ",
        "
        1 answer move a: outdated, revision 1
        1 answer cancel a: outdated, revision 1
        1 answer run a: outdated, revision 1
        1 answer retry a: outdated, revision 1
        1 bring a to t1
        1 answer run a: done, due t1
        1 start a #1
        2 answer run a: outdated, revision 2
        2 answer run a: running #1
        3 give up a
        4 answer retry a: outdated, revision 3
        4 revive a
        4 answer retry a: done, due t4
        4 start a #2
        5 answer cancel a: outdated, revision 4
        ",
    );
}

#[test]
fn an_end_is_a_change_that_whoever_names_a_revision_hears_of() {
    check(
        "
        queue q
        0   accept a due=10
        0   accept b due=10 expires=15
        0   accept parked due=1 expires=5 handler=x
        1   cancel a if_revision=1
        2   cancel a if_revision=1
        2   cancel a if_revision=2
        6   cancel parked if_revision=2
        11  fail b
        16  cancel b if_revision=2
        ",
        "
        1 cancel a
        1 answer cancel a: cancelled
        2 answer cancel a: outdated, revision 2
        2 answer cancel a: ended cancelled
        6 expire parked
        6 answer cancel parked: outdated, revision 3
        10 start b #1
        11 postpone b to t15
        15 expire b
        16 answer cancel b: outdated, revision 3
        ",
    );
}
