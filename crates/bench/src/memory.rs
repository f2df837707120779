//! `memory`: what a node holds for tasks that wait. What a store holds is not counted: here it keeps nothing.

use clap::Args;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use indicatif::ProgressBar;
use punctual_bench::waiting::{self, Held};
use serde::Serialize;

#[derive(Args)]
pub struct Options {
    /// How many tasks wait far ahead, a comma between sizes.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000_000, 10_000_000])]
    far: Vec<usize>,
    /// How many are due behind one stuck lane, and how many in a paused queue.
    #[arg(long, default_value_t = 1_000_000)]
    due: usize,
    /// How many lanes are blocked.
    #[arg(long, default_value_t = 100_000)]
    lanes: usize,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    waits: String,
    count: usize,
    bytes: i64,
    bytes_each: f64,
    in_memory: usize,
}

pub fn run(options: &Options) {
    let progress = ProgressBar::new_spinner();
    let mut rows = Vec::new();
    let mut measure = |waits: &str, count: usize, hold: fn(usize) -> Held| {
        progress.set_message(format!("{count} {waits}"));
        progress.tick();
        let held = hold(count);
        let bytes_each = held.bytes as f64 / count as f64;
        rows.push(Row { waits: waits.into(), count, bytes: held.bytes, bytes_each, in_memory: held.tasks });
    };
    for &count in &options.far {
        measure("tasks due in a year", count, waiting::far);
    }
    measure("tasks due behind one stuck lane", options.due, waiting::behind_a_stuck_lane);
    measure("tasks due in a paused queue", options.due, waiting::in_a_paused_queue);
    measure("blocked lanes", options.lanes, waiting::blocked_lanes);
    progress.finish_and_clear();
    if options.json {
        println!("{}", serde_json::to_string_pretty(&rows).expect("rows are plain data"));
    } else {
        print_table(&rows);
    }
}

fn print_table(rows: &[Row]) {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["what waits", "how many", "bytes more", "bytes each", "tasks in memory"]);
    for row in rows {
        table.add_row([
            row.waits.clone(),
            row.count.to_string(),
            row.bytes.to_string(),
            format!("{:.3}", row.bytes_each),
            row.in_memory.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    println!("Bytes that a node of 64 partitions holds more than after the first ten thousand of the kind.");
}
