//! Near tasks wait in memory, far ones in the store; each queue and priority has room of its own.

use crate::script::check;

#[test]
fn more_than_fits_in_memory_runs_page_by_page_and_in_order() {
    check(
        "
        limits window_max=16 loaded_max=16
        auto succeed *
        watch last
        0    accept job*2000 due=100 step=0.01
        0    accept last due=130
        0    assert loaded <= 40
        100  assert loaded <= 40
        200  assert ended == 2001
        200  assert started == 2001
        200  assert loaded == 0
        ",
        "
        130 start last #1
        130 finish last
        ",
    );
}

#[test]
fn the_far_future_is_left_to_the_store_and_comes_in_time() {
    check(
        "
        limits look_ahead=10
        auto succeed *
        0     accept a due=1000
        0     accept b due=1000.5
        0     assert loaded == 0
        990   assert loaded == 0
        999   assert loaded == 2
        999   assert loads == 1
        1001  tick
        ",
        "
        1000 start a #1
        1000 finish a
        1000.5 start b #1
        1000.5 finish b
        ",
    );
}

#[test]
fn what_is_accepted_into_a_range_that_is_being_read_is_not_lost() {
    check(
        "
        limits look_ahead=10
        auto succeed *
        0     accept a due=1000
        0     hold_answers loads
        996   accept b due=1001
        996   accept c due=999
        996   accept d due=2000
        997   let_store
        3000  tick
        ",
        "
        999 start c #1
        999 finish c
        1000 start a #1
        1000 finish a
        1001 start b #1
        1001 finish b
        2000 start d #1
        2000 finish d
        ",
    );
}

#[test]
fn a_slow_read_delays_only_what_is_in_it() {
    check(
        "
        limits look_ahead=10
        auto succeed *
        0     accept a due=1000
        1     hold_store loads
        996   accept b due=1000 queue=other
        1002  let_store
        ",
        "
        1000 start b #1
        1000 finish b
        1002 start a #1
        1002 finish a
        ",
    );
}

#[test]
fn what_was_trimmed_while_a_page_was_read_comes_back() {
    // The page moved the window past rows that had left memory while it was being read.
    check(
        "
        limits window_max=2 look_ahead=10 running_max=1
        watch far
        0     accept busy due=1
        0     accept far due=20
        0     hold_answers loads
        16    accept t*8 due=12 step=0.1
        17    let_store
        17    auto succeed *
        17    succeed busy
        60    tick
        60    assert loaded == 0
        60    assert ended == 10
        ",
        "
        20 start far #1
        20 finish far
        ",
    );
}

#[test]
fn a_paused_queue_holds_no_room_and_goes_on_where_it_was() {
    check(
        "
        limits window_max=16
        auto succeed *
        watch a* b
        0     accept a*3 due=10 step=1 queue=mail
        0     accept rest*1000 due=30 queue=mail
        5     pause mail
        5     assert loaded == 0
        6     accept b due=7 queue=mail
        50    assert started == 0
        50    assert loaded == 0
        50    resume mail
        51    assert ended == 1004
        ",
        "
        50 start b #1
        50 start a1 #1
        50 start a2 #1
        50 start a3 #1
        50 finish b
        50 finish a1
        50 finish a2
        50 finish a3
        ",
    );
}

#[test]
fn a_lane_of_a_paused_queue_keeps_its_order() {
    check(
        "
        limits behind_max=1
        auto succeed *
        auto fail a
        0     accept a lane=x due=1
        0     accept b*4 lane=x due=2
        3     pause q
        4     accept c lane=x due=4
        40    auto succeed a
        40    resume q
        ",
        "
        1 start a #1
        1 postpone a to t11
        40 start a #2
        40 finish a
        40 start b1 #1
        40 finish b1
        40 start b2 #1
        40 finish b2
        40 start b3 #1
        40 finish b3
        40 start b4 #1
        40 finish b4
        40 start c #1
        40 finish c
        ",
    );
}

#[test]
fn what_is_cancelled_before_its_time_keeps_no_retry_waiting() {
    check(
        "
        limits left_per_mark=1 look_ahead=100
        0   accept far due=50
        0   cancel far
        1   accept a due=1
        1   fail a
        11  succeed a
        ",
        "
        0 cancel far
        0 answer cancel far: cancelled
        1 start a #1
        1 postpone a to t11
        11 start a #2
        11 finish a
        ",
    );
}

#[test]
fn a_low_water_mark_never_passes_what_lives_and_a_late_task_still_runs() {
    check(
        "
        limits window_max=16
        show marks
        watch old late
        auto succeed *
        auto fail old
        queue q run_now retry=500
        0     accept old due=1
        0     accept job*10000 due=2
        20    accept late due=0
        21    crash
        600   auto succeed old
        1100  tick
        1100  assert ended == 10002
        ",
        "
        1 start old #1
        1 postpone old to t501
        20 start late #1
        20 finish late
        501 start old #2
        501 postpone old to t1001
        1001 start old #3
        1001 finish old
        ",
    );
}

#[test]
fn a_restart_with_a_backlog_drains_it_in_order_of_time() {
    check(
        "
        limits window_max=16 loaded_max=32 running_max=4
        watch first last
        0     accept last due=60
        0     accept job*3000 due=20 step=0.01
        0     accept first due=19
        0     pause q
        100   crash
        100   auto succeed *
        100   resume q
        100   assert loaded == 0
        100   assert ended == 3002
        ",
        "
        100 start first #1
        100 finish first
        100 start last #1
        100 finish last
        ",
    );
}

#[test]
fn priorities_are_windows_of_their_own() {
    check(
        "
        limits window_max=16 running_max=1
        watch urgent busy
        auto succeed job*
        0     accept busy due=1
        0     accept job*1000 due=2 priority=9
        0     accept urgent due=3 priority=0
        4     succeed busy
        4     succeed urgent
        5     assert ended == 1002
        ",
        "
        1 start busy #1
        4 start urgent #1
        4 finish busy
        4 finish urgent
        ",
    );
}

#[test]
fn more_than_fits_is_accepted_into_a_range_that_is_being_read() {
    // Those that did not fit were left to the store, and the window forgot that it had anything left there.
    check(
        "
        limits window_max=2 look_ahead=10
        auto succeed *
        watch a
        0     accept a due=1000
        0     hold_answers loads
        996   accept b*20 due=998 step=0.1
        997   let_store
        1100  assert ended == 21
        ",
        "
        1000 start a #1
        1000 finish a
        ",
    );
}

#[test]
fn what_was_read_and_what_was_filed_meanwhile_share_one_order() {
    check(
        "
        limits look_ahead=10
        auto succeed *
        0     accept a*3 lane=x due=1000
        0     hold_answers loads
        996   change a1 payload=changed
        1001  let_store
        ",
        "
        996 refile changed
        996 answer change a1: done, due t1000
        1001 start changed #1
        1001 finish changed
        1001 start a2 #1
        1001 finish a2
        1001 start a3 #1
        1001 finish a3
        ",
    );
}

#[test]
fn a_partition_that_is_asked_too_much_says_so() {
    check(
        "
        limits look_ahead=10 asked_max=1
        0   accept a due=500
        0   accept b due=500
        1   hold_store finds
        1   cancel a
        1   cancel b
        2   let_store
        ",
        "
        1 answer cancel b: overloaded
        2 cancel a
        2 answer cancel a: cancelled
        ",
    );
}

#[test]
fn what_is_being_recorded_is_bounded_while_the_store_is_slow() {
    // What settles takes no room of its window, so that page after page was read before any of it was written.
    for what in ["expires=11", "lane=l"] {
        let script = format!(
            "
            watch nobody
            queue q paused
            0   accept j*20000 due=10 {what}
            20  hold_store records
            20  resume q
            21  assert loaded <= 9000
            "
        );
        check(&script, "");
    }
}

#[test]
fn a_page_that_shows_what_a_later_owner_has_moved_meets_what_was_filed_while_it_was_read() {
    // Node a does not know yet that b has the partition. Its page names x where b has put it, and x had also been filed
    // at a while the page was read, at its first time: it was taken into memory twice. Found by the simulator.
    check(
        "
        0    accept w due=2
        1    hold_store loads
        1    take_over by=a
        1    accept x due=3
        2    take_over by=b
        2    move x to=5 via=b
        2.5  let_store
        6    assert panics <= 0
        ",
        "
        2 postpone x to t5
        2 answer move x: done, due t5
        2.5 start w #1
        2.5 fenced a
        2.5 start w #1
        5 start x #1
        ",
    );
}

#[test]
fn what_was_filed_while_a_page_was_read_is_not_overtaken_when_the_queue_is_paused_before_it_comes() {
    // Found by random scripts: the page was taken in, and what was filed meanwhile was not.
    check(
        "
        queue q
        0   accept first second lane=x due=0 queue=q
        1   hold_store loads
        1   succeed first
        1   tear after=0
        1   accept torn queue=q
        1   accept b c lane=x due=2 queue=q handler=g
        1   succeed second
        1   change b
        1   pause q
        3   let_store
        4   resume q
        5   receivers g
        ",
        "
        0 start first #1
        1 finish first
        1 start second #1
        1 unknown
        1 finish second
        1 refile b
        1 answer change b: done, due t2
        5 start b #1
        ",
    );
}
