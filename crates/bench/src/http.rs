//! `http`: a server of its own process, and a load that goes over loopback.
//!
//! Beside each figure stands what can be had with nothing behind it, measured in the same run, in turns: a bare axum server
//! that reads the same JSON from the same generator, and a bare hyper client that makes the same calls. Both are
//! processes of their own too, so that everybody shares the machine in the same way.

mod bare;
mod calls;
mod child;
mod connection;
mod enqueue;
mod isolation;
mod pull;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;

use crate::report::{self, Row};
pub use bare::{CallerOptions, ServerOptions, call, serve};

#[derive(Args)]
pub struct Options {
    /// The server; by default the one that was built beside this program.
    #[arg(long)]
    server: Option<PathBuf>,
    /// A folder on the disk that is to be measured. What it makes there is removed at the end.
    #[arg(long, default_value = "target/http-bench")]
    folder: PathBuf,
    /// Only these parts, a comma between them.
    #[arg(long, value_delimiter = ',', value_parser = ["one-by-one", "bulk", "half-load", "pull", "calls", "isolation"])]
    only: Vec<String>,
    /// How often each is measured in turns with its limit; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long each is measured.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// How many tasks are reserved and acknowledged, and how many calls are made.
    #[arg(long, default_value_t = 100_000)]
    tasks: usize,
    /// How many tasks are due in the paused queue when isolation is measured.
    #[arg(long, default_value_t = 100_000)]
    behind: usize,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// What the parts share.
pub struct Bench<'a> {
    options: &'a Options,
    folder: PathBuf,
    progress: ProgressBar,
    rows: Vec<Row>,
}

const LIMIT: &str = "Limit: a bare axum server that reads the same JSON, asked by the same generator; for calls, a bare \
                     hyper client that makes the same ones; for isolation, the same with nothing beside it.";

pub fn run(options: &Options) {
    let folder = options.folder.join(format!("run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let progress = ProgressBar::new_spinner();
    let mut bench = Bench { options, folder, progress, rows: Vec::new() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("the machine has threads");
    runtime.block_on(async {
        if bench.wants("one-by-one") {
            enqueue::one_by_one(&mut bench).await;
        }
        if bench.wants("bulk") {
            enqueue::bulk(&mut bench).await;
        }
        if bench.wants("half-load") {
            enqueue::half_load(&mut bench).await;
        }
        if bench.wants("pull") {
            pull::run(&mut bench).await;
        }
        if bench.wants("calls") {
            calls::run(&mut bench).await;
        }
        if bench.wants("isolation") {
            isolation::run(&mut bench).await;
        }
    });
    bench.progress.finish_and_clear();
    std::fs::remove_dir_all(&bench.folder).expect("what was made can be removed");
    if options.json {
        report::print_json(&bench.rows);
    } else {
        report::print_table(&bench.rows, LIMIT);
    }
}

impl Bench<'_> {
    fn wants(&self, part: &str) -> bool {
        self.options.only.is_empty() || self.options.only.iter().any(|only| only == part)
    }

    /// How long each part is measured.
    fn time(&self) -> Duration {
        Duration::from_secs(self.options.seconds)
    }

    /// A live line of what is being done.
    fn tell(&self, what: &str) {
        self.progress.set_message(what.to_owned());
        self.progress.tick();
    }

    fn note(&mut self, row: Row) {
        self.progress.suspend(|| eprintln!("{row}"));
        self.rows.push(row);
    }
}
