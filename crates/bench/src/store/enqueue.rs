//! Tasks of tomorrow are accepted: one by one, by many callers, and in bulk.

use std::time::Duration;

use super::world::{self, World};
use super::{Bench, clean};
use crate::journal::{RECORD_BYTES, Zeroed};
use crate::report::{Row, Unit};
use crate::stopwatch::Stopwatch;

const CALLERS: usize = 50;
const ONE_BY_ONE: usize = 2_000;
const PER_CALLER: usize = 400;
/// Callers that hand over a thousand at a time.
const BULK_CALLERS: usize = 4;
const BULK_BATCH: usize = 2_048;

pub fn run(bench: &mut Bench<'_>) {
    let path = bench.path("enqueue");
    let world = World::open(&path);
    let mut log = Zeroed::open(&bench.path("enqueue.log"));
    let [one, many, bulk] = [(1, 2_000), (CALLERS, 1_000), (BULK_BATCH, 200)];

    let (mut ours, mut limits) = (Vec::new(), Vec::new());
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("enqueue, one caller, round {round}"));
        limits.push(limit(&mut log, one));
        ours.push(one_by_one(&world, 1, ONE_BY_ONE));
    }
    bench.note(Row::beside_limit("enqueue, one caller", &ours, &limits, "≥ 0.9 of the limit"));

    let (mut ours, mut limits) = (Vec::new(), Vec::new());
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("enqueue, {CALLERS} callers, round {round}"));
        limits.push(limit(&mut log, many));
        ours.push(one_by_one(&world, CALLERS, PER_CALLER));
    }
    bench.note(Row::beside_limit(format!("enqueue, {CALLERS} callers"), &ours, &limits, ""));

    bench.tell(&format!("enqueue, a burst of {}", bench.options.burst));
    let limits = [limit(&mut log, bulk)];
    let ours = [world.schedule_all(bench.options.burst, BULK_CALLERS, world::tomorrow)];
    let work = format!("enqueue, a burst of {}, 1,000 a call", bench.options.burst);
    bench.note(Row::beside_limit(work, &ours, &limits, "≥ 500 k/s"));

    bench.tell(&format!("enqueue, for {} s", bench.options.seconds));
    let limits = [limit(&mut log, bulk)];
    let ours = [sustained(&world, Duration::from_secs(bench.options.seconds))];
    let work = format!("enqueue, for {} s, 1,000 a call", bench.options.seconds);
    bench.note(Row::beside_limit(work, &ours, &limits, "≥ 200 k/s"));
    bench.note(Row::new("memory after that", world::memory(), Unit::Mebibytes, ""));
    world.close();
    clean(&path);
}

/// What the disk takes in, in records a second: so many records in each append, so many appends.
pub fn limit(log: &mut Zeroed, (batch, appends): (usize, usize)) -> f64 {
    let record = [7_u8; RECORD_BYTES];
    let watch = Stopwatch::start();
    for _ in 0..appends {
        (0..batch).for_each(|_| log.push(&record));
        log.write();
    }
    (batch * appends) as f64 / watch.elapsed().as_secs_f64()
}

fn one_by_one(world: &World, callers: usize, each: usize) -> f64 {
    let watch = Stopwatch::start();
    let callers: Vec<_> = (0..callers)
        .map(|caller| {
            let scheduler = world.scheduler.clone();
            world.runtime.spawn(async move {
                for number in 0..each {
                    let task = world::tomorrow(caller * each + number);
                    scheduler.schedule(task).await.expect("nothing refuses it");
                }
            })
        })
        .collect();
    let count = callers.len() * each;
    for caller in callers {
        world.runtime.block_on(caller).expect("it does not panic");
    }
    count as f64 / watch.elapsed().as_secs_f64()
}

fn sustained(world: &World, time: Duration) -> f64 {
    const STEP: usize = 100_000;
    let (watch, mut count) = (Stopwatch::start(), 0);
    while watch.elapsed() < time {
        world.schedule_all(STEP, BULK_CALLERS, world::tomorrow);
        count += STEP;
    }
    count as f64 / watch.elapsed().as_secs_f64()
}
