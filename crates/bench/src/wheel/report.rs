//! The figures as tables for people, with ratios to our wheel, or as JSON for programs.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::measure::{Round, Skipped};

#[derive(Serialize)]
pub struct Row {
    timers: u32,
    design: &'static str,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Measured(Figures),
    Skipped(String),
}

/// Medians, each of its own.
#[derive(Serialize, Clone, Copy)]
struct Figures {
    start_ns: f64,
    stop_ns: f64,
    tick_ns: f64,
    fire_ns: f64,
    bytes_per_timer: f64,
    key_bytes: usize,
}

impl Row {
    pub fn new(timers: u32, design: &'static str, outcome: Result<Vec<Round>, Skipped>) -> Self {
        let outcome = match outcome {
            Ok(rounds) => Outcome::Measured(Figures::of(&rounds)),
            Err(Skipped(reason)) => Outcome::Skipped(reason),
        };
        Row { timers, design, outcome }
    }

    fn figures(&self) -> Option<Figures> {
        match self.outcome {
            Outcome::Measured(figures) => Some(figures),
            Outcome::Skipped(_) => None,
        }
    }
}

impl Figures {
    fn of(rounds: &[Round]) -> Self {
        Figures {
            start_ns: median(rounds, |round| round.start_ns),
            stop_ns: median(rounds, |round| round.stop_ns),
            tick_ns: median(rounds, |round| round.tick_ns),
            fire_ns: median(rounds, |round| round.fire_ns),
            bytes_per_timer: median(rounds, |round| round.bytes),
            key_bytes: rounds.first().map_or(0, |round| round.key_bytes),
        }
    }
}

fn median(rounds: &[Round], figure: fn(&Round) -> f64) -> f64 {
    let mut all: Vec<f64> = rounds.iter().map(figure).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

pub fn print_json(rows: &[Row]) {
    println!("{}", serde_json::to_string_pretty(rows).expect("rows are plain data"));
}

pub fn print_tables(rows: &[Row], overhead_ns: f64) {
    for rows in rows.chunk_by(|a, b| a.timers == b.timers) {
        println!("\n{} timers", rows[0].timers);
        println!("{}", table(rows));
        for row in rows {
            if let Outcome::Skipped(reason) = &row.outcome {
                println!("{} skipped: {reason}", row.design);
            }
        }
    }
    println!(
        "\nNanoseconds per operation, and how many times ours. `tick` is one tick of 1024 µs with all that fires"
    );
    println!(
        "in it; `fire` is the same time, per timer. `bytes` are allocated per waiting timer; `key` is what the"
    );
    println!(
        "caller keeps to stop it. DelayQueue is timed tick by tick, without the runtime's own timer behind it:"
    );
    println!("its tick includes {overhead_ns:.0} ns of reading the clock.");
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["design", "start", "stop", "tick", "fire", "start + fire", "bytes", "key"]);
    let ours = rows.first().and_then(Row::figures);
    for row in rows {
        table.add_row(cells(row, ours));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn cells(row: &Row, ours: Option<Figures>) -> Vec<String> {
    let (Some(figures), Some(ours)) = (row.figures(), ours) else {
        return vec![row.design.to_owned(), "skipped".to_owned()];
    };
    vec![
        row.design.to_owned(),
        with_ratio(figures.start_ns, ours.start_ns),
        with_ratio(figures.stop_ns, ours.stop_ns),
        with_ratio(figures.tick_ns, ours.tick_ns),
        with_ratio(figures.fire_ns, ours.fire_ns),
        with_ratio(figures.start_ns + figures.fire_ns, ours.start_ns + ours.fire_ns),
        with_ratio(figures.bytes_per_timer, ours.bytes_per_timer),
        figures.key_bytes.to_string(),
    ]
}

fn with_ratio(figure: f64, ours: f64) -> String {
    format!("{figure:.1} ({:.1}×)", figure / ours)
}
