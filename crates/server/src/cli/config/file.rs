//! Reads a configuration file, and says exactly where it is wrong.

use std::path::Path;

use punctual_client::wire;

use super::Settings;
use crate::cli::trouble::Trouble;

/// More of a value is not shown.
const VALUE_CHARS: usize = 60;

/// Reads a file. What is wrong is told with the file, the line, the column, the value, and what to do.
pub fn read(path: &Path) -> Result<Settings, Trouble> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Trouble::usage(format!("{}: the configuration cannot be read: {error}", path.display()))
    })?;
    toml::from_str(&text).map_err(|error| Trouble::usage(told(path, &text, &error)))
}

fn told(path: &Path, text: &str, error: &toml::de::Error) -> String {
    let said = match wire::unknown_field(&error.message()) {
        Some(unknown) => unknown.to_string().replace("unknown field", "unknown key"),
        None => error.message().replace("expected a sequence", "expected a list"),
    };
    let Some(span) = error.span() else { return format!("{}: {said}", path.display()) };
    let before = &text[..span.start.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
    let value = text.get(span).unwrap_or_default().lines().next().unwrap_or_default().trim();
    let value: String = value.chars().take(VALUE_CHARS).collect();
    let key = text.lines().nth(line - 1).and_then(|line| line.split_once('=')).map(|(key, _)| key.trim());
    let key = key.filter(|key| !key.is_empty() && *key != value && !said.contains("unknown key"));
    let key = key.map(|key| format!(" {key}:")).unwrap_or_default();
    let place = format!("{}:{line}:{column}:{key}", path.display());
    // An array is shown by the item at fault, and what is said already is not said again.
    let is_said = value.starts_with('[')
        || [format!("\"{value}\""), format!("`{value}`")].iter().any(|it| said.contains(it));
    if value.is_empty() || is_said || (value.starts_with('"') && said.contains(&value)) {
        return format!("{place} {said}");
    }
    format!("{place} {value}: {said}")
}
