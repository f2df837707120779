//! `life-cycle`: how many tasks live from creation to recorded end in a second, and what each allocates.
//!
//! A life cycle is: created, recorded, accepted, waits, offered, granted, started, reported, its end recorded,
//! forgotten. Beside each path stands a limit of the same run: the least that anything of the kind must do.
//! Rounds go through all paths in turn, so that a noisy minute of the machine hits everyone.

mod engine;
pub mod library;
mod report;
pub mod store;

use clap::Args;
use indicatif::ProgressBar;

use punctual_bench::echo::Lanes;

use engine::{Due, Load};
use report::Row;

#[derive(Args)]
pub struct Options {
    /// How many tasks live in each round of each path.
    #[arg(long, default_value_t = 500_000)]
    tasks: usize,
    /// How often each path is measured; the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only paths with this in their name.
    #[arg(long)]
    only: Option<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// What a path took in one round.
#[derive(Clone, Copy)]
pub struct Round {
    pub tasks: usize,
    pub seconds: f64,
    /// On all threads.
    pub cpu_seconds: f64,
    pub allocations: u64,
    pub bytes: u64,
}

/// A path that is measured, and the limit beside it.
struct Path {
    name: String,
    measure: Box<dyn Fn(usize) -> Round>,
    limit: Limit,
}

/// The least that anything of the kind must do.
struct Limit {
    name: &'static str,
    measure: fn(usize) -> Round,
}

const QUEUE: Limit = Limit { name: "make, queue, drop", measure: engine::through_a_queue };
const SPAWN: Limit = Limit { name: "spawn, send back", measure: library::bare_spawns };

pub fn run(options: &Options) {
    let paths: Vec<Path> = paths().into_iter().filter(|path| options.wants(&path.name)).collect();
    let mut rounds: Vec<(Vec<Round>, Vec<Round>)> = paths.iter().map(|_| (Vec::new(), Vec::new())).collect();
    let progress = ProgressBar::new_spinner();
    for number in 1..=options.rounds {
        for (path, (ours, limits)) in paths.iter().zip(&mut rounds) {
            progress.set_message(format!("round {number}: {}", path.name));
            progress.tick();
            limits.push((path.limit.measure)(options.tasks));
            ours.push((path.measure)(options.tasks));
        }
    }
    progress.finish_and_clear();
    let named = paths.iter().zip(&rounds);
    let rows: Vec<Row> =
        named.map(|(path, (ours, limits))| Row::new(&path.name, path.limit.name, ours, limits)).collect();
    if options.json {
        report::print_json(&rows);
    } else {
        report::print_table(&rows);
    }
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }
}

fn paths() -> Vec<Path> {
    let mut paths = Vec::new();
    let plain = Load { partitions: 1, batch: 256, due: Due::Now, lanes: Lanes::None };
    for (partitions, batch) in [(1, 256), (1, 2_048), (64, 256), (64, 2_048)] {
        paths.push(engine_path(Load { partitions, batch, ..plain }));
    }
    for (partitions, batch) in [(1, 256), (64, 2_048)] {
        paths.push(engine_path(Load { partitions, batch, due: Due::Soon, ..plain }));
    }
    for lanes in [Lanes::Own, Lanes::Shared(1_000)] {
        for (partitions, batch) in [(1, 256), (64, 2_048)] {
            paths.push(engine_path(Load { partitions, batch, lanes, ..plain }));
        }
    }
    for (partitions, batch) in [(1, 256), (64, 2_048)] {
        paths.push(store_path(Load { partitions, batch, ..plain }));
    }
    paths.push(library_path("library, burst, 1000 a call", library::burst));
    paths.push(library_path("library, 10,000 outstanding, 1000 a call", library::steady));
    paths.push(library_path("library, 50 callers, one by one", library::one_by_one));
    paths
}

fn engine_path(load: Load) -> Path {
    let name = format!("engine, {load}");
    Path { name, measure: Box::new(move |tasks| engine::alone(load, tasks)), limit: QUEUE }
}

fn store_path(load: Load) -> Path {
    let name = format!("engine + memory store, {load}");
    Path { name, measure: Box::new(move |tasks| store::with_memory_store(load, tasks)), limit: QUEUE }
}

fn library_path(name: &str, measure: fn(usize) -> Round) -> Path {
    Path { name: name.to_owned(), measure: Box::new(measure), limit: SPAWN }
}
