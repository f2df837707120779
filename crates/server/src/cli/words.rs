//! Times and lengths of time, in the words of people.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use punctual::clock::Clock;
use punctual_client::wire::Moment;

const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];

/// When and where somebody typed something.
#[derive(Clone, Debug)]
pub struct Here {
    /// The time on this machine.
    pub now: Moment,
    /// Its time zone.
    pub zone: TimeZone,
}

impl Here {
    /// As this machine has it.
    pub fn system() -> Here {
        let now = Clock::system().now().wall;
        Here { now: Moment::from(punctual::system_time(now)), zone: TimeZone::system() }
    }

    /// A moment on the clock here, and how far it is.
    pub fn shown(&self, moment: Moment) -> String {
        format!("{} ({})", local(moment, &self.zone), distance(self.now, moment))
    }
}

/// A length of time: `1h 30m`. No more than two units, which is as much as people take in.
pub fn length(duration: Duration) -> String {
    let secs = duration.as_secs();
    if secs == 0 {
        return match duration.as_millis() {
            0 if duration.is_zero() => "0s".into(),
            0 => "less than 1ms".into(),
            millis => format!("{millis}ms"),
        };
    }
    let first = UNITS.iter().position(|(_, unit)| secs >= *unit).unwrap_or(UNITS.len() - 1);
    let (name, unit) = UNITS[first];
    let rest = secs % unit;
    match UNITS.get(first + 1) {
        Some((next, smaller)) if rest >= *smaller => {
            format!("{}{name} {}{next}", secs / unit, rest / smaller)
        }
        _ => format!("{}{name}", secs / unit),
    }
}

/// How far a moment is from now: `in 1h 30m`, `2m ago`.
pub fn distance(now: Moment, then: Moment) -> String {
    // Nobody counts microseconds: without this, an hour from now is 59 minutes and 59 seconds away.
    let half = Duration::from_millis(500);
    let (ahead, behind) = (then.since(now), now.since(then));
    if ahead.max(behind) < Duration::from_secs(1) {
        return "now".into();
    }
    if ahead > Duration::ZERO {
        format!("in {}", length(whole_secs(ahead + half)))
    } else {
        format!("{} ago", length(whole_secs(behind + half)))
    }
}

fn whole_secs(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs())
}

/// A moment as the clock on the wall there shows it: `2026-11-16 09:00:00 CET`.
pub fn local(moment: Moment, zone: &TimeZone) -> String {
    let Ok(timestamp) = Timestamp::from_microsecond(moment.as_micros()) else { return moment.to_string() };
    timestamp.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// The same, with the day of the week: `Mon 2026-11-16 09:00:00 CET`.
pub fn local_with_day(moment: Moment, zone: &TimeZone) -> String {
    let Ok(timestamp) = Timestamp::from_microsecond(moment.as_micros()) else { return moment.to_string() };
    timestamp.to_zoned(zone.clone()).strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()
}

/// A moment in UTC, to the second: `2026-11-16T08:00:00Z`.
pub fn utc(moment: Moment) -> String {
    let text = moment.to_string();
    text.split_once('.').map_or(text.clone(), |(secs, _)| format!("{secs}Z"))
}

/// A count of things: `1 task`, `1,234 tasks`.
pub fn count(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A number that people can read: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes, in the unit that suits: `3.4 MiB`.
pub fn bytes(number: u64) -> String {
    const NAMES: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut name) = (number as f64, 0);
    while size >= 1024.0 && name + 1 < NAMES.len() {
        (size, name) = (size / 1024.0, name + 1);
    }
    if name == 0 { format!("{number} B") } else { format!("{size:.1} {}", NAMES[name]) }
}

/// A value as it is written in JSON; a text without its quotes.
pub fn json(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(value) => value.to_string(),
        Err(error) => error.to_string(),
    }
}

/// The beginning of a text, on one line.
pub fn shortened(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= chars_max {
        return line;
    }
    line.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_people_say_them() {
        let shown = |millis| length(Duration::from_millis(millis));
        assert_eq!(shown(0), "0s");
        assert_eq!(shown(250), "250ms");
        assert_eq!(shown(30_000), "30s");
        assert_eq!(shown(90_000), "1m 30s");
        assert_eq!(shown(3_600_000), "1h");
        assert_eq!(shown(3_630_000), "1h");
        assert_eq!(shown(90_061_000), "1d 1h");
        assert_eq!(shown(14 * 86_400_000), "14d");
    }

    #[test]
    fn distances_are_rounded_to_seconds() {
        let (now, secs) = (Moment::from_micros(1_000_000_000_000), |secs: i64| secs * 1_000_000);
        let shown = |micros| distance(now, Moment::from_micros(1_000_000_000_000 + micros));
        assert_eq!(shown(secs(5_400) - 900), "in 1h 30m");
        assert_eq!(shown(-secs(61)), "1m 1s ago");
        assert_eq!(shown(300), "now");
    }

    #[test]
    fn numbers_can_be_read() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_234), "1,234");
        assert_eq!(grouped(12_345_678), "12,345,678");
        assert_eq!(count(1, "task"), "1 task");
        assert_eq!(bytes(1_536), "1.5 KiB");
    }

    #[test]
    fn texts_are_cut_where_letters_end() {
        assert_eq!(shortened("äöü\nß", 4), "äöü…");
        assert_eq!(shortened("short", 10), "short");
    }
}
