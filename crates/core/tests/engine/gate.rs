//! The gate lets the best through: by priority, deadline, time and acceptance, within every limit.

use crate::script::check;

#[test]
fn the_best_goes_first() {
    check(
        "
        limits running_max=1
        auto succeed *
        auto succeed busy after=5
        0   accept busy due=1
        0   accept plain due=2
        0   accept older due=1.5
        0   accept soon due=3 start_by=20
        0   accept sooner due=4 start_by=10
        0   accept urgent due=5 priority=1
        0   accept lazy due=1.5 priority=9
        10  tick
        ",
        "
        1 start busy #1
        6 start urgent #1
        6 finish busy
        6 start sooner #1
        6 finish urgent
        6 start soon #1
        6 finish sooner
        6 start older #1
        6 finish soon
        6 start plain #1
        6 finish older
        6 start lazy #1
        6 finish plain
        6 finish lazy
        ",
    );
}

#[test]
fn a_queue_runs_so_many_at_once_and_no_more() {
    check(
        "
        queue q running_max=2
        0   accept a*4 due=1
        0   accept b due=1 queue=other
        2   succeed a1
        3   fail a2
        ",
        "
        1 start a1 #1
        1 start a2 #1
        1 start b #1
        2 start a3 #1
        2 finish a1
        3 start a4 #1
        3 postpone a2 to t13
        ",
    );
}

#[test]
fn a_queue_shares_its_limit_with_other_nodes_unless_it_is_pinned() {
    check(
        "
        nodes 2
        queue q running_max=4
        queue p running_max=4 pinned
        0   accept a*5 due=1
        0   accept b*5 due=1 queue=p
        1   tick
        ",
        "
        1 start a1 #1
        1 start a2 #1
        1 start b1 #1
        1 start b2 #1
        1 start b3 #1
        1 start b4 #1
        ",
    );
}

#[test]
fn a_rate_spreads_starts_evenly_and_wakes_the_node_by_itself() {
    check(
        "
        queue q rate=2/1
        auto succeed *
        0   accept a*4 due=1
        0   accept b due=1.2 queue=other
        9   tick
        ",
        "
        1 start a1 #1
        1 finish a1
        1.2 start b #1
        1.2 finish b
        1.5 start a2 #1
        1.5 finish a2
        2 start a3 #1
        2 finish a3
        2.5 start a4 #1
        2.5 finish a4
        ",
    );
}

#[test]
fn a_burst_may_be_saved_up() {
    check(
        "
        queue q rate=1/1 burst=3
        auto succeed *
        0   accept a*5 due=10
        12  tick
        ",
        "
        10 start a1 #1
        10 start a2 #1
        10 start a3 #1
        10 finish a1
        10 finish a2
        10 finish a3
        11 start a4 #1
        11 finish a4
        12 start a5 #1
        12 finish a5
        ",
    );
}

#[test]
fn nothing_of_a_paused_queue_starts_and_what_runs_runs_on() {
    check(
        "
        0   accept a due=1
        0   accept b due=3
        2   pause q
        4   succeed a
        5   resume q
        ",
        "
        1 start a #1
        4 finish a
        5 start b #1
        ",
    );
}

#[test]
fn slots_are_shared_by_all_partitions() {
    check(
        "
        partitions 2
        limits running_max=2
        0   accept a due=1 partition=0
        0   accept b due=1 partition=1
        0   accept c due=1 partition=0
        0   accept d due=0.5 partition=1
        2   succeed d
        ",
        "
        0.5 start d #1
        1 start a #1
        2 start b #1
        2 finish d
        ",
    );
}

#[test]
fn workers_reserve_what_they_can_take_and_need_no_slot() {
    check(
        "
        limits running_max=1
        0   accept busy due=1
        0   accept a*3 due=1 worker
        2   reserve q 2
        3   succeed a1
        3   reserve q 5
        ",
        "
        1 start busy #1
        2 start a1 #1
        2 start a2 #1
        3 finish a1
        3 start a3 #1
        ",
    );
}

#[test]
fn a_slot_is_given_back_when_the_start_could_not_be_recorded() {
    // The gate counted it as running for ever, and the task could not be started again.
    check(
        "
        limits running_max=1
        queue q exclusive
        0   accept a due=1
        0   tear after=0
        2   succeed a
        2   assert running == 0
        ",
        "
        1 unknown
        1 start a #1
        2 finish a
        ",
    );
}

#[test]
fn an_offer_withdrawn_after_it_was_let_forward_lets_the_next_of_its_destination_go() {
    // Its turn at the destination went with it, and nobody else was let forward.
    check(
        "
        limits running_max=1 destination_running_max=1
        0   accept a due=1 destination=x
        0   accept b c due=2 destination=x
        0   accept d due=3 priority=1
        4   succeed a
        5   cancel b
        6   succeed d
        7   succeed c
        ",
        "
        1 start a #1
        4 start d #1
        4 finish a
        5 cancel b
        5 answer cancel b: cancelled
        6 start c #1
        6 finish d
        7 finish c
        ",
    );
}

#[test]
fn a_probe_that_is_withdrawn_lets_the_next_one_probe() {
    check(
        "
        limits running_max=1 breaker_failures=1
        0   accept a due=1 destination=x attempts=1
        0   accept b c due=2 destination=x
        1   fail a
        2   accept d due=3 priority=1
        8   cancel b
        9   succeed d
        10  succeed c
        ",
        "
        1 start a #1
        1 give up a
        3 start d #1
        8 cancel b
        8 answer cancel b: cancelled
        9 start c #1
        9 finish d
        10 finish c
        ",
    );
}

#[test]
fn a_faster_rate_applies_at_once() {
    // The next start waited for as long as the slower rate had said.
    check(
        "
        queue q rate=1/86400
        auto succeed *
        0   accept a*3 due=1
        2   queue q rate=100/1
        60  tick
        ",
        "
        1 start a1 #1
        1 finish a1
        2.01 start a2 #1
        2.01 finish a2
        2.02 start a3 #1
        2.02 finish a3
        ",
    );
}

#[test]
fn destinations_that_never_answered_leave_room_for_those_that_are_well() {
    // New hosts that hung took every attempt of the node, and calls to hosts that were well waited until they timed out.
    check(
        "
        limits running_max=8 strangers_running_max=4 destination_running_max=2
        auto succeed w*
        auto succeed known
        0   accept known due=1 destination=well
        0   accept a*2 due=2 destination=d1 timeout=100
        0   accept b*2 due=2 destination=d2 timeout=100
        0   accept c*2 due=2 destination=d3 timeout=100
        0   accept d*2 due=2 destination=d4 timeout=100
        0   accept w*3 due=3 destination=well
        0   accept plain due=3
        4   assert running == 5
        ",
        "
        1 start known #1
        1 finish known
        2 start a1 #1
        2 start a2 #1
        2 start b1 #1
        2 start b2 #1
        3 start w1 #1
        3 start w2 #1
        3 start plain #1
        3 start w3 #1
        3 finish w1
        3 finish w2
        3 finish w3
        ",
    );
}

#[test]
fn a_destination_has_few_attempts_until_it_has_answered() {
    // Two new hosts that hung took all that strangers have together, and a third, which was well, waited for their time-out.
    check(
        "
        limits strangers_running_max=6 unanswered_running_max=2 destination_running_max=4
        watch w*
        0   accept a*4 due=1 destination=d1 timeout=100
        0   accept b*4 due=1 destination=d2 timeout=100
        0   accept w*5 due=2 destination=well
        3   assert running == 6
        4   succeed w1
        4   assert running == 8
        ",
        "
        2 start w1 #1
        2 start w2 #1
        4 start w3 #1
        4 start w4 #1
        4 start w5 #1
        4 finish w1
        ",
    );
}

#[test]
fn destinations_that_wait_for_others_that_hang_have_their_turn_when_one_ends_or_answers() {
    check(
        "
        limits strangers_running_max=2 destination_running_max=2
        watch a* b* c*
        0   accept a*3 due=1 destination=d1 attempts=1
        0   accept b*3 due=2 destination=d2
        0   accept c*3 due=2 destination=d3
        3   fail a1
        4   fail a2
        5   auto succeed *
        5   succeed b1
        6   assert ended == 8
        20  succeed c1
        20  assert ended == 9
        20  assert running == 0
        20  assert loaded == 0
        ",
        "
        1 start a1 #1
        1 start a2 #1
        3 start b1 #1
        3 give up a1
        4 start c1 #1
        4 give up a2
        5 start a3 #1
        5 start b2 #1
        5 start b3 #1
        5 finish b1
        5 start c2 #1
        5 finish a3
        5 finish b2
        5 finish b3
        5 start c3 #1
        5 finish c2
        5 finish c3
        20 finish c1
        ",
    );
}

#[test]
fn a_destination_whose_breaker_is_open_is_a_stranger_again() {
    check(
        "
        limits strangers_running_max=1 breaker_failures=1 breaker_rest=5
        watch a* b*
        0   accept a1 due=1 destination=x
        2   succeed a1
        2   accept a2 due=3 destination=x attempts=1
        3   fail a2
        4   accept b1 due=4 destination=hangs timeout=100
        4   accept a3 due=5 destination=x
        20  assert running == 1
        30  succeed b1
        31  succeed a3
        ",
        "
        1 start a1 #1
        2 finish a1
        3 start a2 #1
        3 give up a2
        4 start b1 #1
        30 start a3 #1
        30 finish b1
        31 finish a3
        ",
    );
}
