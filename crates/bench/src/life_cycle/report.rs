//! The figures as a table for people, or as JSON for programs.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::Round;

/// One path and its limit: medians, each of its own; the ratio is the median of the ratios round by round.
#[derive(Serialize)]
pub struct Row {
    path: String,
    per_second: f64,
    ns: f64,
    cpu_ns: f64,
    allocations: f64,
    bytes: f64,
    limit: &'static str,
    limit_per_second: f64,
    ratio: f64,
}

impl Row {
    pub fn new(path: &str, limit: &'static str, ours: &[Round], limits: &[Round]) -> Row {
        let ratios = ours.iter().zip(limits).map(|(ours, limit)| ours.per_second() / limit.per_second());
        let per_second = median(ours.iter().map(Round::per_second));
        Row {
            path: path.to_owned(),
            per_second,
            ns: 1e9 / per_second,
            cpu_ns: median(ours.iter().map(|round| round.cpu_seconds * 1e9 / round.tasks as f64)),
            allocations: median(ours.iter().map(|round| round.allocations as f64 / round.tasks as f64)),
            bytes: median(ours.iter().map(|round| round.bytes as f64 / round.tasks as f64)),
            limit,
            limit_per_second: median(limits.iter().map(Round::per_second)),
            ratio: median(ratios),
        }
    }
}

impl Round {
    fn per_second(&self) -> f64 {
        self.tasks as f64 / self.seconds
    }
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = figures.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

pub fn print_json(rows: &[Row]) {
    println!("{}", serde_json::to_string_pretty(rows).expect("rows are plain data"));
}

pub fn print_table(rows: &[Row]) {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header([
        "path",
        "life cycles/s",
        "ns",
        "cpu ns",
        "allocations",
        "bytes",
        "limit",
        "limit/s",
        "of limit",
    ]);
    for row in rows {
        table.add_row([
            row.path.clone(),
            format!("{:.0} k", row.per_second / 1e3),
            format!("{:.0}", row.ns),
            format!("{:.0}", row.cpu_ns),
            format!("{:.2}", row.allocations),
            format!("{:.0}", row.bytes),
            row.limit.to_owned(),
            format!("{:.0} k", row.limit_per_second / 1e3),
            format!("{:.3}", row.ratio),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    println!(
        "Time, processor time, allocations and bytes per task. Engine: one thread. Library: two worker threads, producers on them."
    );
}
