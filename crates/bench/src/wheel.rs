//! `wheel`: what it costs to start, stop and fire a timer, design by design.
//!
//! All designs get the same work: `n` timers at random times within the horizon; half of them (at most half a
//! million) are stopped in random order and as many started in their place, batch by batch; then time passes, one tick
//! of 1024 µs after the other, until all have fired. Rounds go through all designs in turn, so that a noisy minute of the
//! machine hits everyone, and the table shows medians.

mod designs;
mod load;
mod measure;
mod report;

use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;

use crate::stopwatch;
use designs::Timers;
use load::Load;
use measure::{Round, Skipped};
use report::Row;

#[derive(Args)]
pub struct Options {
    /// How many timers are waiting, a comma between sizes.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 100_000, 10_000_000])]
    timers: Vec<u32>,
    /// How far ahead timers are set.
    #[arg(long, default_value_t = 300)]
    horizon_secs: u32,
    /// How many are stopped in a row before as many are started. It decides whether freed memory is still in the
    /// cache when it is used again: a busy loop works in small batches, a bulk reload in one large one.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// How often each design is measured; the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// A design that has not filled up, or not fired everything, in this time is skipped.
    #[arg(long, default_value_t = 30)]
    budget_secs: u64,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options) {
    // Only `DelayQueue` needs it. It is entered here once, so that no operation pays for entering it.
    let _entered = designs::delay_queue::RUNTIME.enter();
    let progress = ProgressBar::new_spinner();
    let mut rows = Vec::new();
    for &timers in &options.timers {
        rows.extend(measure_all(timers, options, &progress));
    }
    progress.finish_and_clear();
    if options.json {
        report::print_json(&rows);
    } else {
        report::print_tables(&rows, stopwatch::overhead_ns());
    }
}

/// A design that takes part: its name and how to measure it once.
struct Contender {
    name: &'static str,
    measure: fn(&Load, Duration) -> Result<Round, Skipped>,
}

fn contender<T: Timers>() -> Contender {
    Contender { name: T::NAME, measure: measure::round::<T> }
}

fn contenders() -> Vec<Contender> {
    vec![
        contender::<designs::punctual::Punctual>(),
        contender::<designs::heap::Heap>(),
        contender::<designs::tree::Tree>(),
        contender::<designs::delay_queue::TokioDelayQueue>(),
        contender::<designs::simple::SimpleWheel>(),
        contender::<designs::hashed_sorted::HashedSorted>(),
        contender::<designs::hashed_unsorted::HashedUnsorted>(),
    ]
}

fn measure_all(timers: u32, options: &Options, progress: &ProgressBar) -> Vec<Row> {
    let load = Load::new(timers, options.horizon_secs, options.batch as usize);
    let budget = Duration::from_secs(options.budget_secs);
    let contenders = contenders();
    let mut outcomes: Vec<Result<Vec<Round>, Skipped>> = contenders.iter().map(|_| Ok(Vec::new())).collect();
    for round in 1..=options.rounds {
        for (contender, outcome) in contenders.iter().zip(&mut outcomes) {
            let Ok(rounds) = outcome else { continue };
            progress.set_message(format!("{timers} timers, round {round}: {}", contender.name));
            progress.tick();
            match (contender.measure)(&load, budget) {
                Ok(figures) => rounds.push(figures),
                Err(skipped) => *outcome = Err(skipped),
            }
        }
    }
    let named = contenders.iter().zip(outcomes);
    named.map(|(contender, outcome)| Row::new(timers, contender.name, outcome)).collect()
}
