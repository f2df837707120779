//! Durations as they are written: `90s`, `1h30m`, `2d`, or ISO 8601.
//!
//! A day is 24 hours and a week seven days. Months and years have no fixed length, and a number without a unit could be
//! anything: both are refused.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::fmt::{friendly, temporal};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text::{self, Text};

const DAY_SECS: u64 = 24 * 3600;
/// Longer than any duration that is not a joke.
const TEXT_MAX: usize = 128;

/// A length of time, exact to the microsecond, of at most 10,000 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    micros: u64,
}

impl Span {
    /// Longer than all the time there is.
    pub const MAX: Span = Span { micros: 10_000 * 366 * DAY_SECS * 1_000_000 };

    /// So many seconds; never longer than [`Span::MAX`].
    pub fn from_secs(secs: u64) -> Span {
        Duration::from_secs(secs).into()
    }
}

/// What is finer than a microsecond is rounded up, and what is too long becomes [`Span::MAX`].
impl From<Duration> for Span {
    fn from(duration: Duration) -> Span {
        let micros = duration.as_nanos().div_ceil(1_000);
        Span { micros: u64::try_from(micros).unwrap_or(u64::MAX).min(Span::MAX.micros) }
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Duration {
        Duration::from_micros(span.micros)
    }
}

/// ISO 8601: in days if it is a number of whole days, more than one; else in hours, minutes and seconds.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, micros) = (self.micros / 1_000_000, self.micros % 1_000_000);
        if micros == 0 && secs.is_multiple_of(DAY_SECS) && secs > DAY_SECS {
            return write!(f, "P{}D", secs / DAY_SECS);
        }
        let (hours, minutes, secs) = (secs / 3600, secs / 60 % 60, secs % 60);
        f.write_str("PT")?;
        if hours > 0 {
            write!(f, "{hours}H")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}M")?;
        }
        if micros > 0 {
            let fraction = format!("{micros:06}");
            write!(f, "{secs}.{}S", fraction.trim_end_matches('0'))
        } else if secs > 0 || self.micros == 0 {
            write!(f, "{secs}S")
        } else {
            Ok(())
        }
    }
}

impl FromStr for Span {
    type Err = SpanProblem;

    fn from_str(text: &str) -> Result<Span, SpanProblem> {
        let shortened = || text.chars().take(TEXT_MAX).collect();
        if text.len() > TEXT_MAX {
            return Err(SpanProblem::NotADuration { text: shortened() });
        }
        if text.parse::<f64>().is_ok() {
            return Err(SpanProblem::NoUnit { text: shortened() });
        }
        // The parser takes `9:00:00` for nine hours; who writes it means a time of day.
        if text.contains(':') {
            return Err(SpanProblem::NotADuration { text: shortened() });
        }
        // What the parser cannot read may only be too much for it.
        let (parsed, is_too_long) = match parse(text) {
            Some(parsed) => (parsed, false),
            None => match parse(&with_small_numbers(text)) {
                Some(small) => (small, true),
                None => return Err(SpanProblem::NotADuration { text: shortened() }),
            },
        };
        if parsed.is_negative() {
            return Err(SpanProblem::Negative { text: shortened() });
        }
        if is_too_long {
            return Err(SpanProblem::TooLong);
        }
        if parsed.get_years() != 0 || parsed.get_months() != 0 {
            return Err(SpanProblem::NoFixedLength { text: shortened() });
        }
        Ok(Span { micros: micros(&parsed).ok_or(SpanProblem::TooLong)? })
    }
}

fn parse(text: &str) -> Option<jiff::Span> {
    let is_iso = text.trim_start_matches(['+', '-']).starts_with(['P', 'p']);
    let parsed = if is_iso {
        temporal::SpanParser::new().parse_span(text)
    } else {
        friendly::SpanParser::new().parse_span(text)
    };
    parsed.ok()
}

/// The same text with a 1 for each whole number.
fn with_small_numbers(text: &str) -> String {
    let mut small = String::with_capacity(text.len());
    let (mut is_in_number, mut is_in_fraction) = (false, false);
    for letter in text.chars() {
        let is_digit = letter.is_ascii_digit();
        match is_digit && !is_in_fraction {
            true if is_in_number => {}
            true => small.push('1'),
            false => small.push(letter),
        }
        is_in_fraction = matches!(letter, '.' | ',') || (is_digit && is_in_fraction);
        is_in_number = is_digit;
    }
    small
}

fn micros(span: &jiff::Span) -> Option<u64> {
    let days = i128::from(span.get_weeks()) * 7 + i128::from(span.get_days());
    let hours = days * 24 + i128::from(span.get_hours());
    let secs = (hours * 60 + i128::from(span.get_minutes())) * 60 + i128::from(span.get_seconds());
    let millis = secs * 1_000 + i128::from(span.get_milliseconds());
    let nanos = (millis * 1_000 + i128::from(span.get_microseconds())) * 1_000;
    let nanos = u128::try_from(nanos + i128::from(span.get_nanoseconds())).ok()?;
    u64::try_from(nanos.div_ceil(1_000)).ok().filter(|micros| *micros <= Span::MAX.micros)
}

impl Text for Span {
    const EXPECTED: &'static str = "a duration such as \"90s\", \"1h30m\" or \"PT90S\"";
    const NOT_A_NUMBER: &'static str =
        "a duration needs a unit: write \"90s\" or \"500ms\", not a bare number";
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        text::read(deserializer)
    }
}

/// Why a duration cannot be understood. Its text says what to write instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpanProblem {
    /// It cannot be read.
    NotADuration {
        /// What was said.
        text: Box<str>,
    },
    /// A bare number.
    NoUnit {
        /// What was said.
        text: Box<str>,
    },
    /// Below nothing.
    Negative {
        /// What was said.
        text: Box<str>,
    },
    /// In months or years.
    NoFixedLength {
        /// What was said.
        text: Box<str>,
    },
    /// Longer than [`Span::MAX`].
    TooLong,
}

impl fmt::Display for SpanProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpanProblem::NotADuration { text } => {
                write!(f, "{text:?} is not a duration: write it like 90s, 1h30m or PT90S")
            }
            SpanProblem::NoUnit { text } => {
                write!(f, "{text:?} has no unit: write {text}s for seconds, or {text}ms for milliseconds")
            }
            SpanProblem::Negative { text } => write!(f, "{text:?} is negative: a duration cannot be"),
            SpanProblem::NoFixedLength { text } => {
                write!(f, "{text:?} has months or years, which have no fixed length: write it in days")
            }
            SpanProblem::TooLong => f.write_str("a duration can be 10,000 years at most"),
        }
    }
}

impl std::error::Error for SpanProblem {}
