//! What the server says about itself, on stderr: lines for people, or JSON for machines.
//!
//! No payloads, results, headers, URLs, keys or error texts of tasks are logged: they may hold what is nobody's concern. A
//! task is named by its id, its queue and its state.

use std::fmt;
use std::str::FromStr;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt as lines};

/// How a line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One object to a line.
    Json,
}

impl FromStr for Format {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Format, &'static str> {
        match text {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            _ => Err("must be text or json"),
        }
    }
}

/// What is logged: a level (`info`), or levels by where it comes from (`info,punctual_server::api=debug`).
#[derive(Clone, Debug)]
pub struct Filter(Targets);

impl Default for Filter {
    fn default() -> Filter {
        Filter(Targets::new().with_default(LevelFilter::WARN))
    }
}

impl FromStr for Filter {
    type Err = BadFilter;

    fn from_str(text: &str) -> Result<Filter, BadFilter> {
        // A word alone would be taken for the name of a module.
        let is_known = |part: &str| {
            part.contains('=') || (!part.is_empty() && part.trim().parse::<LevelFilter>().is_ok())
        };
        let filter = text.parse().ok().filter(|_| text.split(',').all(is_known));
        filter.map(Filter).ok_or(BadFilter)
    }
}

/// The text is no filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadFilter;

impl fmt::Display for BadFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write off, error, warn, info, debug or trace, or such levels by module: info,punctual_server::api=debug")
    }
}

impl std::error::Error for BadFilter {}

/// Logs from now on. Whoever did so before keeps doing it.
pub fn begin(format: Format, Filter(filter): Filter) {
    let layer = lines::layer().with_writer(std::io::stderr);
    let layer = match format {
        Format::Text => layer.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
        Format::Json => {
            layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
        }
    };
    tracing_subscriber::registry().with(layer.with_filter(filter)).try_init().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_alone_and_by_module_are_filters_and_other_words_are_not() {
        for good in ["off", "info", "WARN", "info,punctual_server::api=debug", "punctual=trace"] {
            assert!(good.parse::<Filter>().is_ok(), "{good}");
        }
        for bad in ["loud", "", "info,loud", "punctual=loud"] {
            assert!(bad.parse::<Filter>().is_err(), "{bad}");
        }
    }
}
