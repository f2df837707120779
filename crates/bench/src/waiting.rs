//! What a node holds in memory for tasks that wait, when its store's memory is not counted.

use std::time::Duration;

use punctual_core::{Limits, QueueId};

use crate::allocations::Count;
use crate::echo::{Attempts, Echo, Lanes, Maker, OPEN, PAUSED, World};

const PARTITIONS: u16 = 64;
const BATCH: usize = 1_000;
/// After so many, every buffer has the size that it keeps.
const WARM_UP: usize = 10_000;
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// What a node holds more than before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Bytes, beyond what it held after the first ten thousand of the kind.
    pub bytes: i64,
    /// Tasks.
    pub tasks: usize,
}

/// So many tasks are due in a year.
pub fn far(tasks: usize) -> Held {
    let mut world = world();
    held_for(&mut world, tasks, YEAR, OPEN, Lanes::None)
}

/// So many tasks are due behind the head of one lane, whose attempt never ends.
pub fn behind_a_stuck_lane(tasks: usize) -> Held {
    let mut world = world();
    world.set_attempts(Attempts::Hang);
    held_for(&mut world, tasks, Duration::ZERO, OPEN, Lanes::Shared(1))
}

/// So many tasks are due in a queue that is paused.
pub fn in_a_paused_queue(tasks: usize) -> Held {
    let mut world = world();
    held_for(&mut world, tasks, Duration::ZERO, PAUSED, Lanes::None)
}

/// So many lanes wait for a person, because their head was given up.
pub fn blocked_lanes(lanes: usize) -> Held {
    let mut world = world();
    world.set_attempts(Attempts::GiveUp);
    held_for(&mut world, lanes, Duration::ZERO, OPEN, Lanes::Own)
}

/// With the limits that a program gets when it says nothing.
fn world() -> World<Echo> {
    World::with_limits(PARTITIONS, Limits::default(), Echo)
}

fn held_for(world: &mut World<Echo>, tasks: usize, due: Duration, queue: QueueId, lanes: Lanes) -> Held {
    let mut maker = Maker::new(PARTITIONS, queue, lanes);
    create(world, &mut maker, WARM_UP, due);
    let before = Count::of_this_thread();
    create(world, &mut maker, tasks, due);
    let tally = world.tally();
    // Otherwise nothing would be held because nothing was there, or because a page is still awaited.
    assert!(tally.created >= tasks as u64 && tally.reads == 0, "all are there, none was read: {tally:?}");
    Held { bytes: (Count::of_this_thread() - before).live_bytes(), tasks: world.loaded() }
}

fn create(world: &mut World<Echo>, maker: &mut Maker, tasks: usize, due: Duration) {
    for _ in 0..tasks.div_ceil(BATCH) {
        let now = world.now().wall;
        world.ask(maker.make(BATCH, |_| now + due));
        world.settle();
    }
}
