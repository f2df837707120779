//! `journal`: our journal beside the least that any log must do, on the same disk, in the same run.
//!
//! The limit is a file without checksums, segments or recovery, synced after each append: one that grows, as the
//! naive log does, and one that was zeroed before. Rounds go through all of them in turn, after one that does not count.

mod logs;
mod report;

use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;

use crate::stopwatch::{Stopwatch, cpu_time};
pub use logs::Zeroed;
use logs::{Kind, Log};
use report::{Latencies, Row, Timed};

#[derive(Args)]
pub struct Options {
    /// A folder on the disk that is to be measured. What it makes there is removed at the end.
    #[arg(long, default_value = "target/journal-bench")]
    folder: PathBuf,
    /// How often each is measured; the median counts.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// How many appends each round makes, in percent of the usual.
    #[arg(long, default_value_t = 100)]
    percent: usize,
}

/// Each record is a task with a payload of 200 bytes.
pub const RECORD_BYTES: usize = 250;
/// Records in each append, and how many appends a round makes.
const BATCHES: [(usize, usize); 4] = [(1, 3_000), (16, 2_000), (256, 1_000), (2_048, 300)];

pub fn run(options: &Options) {
    let folder = options.folder.join(format!("run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let bar = ProgressBar::new_spinner();
    let batches: Vec<Row> = BATCHES
        .iter()
        .flat_map(|(batch, appends)| measure_batch(options, &folder, *batch, *appends, &bar))
        .collect();
    bar.set_message("opening");
    let opening = logs::measure_opening(&folder);
    bar.finish_and_clear();
    std::fs::remove_dir_all(&folder).expect("what was made can be removed");
    println!("\nappend and sync, {RECORD_BYTES} bytes a record");
    report::print("batch", &batches);
    println!("\n{opening}");
    println!(
        "Ratios are medians of the ratios to the zeroed file, round by round: of records a second, and of"
    );
    println!("processor time a sync, which says more when others use the machine.");
}

fn scaled(count: usize, options: &Options) -> usize {
    (count * options.percent / 100).max(10)
}

fn measure_batch(
    options: &Options,
    folder: &Path,
    batch: usize,
    appends: usize,
    bar: &ProgressBar,
) -> Vec<Row> {
    let appends = scaled(appends, options);
    let open = |kind: Kind| kind.open(&folder.join(format!("{kind:?}-{batch}")));
    let mut logs = Kind::ALL.map(|kind| (Row::new(batch, kind), open(kind)));
    for round in 0..=options.rounds {
        for (row, log) in &mut logs {
            tell(bar, &format!("batch {batch}, {}", row.kind.name()), round, options);
            row.add(round, append_all(log.as_mut(), batch, appends));
        }
    }
    logs.map(|(row, _)| row).into()
}

fn append_all(log: &mut dyn Log, batch: usize, appends: usize) -> Latencies {
    let record = [7_u8; RECORD_BYTES];
    let records: Vec<&[u8]> = vec![&record; batch];
    let (whole, cpu) = (Stopwatch::start(), cpu_time());
    let mut each = Vec::with_capacity(appends);
    for _ in 0..appends {
        let watch = Stopwatch::start();
        log.append(&records);
        each.push(watch.elapsed());
    }
    let timed = Timed { each, whole: whole.elapsed(), cpu: cpu_time() - cpu };
    Latencies::new(timed, appends * batch, appends)
}

fn tell(bar: &ProgressBar, what: &str, round: usize, options: &Options) {
    bar.set_message(format!("{what}, round {round} of {}", options.rounds));
    bar.tick();
}
