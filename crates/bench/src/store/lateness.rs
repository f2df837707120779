//! How late attempts begin: at a steady rate, and when very many are due at one instant.

use std::time::Duration;

use punctual::Timestamp;

use super::report::{Row, Unit};
use super::world::{self, World};
use super::{Bench, clean};
use crate::stopwatch::{Stopwatch, wall_now};

const SPIKE: usize = 50_000;
/// Tasks are scheduled so long before they are due.
const AHEAD: Duration = Duration::from_secs(2);
/// And so often.
const STEP: Duration = Duration::from_millis(20);

pub fn run(bench: &mut Bench<'_>) {
    let path = bench.path("lateness");
    let world = World::open(&path);
    for rate in [1_000, 5_000] {
        steady(bench, &world, rate, "");
    }
    spike(bench, &world, "");
    world.close();
    clean(&path);
}

/// So many a second, each due at its own microsecond, for as long as asked for.
pub fn steady(bench: &mut Bench<'_>, world: &World, rate: usize, what: &str) {
    let time = Duration::from_secs(bench.options.seconds);
    bench.tell(&format!("lateness at {rate}/s for {time:?}{what}"));
    let checkpoints = world.store.checkpoints();
    world.seen.take_lateness();
    let before = world.seen.started();
    let scheduled = world.runtime.block_on(world.runtime.spawn(produce(world.scheduler.clone(), rate, time)));
    world.runtime.block_on(world.seen.until_started(before + scheduled.expect("it does not panic")));
    let late = world.seen.take_lateness();
    let name = |figure: &str| format!("lateness {figure} at {rate}/s{what}");
    bench.note(Row::new(name("p50"), late.per_mille(500), Unit::Milliseconds, ""));
    bench.note(Row::new(name("p99"), late.per_mille(990), Unit::Milliseconds, "< 2 ms"));
    bench.note(Row::new(name("p99.9"), late.per_mille(999), Unit::Milliseconds, "< 10 ms"));
    bench.note(Row::new(name("worst"), late.worst(), Unit::Milliseconds, ""));
    let made = (world.store.checkpoints() - checkpoints) as f64;
    bench.note(Row::new(format!("checkpoints meanwhile{what}"), made, Unit::Count, ""));
}

/// Returns how many were scheduled.
#[expect(clippy::disallowed_methods, reason = "a load of so many a second goes by the clock")]
async fn produce(
    scheduler: punctual::Scheduler<punctual::EmbeddedStore>,
    rate: usize,
    time: Duration,
) -> usize {
    let (watch, begin) = (Stopwatch::start(), wall_now() + AHEAD.as_micros() as i64);
    let mut scheduled = 0;
    let mut ticks = tokio::time::interval(STEP);
    while watch.elapsed() < time {
        ticks.tick().await;
        let wanted = (watch.elapsed().as_secs_f64() * rate as f64) as usize;
        let due = |number: usize| Timestamp::from_micros(begin + (number * 1_000_000 / rate) as i64);
        let tasks = (scheduled..wanted).map(|number| world::task().at(due(number))).collect();
        for answer in scheduler.schedule_many(tasks).await {
            answer.expect("nothing refuses it");
        }
        scheduled = wanted;
    }
    scheduled
}

/// From the instant until the last of them has begun.
pub fn spike(bench: &mut Bench<'_>, world: &World, what: &str) {
    let mut worst = Vec::new();
    for round in 1..=bench.options.rounds.min(3) {
        bench.tell(&format!("spike of {SPIKE}{what}, round {round}"));
        world.seen.take_lateness();
        let all = world.seen.started() + SPIKE;
        let due = Timestamp::from_micros(wall_now() + 3_000_000);
        world.runtime.block_on(async {
            for _ in 0..SPIKE / world::PER_CALL {
                let tasks = (0..world::PER_CALL).map(|_| world::task().at(due)).collect();
                for answer in world.scheduler.schedule_many(tasks).await {
                    answer.expect("nothing refuses it");
                }
            }
            world.seen.until_started(all).await;
        });
        worst.push(world.seen.take_lateness().worst());
    }
    let median = super::report::median(worst.into_iter());
    bench.note(Row::new(
        format!("spike of {SPIKE}, last one begun{what}"),
        median,
        Unit::Milliseconds,
        "< 250 ms",
    ));
}
