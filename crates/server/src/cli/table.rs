//! Tables for people: aligned columns without lines, so that they can be copied and cut.

use std::io::IsTerminal;

use comfy_table::{Cell, Color, Table, presets};
use punctual_client::wire::State;

/// A row of texts; a column that is empty in all rows is left out.
pub struct Rows {
    header: Vec<&'static str>,
    rows: Vec<Vec<Text>>,
}

/// What stands in a cell.
pub struct Text {
    text: String,
    color: Option<Color>,
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Text {
        Text { text: printable(text.into()), color: None }
    }
}

/// What others have named must not move the cursor, change colors, ring the bell or turn the line around: control
/// characters are written out.
fn printable(text: String) -> String {
    let turns = |letter: char| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_plain = |letter: char| letter == '\n' || !letter.is_control() && !turns(letter);
    if text.chars().all(is_plain) {
        return text;
    }
    let written = |letter: char| {
        if is_plain(letter) { letter.to_string() } else { letter.escape_default().to_string() }
    };
    text.chars().map(written).collect()
}

/// A state in its color.
pub fn state(state: State) -> Text {
    let color = match state {
        State::Scheduled | State::Cancelled => None,
        State::Running | State::Reserved => Some(Color::Cyan),
        State::Retrying => Some(Color::Yellow),
        State::Succeeded => Some(Color::Green),
        State::Blocked | State::Dead | State::Expired => Some(Color::Red),
    };
    Text { text: state.to_string(), color }
}

/// What may not be there.
pub fn maybe(text: Option<impl ToString>) -> Text {
    text.map(|text| text.to_string()).unwrap_or_default().into()
}

impl Rows {
    /// A table with these columns.
    pub fn new<const N: usize>(header: [&'static str; N]) -> Rows {
        Rows { header: header.to_vec(), rows: Vec::new() }
    }

    /// One more row.
    pub fn push<const N: usize>(&mut self, row: [Text; N]) {
        debug_assert_eq!(self.header.len(), N);
        self.rows.push(row.into());
    }

    /// The table, or `nothing` if it has no rows.
    pub fn shown(self, nothing: &str) -> String {
        if self.rows.is_empty() { nothing.to_owned() } else { self.written(true) }
    }

    /// The table without its first line: names and values.
    pub fn pairs(self) -> String {
        self.written(false)
    }

    fn written(self, with_header: bool) -> String {
        let used: Vec<bool> = (0..self.header.len())
            .map(|column| self.rows.iter().any(|row| !row[column].text.is_empty()))
            .collect();
        let wanted = |column: usize| used[column] || !with_header;
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        if with_header {
            table.set_header(
                self.header.iter().enumerate().filter(|(column, _)| wanted(*column)).map(|(_, name)| *name),
            );
        }
        let is_colored = colors_are_wanted();
        if is_colored {
            table.enforce_styling();
        }
        for row in self.rows {
            let cells = row.into_iter().enumerate().filter(|(column, _)| wanted(*column));
            table.add_row(cells.map(|(_, Text { text, color })| match color {
                Some(color) if is_colored => Cell::new(text).fg(color),
                // A row is a line.
                _ if with_header => Cell::new(text.replace('\n', "\\n")),
                _ => Cell::new(text),
            }));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n")
    }
}

/// Only for a terminal, and not for whoever asked for none (<https://no-color.org>).
pub fn colors_are_wanted() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && std::io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line_whatever_others_have_named() {
        let mut rows = Rows::new(["NAME", "LANE"]);
        rows.push(["a\nb".into(), "\u{202e}abc\u{1b}[2J".into()]);
        let shown = rows.shown("nothing");
        let row = shown.lines().nth(1).expect("there is one");
        assert_eq!(row, r"a\nb  \u{202e}abc\u{1b}[2J", "{shown}");
        assert_eq!(shown.lines().count(), 2);
    }

    #[test]
    fn a_value_for_itself_keeps_its_lines() {
        let mut rows = Rows::new(["", ""]);
        rows.push(["error".into(), "one\ntwo".into()]);
        assert_eq!(rows.pairs().lines().count(), 2);
    }
}
