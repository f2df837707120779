//! How late attempts begin: at a steady rate, and when very many are due at one instant.

use std::time::Duration;

use punctual::Timestamp;

use super::world::{self, Lateness, World};
use super::{Bench, clean};
use crate::report::{Row, Unit};
use crate::stopwatch::{Stopwatch, wall_now};

const SPIKE: usize = 50_000;
/// Tasks are scheduled so long before they are due.
const AHEAD: Duration = Duration::from_secs(2);
/// And so often.
const STEP: Duration = Duration::from_millis(20);
/// The machine itself is measured for this part of the time.
const LIMIT_SHARE: u32 = 5;

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
    let limit = bare_timer(rate, time / LIMIT_SHARE);
    let checkpoints = world.store.checkpoints();
    world.seen.take_lateness();
    let before = world.seen.started();
    let scheduled = world.runtime.block_on(world.runtime.spawn(produce(world.scheduler.clone(), rate, time)));
    world.runtime.block_on(world.seen.until_started(before + scheduled.expect("it does not panic")));
    let late = world.seen.take_lateness();
    for (figure, per_mille, goal) in
        [("p50", 500, ""), ("p99", 990, "< 2 ms"), ("p99.9", 999, "< 10 ms"), ("worst", 1_000, "")]
    {
        let name = format!("lateness {figure} at {rate}/s{what}");
        let row = Row::new(name, late.per_mille(per_mille), Unit::Milliseconds, goal);
        bench.note(row.within(limit.per_mille(per_mille)));
    }
    let made = (world.store.checkpoints() - checkpoints) as f64;
    bench.note(Row::new(format!("checkpoints meanwhile{what}"), made, Unit::Count, ""));
}

/// How late a thread is that does nothing but wait for one instant after the other: nobody can be more punctual here.
#[expect(clippy::disallowed_methods, reason = "this is the bare timer")]
fn bare_timer(rate: usize, time: Duration) -> Lateness {
    let count = (time.as_secs_f64() * rate as f64) as usize;
    let watch = Stopwatch::start();
    let late = (0..count).map(|number| {
        let due = Duration::from_micros((number * 1_000_000 / rate) as u64);
        std::thread::sleep(due.saturating_sub(watch.elapsed()));
        watch.elapsed().saturating_sub(due)
    });
    Lateness::of(late)
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
    let median = crate::report::median(worst.into_iter());
    bench.note(Row::new(
        format!("spike of {SPIKE}, last one begun{what}"),
        median,
        Unit::Milliseconds,
        "< 250 ms",
    ));
}
