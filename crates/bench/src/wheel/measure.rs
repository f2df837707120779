//! One design, one round.

use std::hint::black_box;
use std::time::Duration;

use punctual_bench::allocations::Count;
use punctual_core::Timestamp;

use super::designs::Timers;
use super::load::Load;
use crate::stopwatch::Stopwatch;

/// What a design took in one round.
#[derive(Clone, Copy)]
pub struct Round {
    pub start_ns: f64,
    pub stop_ns: f64,
    pub tick_ns: f64,
    pub fire_ns: f64,
    pub bytes: f64,
    pub key_bytes: usize,
}

/// Why a design has no figures.
pub struct Skipped(pub String);

/// Between two looks at the budget.
const STEPS: usize = 256;
/// `DelayQueue` rounds up to its own milliseconds and learns of the time a turn late.
const GRACE_TICKS: u64 = 8;

pub fn round<T: Timers>(load: &Load, budget: Duration) -> Result<Round, Skipped> {
    let mut keys = Vec::with_capacity(load.due_at.len());
    let before = Count::of_this_thread();
    let mut timers = T::new(Load::tick_at(0), load.ticks);
    fill(&mut timers, load, &mut keys, budget)?;
    let bytes = (Count::of_this_thread() - before).live_bytes();

    let (stop, start) = churn(&mut timers, load, &keys);
    let walk = walk(&mut timers, load, budget)?;
    Ok(Round {
        start_ns: per(start, load.started_at.len() as u64),
        stop_ns: per(stop, load.stopped.len() as u64),
        tick_ns: per(walk, load.ticks),
        fire_ns: per(walk, load.due_at.len() as u64),
        bytes: bytes as f64 / load.due_at.len() as f64,
        key_bytes: size_of::<T::Key>(),
    })
}

fn per(time: Duration, count: u64) -> f64 {
    time.as_secs_f64() * 1e9 / count as f64
}

fn fill<T: Timers>(
    timers: &mut T,
    load: &Load,
    keys: &mut Vec<T::Key>,
    budget: Duration,
) -> Result<(), Skipped> {
    let watch = Stopwatch::start();
    for (index, &at) in load.due_at.iter().enumerate() {
        if index % STEPS == 0 && watch.elapsed() > budget {
            let all = load.due_at.len();
            return Err(Skipped(format!("{}; {index} of {all} started in {budget:?}", T::WEAKNESS)));
        }
        keys.push(timers.start(at, index as u32));
    }
    Ok(())
}

/// Stops some and starts as many, in batches as a busy loop would; the time for stopping, and for starting.
fn churn<T: Timers>(timers: &mut T, load: &Load, keys: &[T::Key]) -> (Duration, Duration) {
    let stopped: Vec<_> = load.stopped.iter().map(|index| keys[*index as usize]).collect();
    let (mut stop, mut start) = (Duration::ZERO, Duration::ZERO);
    for (stopped, started_at) in stopped.chunks(load.batch).zip(load.started_at.chunks(load.batch)) {
        stop += stop_batch(timers, stopped);
        start += start_batch(timers, started_at);
    }
    (stop, start)
}

fn stop_batch<T: Timers>(timers: &mut T, keys: &[T::Key]) -> Duration {
    let watch = Stopwatch::start();
    for &key in keys {
        timers.stop(key);
    }
    watch.elapsed()
}

fn start_batch<T: Timers>(timers: &mut T, due_at: &[Timestamp]) -> Duration {
    let watch = Stopwatch::start();
    for (index, &at) in due_at.iter().enumerate() {
        black_box(timers.start(at, index as u32));
    }
    watch.elapsed()
}

/// Lets all the time pass, tick by tick.
fn walk<T: Timers>(timers: &mut T, load: &Load, budget: Duration) -> Result<Duration, Skipped> {
    let ticks: Vec<u64> = (1..=load.ticks + GRACE_TICKS).collect();
    let mut due = Vec::with_capacity(load.due_at.len());
    let mut spent = Duration::ZERO;
    for some in ticks.chunks(STEPS) {
        spent += if T::NEEDS_CLOCK {
            walk_by_clock(timers, some, &mut due)
        } else {
            walk_freely(timers, some, &mut due)
        };
        if spent > budget {
            let ticks = ticks.len();
            return Err(Skipped(format!("{}; {} of {ticks} ticks done in {budget:?}", T::WEAKNESS, some[0])));
        }
    }
    assert_eq!(due.len(), load.due_at.len(), "{} lost timers or made some up", T::NAME);
    Ok(spent)
}

fn walk_freely<T: Timers>(timers: &mut T, ticks: &[u64], due: &mut Vec<u32>) -> Duration {
    let watch = Stopwatch::start();
    for &tick in ticks {
        timers.advance(Load::tick_at(tick), due);
    }
    watch.elapsed()
}

/// Leaves out what it takes to move the clock, which in real life moves by itself.
fn walk_by_clock<T: Timers>(timers: &mut T, ticks: &[u64], due: &mut Vec<u32>) -> Duration {
    let mut spent = Duration::ZERO;
    for &tick in ticks {
        let now = Load::tick_at(tick);
        timers.move_clock(now);
        let watch = Stopwatch::start();
        timers.advance(now, due);
        spent += watch.elapsed();
    }
    spent
}
