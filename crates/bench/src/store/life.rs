//! Whole lives: accepted, run, ended, all of it recorded.

use super::enqueue::limit;
use super::world::{self, PER_CALL, World};
use super::{Bench, clean};
use crate::journal::Zeroed;
use crate::report::{Row, Unit};
use crate::stopwatch::Stopwatch;

const TASKS: usize = 300_000;
const OUTSTANDING: usize = 10_000;
const DUE: usize = 100_000;
const PRODUCERS: usize = 10;

pub fn run(bench: &mut Bench<'_>) {
    let path = bench.path("life");
    let world = World::open(&path);
    let mut log = Zeroed::open(&bench.path("life.log"));
    let (mut ours, mut limits) = (Vec::new(), Vec::new());
    let before = world.store.journal_written();
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("life cycles, round {round}"));
        limits.push(limit(&mut log, (2_048, 200)));
        ours.push(steady(&world, TASKS));
    }
    let work = format!("life cycle, {OUTSTANDING} outstanding, 1,000 a call");
    bench.note(Row::beside_limit(work, &ours, &limits, "≥ 300 k/s"));
    let after = world.store.journal_written();
    let tasks = (TASKS * bench.options.rounds) as f64;
    let each = |figure: u64| figure as f64 / tasks;
    bench.note(Row::new("journal bytes a life cycle", each(after.bytes - before.bytes), Unit::Count, ""));
    let per_sync = 1.0 / each(after.frames - before.frames);
    bench.note(Row::new("life cycles a sync", per_sync, Unit::Count, ""));

    let mut ours = Vec::new();
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("{DUE} due tasks, round {round}"));
        ours.push(drain(&world));
    }
    let median = crate::report::median(ours.into_iter());
    bench.note(Row::new(format!("run {DUE} due tasks, a no-op each"), median, Unit::PerSecond, "≥ 300 k/s"));
    world.close();
    clean(&path);
}

/// Never more than so many that have not ended.
pub fn steady(world: &World, tasks: usize) -> f64 {
    let all = world.seen.ended() + tasks;
    world.seen.room.forget_permits(usize::MAX >> 4);
    world.seen.room.add_permits(OUTSTANDING);
    let watch = Stopwatch::start();
    for producer in 0..PRODUCERS {
        let (scheduler, seen) = (world.scheduler.clone(), world.seen.clone());
        world.runtime.spawn(async move {
            for call in 0..tasks / PRODUCERS / PER_CALL {
                seen.room.acquire_many(PER_CALL as u32).await.expect("nobody closes it").forget();
                world::schedule_many(&scheduler, producer + call, world::due_now).await;
            }
        });
    }
    world.runtime.block_on(world.seen.until_ended(all));
    tasks as f64 / watch.elapsed().as_secs_f64()
}

/// Tasks that wait in a paused queue, and are let go at once.
fn drain(world: &World) -> f64 {
    const QUEUE: &str = "drained";
    world.runtime.block_on(world.scheduler.pause(QUEUE)).expect("paused");
    world.schedule_all(DUE, PRODUCERS, |_| world::task().queue(QUEUE));
    let all = world.seen.ended() + DUE;
    let watch = Stopwatch::start();
    world.runtime.block_on(async {
        world.scheduler.resume(QUEUE).await.expect("resumed");
        world.seen.until_ended(all).await;
    });
    DUE as f64 / watch.elapsed().as_secs_f64()
}
