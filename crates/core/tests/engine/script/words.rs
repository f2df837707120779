//! One line of a script: an optional time, a verb, plain words and `name=value` words.

use std::time::Duration;

use punctual_core::{BootTime, Now, Timestamp};

/// A script's second is a thousand ticks of the timing wheel (1.024 s), so that nothing in a transcript is late by
/// rounding.
pub const SECOND_MICROS: i64 = 1_024_000;
/// Wall time when a script begins.
const WALL_BASE: i64 = 1_700_000_000 * SECOND_MICROS;
/// Boot time when a script begins.
const BOOT_BASE: i64 = 5_000 * SECOND_MICROS;

/// The script's two clocks. Times in scripts and at the beginning of transcript lines are boot time; due times are
/// wall time, and differ from it only after `step_clock`.
#[derive(Clone, Copy, Default)]
pub struct Clock {
    pub micros: i64,
    pub stepped: i64,
}

impl Clock {
    pub fn now(self) -> Now {
        let boot = u64::try_from(BOOT_BASE + self.micros).expect("scripts begin at 0");
        Now {
            wall: Timestamp::from_micros(WALL_BASE + self.micros + self.stepped),
            boot: BootTime::from_micros(boot),
        }
    }

    /// The script time of a wall time.
    pub fn of_wall(self, at: Timestamp) -> i64 {
        at.as_micros() - WALL_BASE - self.stepped
    }

    /// The script time of a boot time.
    pub fn of_boot(at: BootTime) -> i64 {
        i64::try_from(at.as_micros()).expect("boot time is small") - BOOT_BASE
    }
}

/// Script seconds as microseconds.
pub fn micros(text: &str) -> i64 {
    let seconds: f64 = text.parse().unwrap_or_else(|_| panic!("{text:?} is not a number of seconds"));
    (seconds * SECOND_MICROS as f64).round() as i64
}

/// A due time.
pub fn wall(text: &str) -> Timestamp {
    wall_of(micros(text))
}

pub fn wall_of(micros: i64) -> Timestamp {
    Timestamp::from_micros(WALL_BASE + micros)
}

pub fn duration(text: &str) -> Duration {
    Duration::from_micros(u64::try_from(micros(text)).expect("durations are positive"))
}

pub fn boot(text: &str) -> BootTime {
    BootTime::from_micros(u64::try_from(BOOT_BASE + micros(text)).expect("boot times are positive"))
}

/// Microseconds as script seconds, as short as possible.
pub fn seconds(micros: i64) -> String {
    let text = format!("{:.6}", micros as f64 / SECOND_MICROS as f64);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A wall time as script seconds.
pub fn due(at: Timestamp) -> String {
    seconds(at.as_micros() - WALL_BASE)
}

/// A line of a script.
pub struct Line {
    pub at: Option<i64>,
    pub verb: String,
    plain: Vec<String>,
    named: Vec<(String, String)>,
}

impl Line {
    /// `None` for an empty line or a comment.
    pub fn parse(text: &str) -> Option<Line> {
        let mut words = text.split('%').next()?.split_whitespace().peekable();
        let is_time = words.peek()?.parse::<f64>().is_ok();
        let at = if is_time { words.next().map(micros) } else { None };
        let verb = words.next().unwrap_or_else(|| panic!("{text:?} has no verb")).to_owned();
        let (mut plain, mut named) = (Vec::new(), Vec::new());
        for word in words {
            match word.split_once('=').filter(|(name, _)| !name.is_empty() && !name.ends_with(['<', '>'])) {
                Some((name, value)) => named.push((name.to_owned(), value.to_owned())),
                None => plain.push(word.to_owned()),
            }
        }
        Some(Line { at, verb, plain, named })
    }

    pub fn plain(&self) -> &[String] {
        &self.plain
    }

    /// The first plain word.
    pub fn first(&self) -> &str {
        self.plain.first().unwrap_or_else(|| panic!("`{}` of what?", self.verb))
    }

    pub fn has(&self, word: &str) -> bool {
        self.plain.iter().any(|plain| plain == word)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn named(&self) -> &[(String, String)] {
        &self.named
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.get(name).map(number)
    }
}

pub fn number(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is not a number"))
}

/// Whether a label matches a pattern that may end in `*`.
pub fn matches(pattern: &str, label: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => label.starts_with(start),
        None => label == pattern,
    }
}
