//! Runs seeds and reports which promises broke: `punctual-sim --seeds 1000`, `punctual-sim --seed 15`.

use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use punctual_sim::bugs::Bug;
use punctual_sim::coverage::Coverage;
use punctual_sim::run::{Outcome, listen_for_panics, run};

/// Runs a small cluster on simulated time with everything going wrong, and checks every promise.
#[derive(Parser)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Run this seed only.
    #[arg(long)]
    seed: Option<u64>,
    /// Print everything that happened (with --seed).
    #[arg(long)]
    log: bool,
    /// Plant this bug, and see it caught.
    #[arg(long, value_parser = parse_bug)]
    bug: Option<Bug>,
}

fn parse_bug(name: &str) -> Result<Bug, String> {
    Bug::named(name).ok_or_else(|| format!("there is no such bug; there are {:?}", Bug::ALL))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    listen_for_panics();
    match arguments.seed {
        Some(seed) => one(seed, &arguments),
        None => many(&arguments),
    }
}

fn one(seed: u64, arguments: &Arguments) -> ExitCode {
    let outcome = run(seed, arguments.bug, arguments.log);
    outcome.log.iter().for_each(|line| println!("{line}"));
    println!("seed {seed}: {} events, fingerprint {:016x}", outcome.events, outcome.fingerprint);
    report(seed, &outcome, arguments.bug)
}

fn many(arguments: &Arguments) -> ExitCode {
    let total = Coverage::default();
    let style = ProgressStyle::with_template("{pos}/{len} seeds {wide_bar} {eta}");
    let progress = ProgressBar::new(arguments.seeds).with_style(style.expect("the template is right"));
    let mut failed = 0;
    for seed in arguments.from..arguments.from + arguments.seeds {
        let outcome = run(seed, arguments.bug, false);
        total.add(&outcome.coverage);
        if !outcome.violations.is_empty() {
            failed += 1;
            progress.suspend(|| report(seed, &outcome, arguments.bug));
        }
        // One in a hundred is run again: a run that cannot be repeated cannot be trusted either.
        if seed % 100 == 0 && run(seed, arguments.bug, false).fingerprint != outcome.fingerprint {
            failed += 1;
            progress.suspend(|| println!("seed {seed} did not repeat itself"));
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    let idle = print_coverage(&total, arguments.seeds);
    println!("{} passed, {failed} failed", arguments.seeds - failed);
    if failed == 0 && !idle { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Says what happened how often, and whether something never did though there were seeds enough.
fn print_coverage(total: &Coverage, seeds: u64) -> bool {
    let mut idle = false;
    for (name, count) in total.all() {
        println!("{name:>24} {count}");
        if count == 0 && seeds >= 100 {
            println!("{name} never happened in {seeds} seeds: they prove nothing about it");
            idle = true;
        }
    }
    idle
}

fn report(seed: u64, outcome: &Outcome, bug: Option<Bug>) -> ExitCode {
    if outcome.violations.is_empty() {
        return ExitCode::SUCCESS;
    }
    for violation in outcome.violations.iter().take(5) {
        println!("seed {seed} broke {}: {}", violation.promise, violation.what);
    }
    let bug = bug.map_or(String::new(), |bug| format!(" --bug {bug:?}"));
    println!("reproduce: cargo run --release -p punctual-sim -- --seed {seed} --log{bug}");
    ExitCode::FAILURE
}
