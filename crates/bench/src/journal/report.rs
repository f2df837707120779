//! The figures as a table, with ratios to the bare file that was zeroed before.

use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::logs::Kind;

/// What was measured in one round.
pub struct Timed {
    /// From each request to its answer.
    pub each: Vec<Duration>,
    pub whole: Duration,
    /// Of the processor, on all threads.
    pub cpu: Duration,
}

/// What one round took.
pub struct Latencies {
    per_second: f64,
    p50: Duration,
    p99: Duration,
    cpu_per_write: Duration,
    records_per_write: f64,
}

impl Latencies {
    pub fn new(timed: Timed, records: usize, writes: usize) -> Latencies {
        let mut each = timed.each;
        each.sort();
        let at = |percent: usize| each[(each.len() - 1) * percent / 100];
        Latencies {
            per_second: records as f64 / timed.whole.as_secs_f64(),
            p50: at(50),
            p99: at(99),
            cpu_per_write: timed.cpu / u32::try_from(writes).expect("not that many"),
            records_per_write: records as f64 / writes as f64,
        }
    }
}

pub struct Row {
    load: usize,
    pub kind: Kind,
    rounds: Vec<Latencies>,
}

impl Row {
    pub fn new(load: usize, kind: Kind) -> Row {
        Row { load, kind, rounds: Vec::new() }
    }

    /// Round 0 is there to warm up, and does not count.
    pub fn add(&mut self, round: usize, taken: Latencies) {
        if round > 0 {
            self.rounds.push(taken);
        }
    }

    fn median<T: PartialOrd + Copy>(&self, figure: impl Fn(&Latencies) -> T) -> T {
        median(self.rounds.iter().map(figure))
    }

    /// How it does beside the limit, round by round.
    fn ratio(&self, limit: &Row, figure: fn(&Latencies) -> f64) -> String {
        let rounds = self.rounds.iter().zip(&limit.rounds);
        format!("{:.2}", median(rounds.map(|(ours, limit)| figure(ours) / figure(limit))))
    }
}

fn median<T: PartialOrd + Copy>(figures: impl Iterator<Item = T>) -> T {
    let mut all: Vec<T> = figures.collect();
    all.sort_by(|a, b| a.partial_cmp(b).expect("figures can be compared"));
    all[all.len() / 2]
}

pub fn print(load: &str, rows: &[Row]) {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header([load, "log", "records/s", "ratio", "p50", "p99", "cpu/sync", "ratio", "records/sync"]);
    for row in rows {
        let limit = rows.iter().find(|limit| limit.load == row.load && limit.kind == Kind::Zeroed);
        table.add_row([
            row.load.to_string(),
            row.kind.name().to_owned(),
            format!("{:.0}", row.median(|round| round.per_second)),
            limit.map_or(String::new(), |limit| row.ratio(limit, |round| round.per_second)),
            format!("{:.0?}", row.median(|round| round.p50)),
            format!("{:.0?}", row.median(|round| round.p99)),
            format!("{:.0?}", row.median(|round| round.cpu_per_write)),
            limit.map_or(String::new(), |limit| row.ratio(limit, |round| round.cpu_per_write.as_secs_f64())),
            format!("{:.0}", row.median(|round| round.records_per_write)),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
}
