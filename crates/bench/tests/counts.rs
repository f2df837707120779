//! What a life cycle costs, in counts: allocations, bytes, changes, records and reads. They are the same on every
//! machine, so that a change that makes Punctual slower or hungrier fails here, whatever the clock says.
//!
//! A bound that is passed by a change that is worth it is raised in the same commit, with the reason.
//! Times and the figures behind these bounds are in `docs/performance.md`.

use std::time::Duration;

use punctual_bench::allocations::Count;
use punctual_bench::echo::{Echo, Lanes, Maker, OPEN, Tally, World};
use punctual_bench::waiting;

const BATCH: usize = 256;
const BATCHES: usize = 100;
const TASKS: u64 = (BATCH * BATCHES) as u64;

/// What so many batches cost, after as many more to warm up.
fn live(partitions: u16, lanes: Lanes, due_in: Duration) -> (Count, Tally) {
    let mut world = World::new(partitions, Echo);
    let mut maker = Maker::new(partitions, OPEN, lanes);
    run(&mut world, &mut maker, due_in);
    let before = world.tally();
    let count = run(&mut world, &mut maker, due_in);
    (count, world.tally().since(before))
}

/// Making the drafts is their creator's work, and not counted.
fn run(world: &mut World<Echo>, maker: &mut Maker, due_in: Duration) -> Count {
    let mut sum = Count::default();
    for _ in 0..BATCHES {
        let due_at = world.now().wall + due_in;
        let drafts = maker.make(BATCH, |_| due_at);
        let before = Count::of_this_thread();
        world.ask(drafts);
        world.settle();
        if !due_in.is_zero() {
            // A little more: the wheel may fire a tick late, never early.
            world.pass(due_in + Duration::from_millis(2));
        }
        sum = sum + (Count::of_this_thread() - before);
    }
    sum
}

#[track_caller]
fn assert_at_most(what: &str, count: u64, each_max: f64) {
    let each = count as f64 / TASKS as f64;
    println!("{what}: {each:.3} a life cycle, at most {each_max}");
    assert!(each <= each_max, "{what}: {each:.3} a life cycle, and {each_max} is the bound");
}

#[test]
fn a_task_that_is_due_allocates_next_to_nothing() {
    let (count, _) = live(1, Lanes::None, Duration::ZERO);
    assert_at_most("allocations", count.allocations, 0.25);
    assert_at_most("bytes", count.bytes, 1_030.0);
}

#[test]
fn a_task_that_waits_on_the_wheel_allocates_next_to_nothing() {
    let (count, _) = live(1, Lanes::None, Duration::from_millis(50));
    assert_at_most("allocations", count.allocations, 0.25);
    assert_at_most("bytes", count.bytes, 1_030.0);
}

#[test]
fn a_lane_of_its_own_allocates_nothing_more() {
    let (count, _) = live(1, Lanes::Own, Duration::ZERO);
    assert_at_most("allocations", count.allocations, 0.25);
    assert_at_most("bytes", count.bytes, 1_030.0);
}

#[test]
fn four_tasks_a_partition_allocate_twice_each() {
    let (count, _) = live(64, Lanes::None, Duration::ZERO);
    assert_at_most("allocations", count.allocations, 1.9);
    assert_at_most("bytes", count.bytes, 970.0);
}

#[test]
fn a_task_inside_the_window_is_never_read_and_written_twice() {
    for (partitions, due_in) in [(1, Duration::ZERO), (1, Duration::from_millis(50)), (64, Duration::ZERO)] {
        let (_, tally) = live(partitions, Lanes::None, due_in);
        assert_eq!((tally.created, tally.started, tally.ended), (TASKS, TASKS, TASKS));
        assert_eq!(tally.reads, 0, "what is created inside the window is not read back");
        // Accepted and ended. A start is written only if the attempt outlives the batch it began in.
        assert_eq!(tally.changes, 2 * TASKS + tally.marks);
        assert!(tally.marks <= 1 + TASKS / 4_096 * u64::from(partitions), "low-water marks: {}", tally.marks);
        assert_eq!(tally.records, 2 * BATCHES as u64, "one batch accepts them all, one ends them all");
    }
}

#[test]
fn a_lane_of_its_own_writes_nothing_more() {
    let (_, tally) = live(1, Lanes::Own, Duration::ZERO);
    assert_eq!((tally.ended, tally.reads), (TASKS, 0));
    assert_eq!(tally.changes, 2 * TASKS + tally.marks);
}

#[test]
fn a_task_outside_the_window_takes_no_memory() {
    let held = waiting::far(100_000);
    assert_eq!((held.bytes, held.tasks), (0, 0));
}

#[test]
fn what_is_due_behind_a_stuck_lane_takes_no_memory() {
    let held = waiting::behind_a_stuck_lane(100_000);
    // The head that runs, and the few that stand behind it.
    assert_eq!((held.bytes, held.tasks), (0, 9));
}

#[test]
fn what_is_due_in_a_paused_queue_takes_no_memory() {
    let held = waiting::in_a_paused_queue(100_000);
    assert_eq!((held.bytes, held.tasks), (0, 0));
}

#[test]
fn a_blocked_lane_takes_less_than_a_hundred_bytes() {
    // Just before the hash tables double, and just after.
    for (lanes, each_max) in [(100_000, 60.0), (120_000, 96.0)] {
        let held = waiting::blocked_lanes(lanes);
        assert_eq!(held.tasks, 0);
        let each = held.bytes as f64 / lanes as f64;
        assert!(
            each <= each_max,
            "{each:.1} bytes a lane when {lanes} are blocked, and {each_max} is the bound"
        );
    }
}
