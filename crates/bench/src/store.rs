//! `store`: the library on the embedded store, in a folder of the disk that is to be measured.
//!
//! Beside each figure stands what the machine could do at most, measured in the same run, in turns: records of the
//! same size appended to a bare file that was zeroed before, in the same batches, one sync for each.

mod enqueue;
mod idle;
mod isolation;
mod lateness;
mod life;
mod pending;
pub mod restart;
mod world;

use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;

use crate::report::{self, Row};

#[derive(Args)]
pub struct Options {
    /// A folder on the disk that is to be measured. What it makes there is removed at the end.
    #[arg(long, default_value = "target/store-bench")]
    folder: PathBuf,
    /// Only these parts, a comma between them.
    #[arg(long, value_delimiter = ',', value_parser = ["enqueue", "life", "lateness", "pending", "restart", "isolation", "idle"])]
    only: Vec<String>,
    /// How often each is measured in turns with its limit; the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long lateness and sustained load are measured.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How many tasks are pending when that is measured, a comma between sizes.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000_000])]
    pending: Vec<usize>,
    /// How many tasks the burst makes.
    #[arg(long, default_value_t = 2_000_000)]
    burst: usize,
    /// How many tasks wait behind an obstacle when isolation is measured.
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

const LIMIT: &str = "Limit: the same bytes in the same batches, appended to a bare file that was zeroed, one sync each; for \
                     lateness, a thread that only waits for one instant after the other.";

type Part = fn(&mut Bench<'_>);

const PARTS: [(&str, Part); 7] = [
    ("enqueue", enqueue::run),
    ("life", life::run),
    ("lateness", lateness::run),
    ("pending", pending::run),
    ("restart", restart::run),
    ("isolation", isolation::run),
    ("idle", idle::run),
];

pub fn run(options: &Options) {
    let folder = options.folder.join(format!("run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let progress = ProgressBar::new_spinner();
    let mut bench = Bench { options, folder, progress, rows: Vec::new() };
    for (name, part) in PARTS {
        if options.only.is_empty() || options.only.iter().any(|only| only == name) {
            part(&mut bench);
        }
    }
    bench.progress.finish_and_clear();
    std::fs::remove_dir_all(&bench.folder).expect("what was made can be removed");
    if options.json {
        report::print_json(&bench.rows);
    } else {
        report::print_table(&bench.rows, LIMIT);
    }
}

impl Bench<'_> {
    /// A live line of what is being done.
    fn tell(&self, what: &str) {
        self.progress.set_message(what.to_owned());
        self.progress.tick();
    }

    /// A folder of this name for one world.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn note(&mut self, row: Row) {
        self.progress.suspend(|| eprintln!("{row}"));
        self.rows.push(row);
    }
}

/// Removes what a part made, so that the next one finds the disk as it was.
fn clean(path: &Path) {
    std::fs::remove_dir_all(path).expect("what was made can be removed");
}
