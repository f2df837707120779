//! Times as people write them: `tomorrow 9:00 Europe/Paris`, `in 90m`, `next monday 8:30`, `24 dec 18:00`.
//!
//! Pure: the time and the zone come in as arguments. Whatever is understood is meant to be shown to whoever wrote it,
//! and what could be meant in two ways is refused rather than guessed: `9` may be morning or evening, `3/4` a day of
//! March or of April, `EST` three places.

mod day;
mod place;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use jiff::civil::{DateTime, Time as Clock};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, Zoned};
use punctual_client::wire::{Moment, Span, Time, TimeKind, TimeProblem};

use day::Day;

const OUT_OF_RANGE: &str = "it must lie between 1970 and 9999-12-30T22:00:00Z";
/// More than anybody writes.
const TEXT_MAX: usize = 200;

/// What a text means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct When {
    /// The moment.
    pub at: Moment,
    /// So long from now, if that is how it was said.
    pub after: Option<Duration>,
    /// The zone it was said in.
    pub zone: TimeZone,
    /// What the writer may not have thought of.
    pub note: Option<String>,
}

/// Why a text means nothing here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotUnderstood {
    text: String,
    why: String,
}

/// What can be written, for whoever wrote something else.
const EXAMPLES: &str = "write it like \"in 90m\", \"tomorrow 9:00 Europe/Paris\", \"next monday 8:30\", \"24 dec 18:00\" or \"2026-12-24 18:00\"";

impl fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a time: {}", self.text, self.why)
    }
}

impl std::error::Error for NotUnderstood {}

/// What a text means at `now`, written by somebody in `zone`.
pub fn understand(text: &str, now: Moment, zone: &TimeZone) -> Result<When, NotUnderstood> {
    let refused = |why: String| NotUnderstood { text: super::words::shortened(text, 60), why };
    if text.len() > TEXT_MAX {
        return Err(refused("it is too long".into()));
    }
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(refused("there is nothing in it".into()));
    }
    match trimmed.parse::<Time>() {
        Ok(time) => return exact(trimmed, &time, zone).map_err(refused),
        Err(TimeProblem::LeapSecond { .. }) => {
            return Err(refused("no clock shows a second 60: seconds go to 59".into()));
        }
        Err(_) => {}
    }
    let lower = trimmed.to_lowercase();
    let lower = lower.replace(',', " ");
    if let Some(when) = relative(&lower, now, zone) {
        return when.map_err(refused);
    }
    let words: Vec<&str> = lower.split_whitespace().collect();
    spoken(&words, trimmed, now, zone).map_err(refused)
}

/// RFC 3339, RFC 9557, or a civil time in the writer's zone.
fn exact(text: &str, time: &Time, zone: &TimeZone) -> Result<When, String> {
    if time.kind() != TimeKind::Civil {
        let at = time.resolve(None).map_err(|problem| problem.to_string())?;
        return Ok(When { at, after: None, zone: zone.clone(), note: None });
    }
    let civil: DateTime = text.parse().map_err(|_| "the date and the time do not fit together".to_owned())?;
    civil_in(civil, zone)
}

/// `now`, `in 90m`, `90m`, `2 hours from now`, `1h ago`.
fn relative(text: &str, now: Moment, zone: &TimeZone) -> Option<Result<When, String>> {
    if text == "now" {
        return Some(Ok(When { at: now, after: Some(Duration::ZERO), zone: zone.clone(), note: None }));
    }
    let (length, is_ago) =
        match (text.strip_prefix("in "), text.strip_suffix(" from now"), text.strip_suffix(" ago")) {
            (Some(length), _, _) | (None, Some(length), _) => (length, false),
            (None, None, Some(length)) => (length, true),
            (None, None, None) => (text, false),
        };
    let is_marked = length.len() < text.len();
    let duration = match spelled_out(length.trim()).parse::<Span>() {
        Ok(span) => Duration::from(span),
        // A bare number may be the hour, or a length that lacks its unit. Which, only the words around it tell.
        Err(problem) if is_marked => return Some(Err(problem.to_string())),
        Err(_) => return None,
    };
    let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    let micros =
        if is_ago { now.as_micros().checked_sub(micros) } else { now.as_micros().checked_add(micros) };
    let at = micros.filter(|micros| (0..=Moment::MAX.as_micros()).contains(micros)).map(Moment::from_micros);
    let Some(at) = at else {
        return Some(Err(OUT_OF_RANGE.into()));
    };
    Some(Ok(When { at, after: (!is_ago).then_some(duration), zone: zone.clone(), note: None }))
}

/// Lengths that people say without a number.
fn spelled_out(length: &str) -> String {
    match length {
        "half an hour" => "30m".into(),
        "an hour and a half" => "90m".into(),
        _ => match length.strip_prefix("an ").or_else(|| length.strip_prefix("a ")) {
            Some(unit) => format!("1 {unit}"),
            None => length.into(),
        },
    }
}

/// What has been read of a time in words.
#[derive(Default)]
struct Read {
    day: Option<Day>,
    clock: Option<Clock>,
    zone: Option<TimeZone>,
}

/// A day, a time of day and a place, in any order.
fn spoken(words: &[&str], original: &str, now: Moment, home: &TimeZone) -> Result<When, String> {
    let mut read = Read::default();
    let mut rest = words;
    while let [first, others @ ..] = rest {
        // "Paris time": the word says nothing that the zone does not.
        if matches!(*first, "at" | "on" | "the" | "of" | "in" | "time") {
            rest = others;
            continue;
        }
        if let Some((clock, left)) = clock(rest)? {
            again(read.clock.replace(clock).is_some(), "time of day")?;
            rest = left;
        } else if let Some((day, left)) = day::read(rest)? {
            again(read.day.replace(day).is_some(), "day")?;
            rest = left;
        } else if let Some((zone, left)) = place::read(rest)? {
            again(read.zone.replace(zone).is_some(), "time zone")?;
            rest = left;
        } else {
            return Err(unknown_word(first, original));
        }
    }
    let zone = read.zone.unwrap_or_else(|| home.clone());
    let here = zoned(now, &zone)?;
    let Some(clock) = read.clock else {
        return Err("it has no time of day: add one, such as 9:00".into());
    };
    let date = match read.day {
        Some(day) => day.after(&here, clock)?,
        None if clock > here.time() => here.date(),
        None => here.date().tomorrow().map_err(|_| "there is no such day".to_owned())?,
    };
    civil_in(date.to_datetime(clock), &zone)
}

fn again(is_second: bool, what: &str) -> Result<(), String> {
    if is_second { Err(format!("it names more than one {what}")) } else { Ok(()) }
}

fn unknown_word(word: &str, original: &str) -> String {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && word.len() <= 2 {
        return format!("{word:?} may be an hour of the morning or the evening: write {word}:00 or {word}pm");
    }
    if word.contains('/') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/') {
        return format!(
            "{word:?} is one day in some countries and another elsewhere: write it like 2026-12-24"
        );
    }
    if word == original.to_lowercase() {
        EXAMPLES.into()
    } else {
        format!("{word:?} means nothing here: {EXAMPLES}")
    }
}

/// `9:00`, `9:00:30`, `9am`, `9:30 pm`, `noon`, `midnight`.
fn clock<'a>(words: &'a [&'a str]) -> Result<Option<(Clock, &'a [&'a str])>, String> {
    let [first, rest @ ..] = words else { return Ok(None) };
    match *first {
        "noon" => return Ok(Some((Clock::midnight() + jiff::Span::new().hours(12), rest))),
        "midnight" => return Ok(Some((Clock::midnight(), rest))),
        _ => {}
    }
    if !first.starts_with(|letter: char| letter.is_ascii_digit()) {
        return Ok(None);
    }
    let (digits, half) = halves(first);
    let (half, rest) = match (half, rest) {
        (None, [next, left @ ..]) if half_of(next).is_some() => (half_of(next), left),
        _ => (half, rest),
    };
    let parts: Vec<&str> = digits.split(':').collect();
    let is_clock =
        parts.iter().all(|part| (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()));
    if !is_clock || parts.len() > 3 || (parts.len() == 1 && half.is_none()) {
        return Ok(None);
    }
    let number = |place: usize| parts.get(place).and_then(|part| part.parse::<i8>().ok()).unwrap_or(0);
    let hour = match (number(0), half) {
        (hour, None) => hour,
        (hour @ 1..=12, Some(Half::Morning)) => hour % 12,
        (hour @ 1..=12, Some(Half::Evening)) => hour % 12 + 12,
        (_, Some(_)) => {
            return Err(format!("there is no hour {digits:?} in half a day: write it like 9pm or 21:00"));
        }
    };
    match Clock::new(hour, number(1), number(2), 0) {
        Ok(clock) => Ok(Some((clock, rest))),
        Err(_) => Err(format!("no clock shows {digits}: hours go to 23, minutes and seconds to 59")),
    }
}

#[derive(Clone, Copy)]
enum Half {
    Morning,
    Evening,
}

fn half_of(word: &str) -> Option<Half> {
    match word {
        "am" | "a.m." => Some(Half::Morning),
        "pm" | "p.m." => Some(Half::Evening),
        _ => None,
    }
}

/// `9:30pm` in its two parts.
fn halves(word: &str) -> (&str, Option<Half>) {
    let end = word.find(|letter: char| !letter.is_ascii_digit() && letter != ':').unwrap_or(word.len());
    let (digits, half) = word.split_at(end);
    match half_of(half) {
        Some(half) => (digits, Some(half)),
        None => (word, None),
    }
}

fn zoned(now: Moment, zone: &TimeZone) -> Result<Zoned, String> {
    let timestamp = Timestamp::from_microsecond(now.as_micros()).map_err(|error| error.to_string())?;
    Ok(timestamp.to_zoned(zone.clone()))
}

/// The moment when the clocks of that place show this. One that a clock change skips is the moment of that change, and
/// one that it repeats is the first of the two, as everywhere in Punctual.
fn civil_in(civil: DateTime, zone: &TimeZone) -> Result<When, String> {
    let out_of_range = |_| OUT_OF_RANGE.to_owned();
    let ambiguous = zone.to_ambiguous_zoned(civil);
    let (timestamp, note) = match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { offset } => (offset.to_timestamp(civil).map_err(out_of_range)?, None),
        AmbiguousOffset::Fold { before, .. } => {
            let note = format!("the clocks show {} twice that day; the first is meant", civil.time());
            (before.to_timestamp(civil).map_err(out_of_range)?, Some(note))
        }
        AmbiguousOffset::Gap { before, .. } => {
            let after = before.to_timestamp(civil).map_err(out_of_range)?;
            // The change itself, also when it is that very moment.
            let or_at = after.checked_add(jiff::SignedDuration::from_nanos(1)).unwrap_or(after);
            let change = zone.preceding(or_at).next().map_or(after, |change| change.timestamp());
            let note =
                format!("the clocks skip {} that day; the moment of the change is meant", civil.time());
            (change, Some(note))
        }
    };
    let micros = timestamp.as_microsecond();
    if !(0..=Moment::MAX.as_micros()).contains(&micros) {
        return Err(OUT_OF_RANGE.into());
    }
    Ok(When { at: Moment::from_micros(micros), after: None, zone: zone.clone(), note })
}
