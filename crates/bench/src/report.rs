//! The figures as a table for people, or as JSON for programs.

use std::fmt;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

/// What a figure counts.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    PerSecond,
    Milliseconds,
    #[cfg(feature = "http")]
    Microseconds,
    Mebibytes,
    Percent,
    Count,
    /// How much of the same without something.
    Ratio,
}

/// One figure, and what it is to be seen beside.
#[derive(Serialize)]
pub struct Row {
    work: String,
    figure: f64,
    unit: Unit,
    /// What the machine can do at most, in the same unit.
    limit: Option<f64>,
    /// The figure in relation to the limit: the median of the rounds.
    of_limit: Option<f64>,
    goal: &'static str,
}

impl Row {
    pub fn new(work: impl Into<String>, figure: f64, unit: Unit, goal: &'static str) -> Row {
        Row { work: work.into(), figure, unit, limit: None, of_limit: None, goal }
    }

    /// What the machine itself does in the same unit, measured just before.
    pub fn within(self, limit: f64) -> Row {
        Row { limit: Some(limit), of_limit: Some(self.figure / limit), ..self }
    }

    /// Of rounds of ours and of the limit, in turns.
    pub fn beside_limit(work: impl Into<String>, ours: &[f64], limits: &[f64], goal: &'static str) -> Row {
        let ratios = ours.iter().zip(limits).map(|(ours, limit)| ours / limit);
        Row {
            limit: Some(median(limits.iter().copied())),
            of_limit: Some(median(ratios)),
            ..Row::new(work, median(ours.iter().copied()), Unit::PerSecond, goal)
        }
    }
}

pub fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = figures.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

fn show(figure: f64, unit: Unit) -> String {
    match unit {
        Unit::PerSecond if figure >= 100_000.0 => format!("{:.0} k/s", figure / 1e3),
        Unit::PerSecond if figure >= 1_000.0 => format!("{:.1} k/s", figure / 1e3),
        Unit::PerSecond => format!("{figure:.0} /s"),
        Unit::Milliseconds => format!("{figure:.2} ms"),
        #[cfg(feature = "http")]
        Unit::Microseconds => format!("{figure:.1} µs"),
        Unit::Mebibytes => format!("{figure:.0} MiB"),
        Unit::Percent => format!("{figure:.3} %"),
        Unit::Count => format!("{figure:.0}"),
        Unit::Ratio => format!("{figure:.2}"),
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.work, show(self.figure, self.unit))?;
        match self.of_limit {
            Some(ratio) => write!(f, " ({ratio:.2} of the limit)"),
            None => Ok(()),
        }
    }
}

pub fn print_json(rows: &[Row]) {
    println!("{}", serde_json::to_string_pretty(rows).expect("rows are plain data"));
}

/// `limit` says what the figures are seen beside.
pub fn print_table(rows: &[Row], limit: &str) {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["work", "figure", "limit", "of limit", "goal"]);
    for row in rows {
        table.add_row([
            row.work.clone(),
            show(row.figure, row.unit),
            row.limit.map_or(String::new(), |limit| show(limit, row.unit)),
            row.of_limit.map_or(String::new(), |ratio| format!("{ratio:.2}")),
            row.goal.to_owned(),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    println!("{limit}");
}
