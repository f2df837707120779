//! Times as they are written: with an offset, with a zone, or as the clock on a wall says them.
//!
//! A civil time is kept as it was said until the zone is known, because the zone may stand in another field. What goes
//! out is always a [`Moment`]: UTC, with microseconds.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::temporal::{DateTimeParser, DateTimePrinter, Pieces, PiecesOffset, TimeZoneAnnotationKind};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::nearest::nearest;
use super::text::{self, Text};

const PARSER: DateTimeParser = DateTimeParser::new();
const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
/// [`Moment::MAX`], for people.
const END_OF_TIME: &str = "9999-12-30T22:00:00Z";
/// Longer than any time with the longest name of a zone.
const TEXT_MAX: usize = 128;

/// A moment in UTC, exact to the microsecond, from 1970 to almost the end of the year 9999. This is how times go out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Moment(i64);

impl Moment {
    /// The beginning of 1970.
    pub const MIN: Moment = Moment(0);
    /// 9999-12-30T22:00:00Z: the last second that every zone can write as a date with four digits of a year.
    pub const MAX: Moment = Moment(253_402_207_200_000_000);

    /// So many microseconds after 1970; what lies outside the range becomes its nearest end.
    pub fn from_micros(micros: i64) -> Moment {
        Moment(micros.clamp(Moment::MIN.0, Moment::MAX.0))
    }

    /// Microseconds since 1970.
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; nothing if it is before.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0).try_into().unwrap_or(0))
    }

    fn timestamp(self) -> Timestamp {
        Timestamp::from_microsecond(self.0).expect("a moment lies within the range of timestamps")
    }

    /// A task must not be early, not by a nanosecond: what is finer than a microsecond is rounded up.
    fn of(timestamp: Timestamp) -> Result<Moment, TimeProblem> {
        let micros = timestamp.as_nanosecond().div_euclid(1_000)
            + i128::from(timestamp.as_nanosecond().rem_euclid(1_000) > 0);
        match i64::try_from(micros) {
            Ok(micros) if (Moment::MIN.0..=Moment::MAX.0).contains(&micros) => Ok(Moment(micros)),
            _ => Err(TimeProblem::OutOfRange),
        }
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Moment {
        let micros = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().div_ceil(1_000);
        Moment::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}

impl From<Moment> for SystemTime {
    fn from(moment: Moment) -> SystemTime {
        UNIX_EPOCH + moment.since(Moment::MIN)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&PRINTER.timestamp_to_string(&self.timestamp()))
    }
}

impl FromStr for Moment {
    type Err = TimeProblem;

    fn from_str(text: &str) -> Result<Moment, TimeProblem> {
        text.parse::<Time>()?.resolve(None)
    }
}

impl Text for Moment {
    const EXPECTED: &'static str = Time::EXPECTED;
    const NOT_A_NUMBER: &'static str = Time::NOT_A_NUMBER;
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&PRINTER.timestamp_to_string(&self.timestamp()))
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        text::read(deserializer)
    }
}

/// A time as someone said it. [`Time::resolve`] finds the moment that is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Time {
    civil: DateTime,
    offset: Option<PiecesOffset>,
    zone: Option<Box<str>>,
}

/// In which of the three ways a time was said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeKind {
    /// With an offset, or `Z`: RFC 3339.
    Offset,
    /// With the name of a zone: RFC 9557.
    Zone,
    /// As a clock on a wall says it. It means nothing without a zone.
    Civil,
}

impl Time {
    /// How it was said.
    pub fn kind(&self) -> TimeKind {
        match (&self.zone, self.offset) {
            (Some(_), _) => TimeKind::Zone,
            (None, Some(_)) => TimeKind::Offset,
            (None, None) => TimeKind::Civil,
        }
    }

    /// The moment that is meant. `timezone` is the zone that stands beside the time; a civil time needs one, and for
    /// the others it must not say something else.
    ///
    /// A civil time that a clock change skips is the moment of that change; one that it repeats is the first of the two.
    pub fn resolve(&self, timezone: Option<&str>) -> Result<Moment, TimeProblem> {
        let zone = match (self.zone.as_deref(), timezone) {
            (Some(inner), Some(beside)) if !inner.eq_ignore_ascii_case(beside) => {
                return Err(TimeProblem::TwoZones { inner: inner.into(), beside: beside.into() });
            }
            (Some(zone), _) | (None, Some(zone)) => Some((zone, find_zone(zone)?)),
            (None, None) => None,
        };
        let timestamp = match (self.offset, zone) {
            (None, None) => return Err(TimeProblem::NoZone { civil: self.civil }),
            (None, Some((_, zone))) => in_zone(self.civil, &zone)?,
            (Some(offset), None) => at_offset(self.civil, offset.to_numeric_offset())?,
            // `Z` says the moment and leaves the place open (RFC 9557, section 2): no zone contradicts it.
            (Some(PiecesOffset::Zulu), Some(_)) => at_offset(self.civil, Offset::UTC)?,
            (Some(offset), Some((name, zone))) => {
                let timestamp = at_offset(self.civil, offset.to_numeric_offset())?;
                let there = zone.to_offset(timestamp);
                if there != offset.to_numeric_offset() {
                    let offset = offset.to_numeric_offset();
                    return Err(TimeProblem::Contradiction { offset, zone: name.into(), there });
                }
                timestamp
            }
        };
        Moment::of(timestamp)
    }
}

fn at_offset(civil: DateTime, offset: Offset) -> Result<Timestamp, TimeProblem> {
    offset.to_timestamp(civil).map_err(|_| TimeProblem::OutOfRange)
}

fn in_zone(civil: DateTime, zone: &TimeZone) -> Result<Timestamp, TimeProblem> {
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => at_offset(civil, offset),
        AmbiguousOffset::Fold { before, .. } => at_offset(civil, before),
        AmbiguousOffset::Gap { before, .. } => {
            // Counted on with the old offset, a skipped time comes to lie after the change that skipped it.
            let after_change = at_offset(civil, before)?;
            let or_at = after_change.saturating_add(Duration::from_nanos(1)).unwrap_or(after_change);
            Ok(zone.preceding(or_at).next().map_or(after_change, |change| change.timestamp()))
        }
    }
}

/// Whether there is a zone of this name, also where no time needs it.
pub fn check_zone(name: &str) -> Result<(), TimeProblem> {
    find_zone(name).map(|_| ())
}

fn find_zone(name: &str) -> Result<TimeZone, TimeProblem> {
    let is_offset = name.starts_with(['+', '-']);
    let found = if is_offset { PARSER.parse_time_zone(name) } else { TimeZone::get(name) };
    let is_offset_of_a_place = |zone: &TimeZone| zone.to_fixed_offset().map_or(true, is_less_than_a_day);
    match found {
        Ok(zone) if !zone.is_unknown() && is_offset_of_a_place(&zone) => Ok(zone),
        _ => Err(TimeProblem::UnknownZone { nearest: nearest_zone(name), zone: shortened(name) }),
    }
}

fn nearest_zone(name: &str) -> Option<Box<str>> {
    let known: Vec<String> = jiff::tz::db().available().map(|zone| zone.to_string()).collect();
    nearest(name, known.iter().map(String::as_str)).map(Into::into)
}

fn shortened(text: &str) -> Box<str> {
    text.chars().take(TEXT_MAX).collect()
}

impl From<Moment> for Time {
    fn from(moment: Moment) -> Time {
        Time {
            civil: Offset::UTC.to_datetime(moment.timestamp()),
            offset: Some(PiecesOffset::Zulu),
            zone: None,
        }
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Time {
        Moment::from(time).into()
    }
}

impl FromStr for Time {
    type Err = TimeProblem;

    fn from_str(text: &str) -> Result<Time, TimeProblem> {
        if text.len() > TEXT_MAX {
            return Err(TimeProblem::NotATime { text: shortened(text) });
        }
        let pieces = Pieces::parse(text).map_err(|_| not_a_time(text))?;
        if has_second_60(text) {
            return Err(TimeProblem::LeapSecond { text: text.into() });
        }
        let Some(time) = pieces.time() else { return Err(TimeProblem::NoTimeOfDay { text: text.into() }) };
        if pieces.offset().is_some_and(|offset| !is_less_than_a_day(offset.to_numeric_offset())) {
            return Err(not_a_time(text));
        }
        let zone = match pieces.time_zone_annotation().map(|zone| zone.kind()) {
            None => None,
            Some(TimeZoneAnnotationKind::Named(name)) => Some(name.as_str().into()),
            Some(TimeZoneAnnotationKind::Offset(offset)) => Some(written(*offset).into()),
            Some(_) => return Err(not_a_time(text)),
        };
        // `-00:00` says as little of the place as `Z` (RFC 9557, section 2).
        let offset = pieces.offset().map(|offset| match offset {
            PiecesOffset::Numeric(zero) if zero.is_negative() && zero.offset().is_zero() => {
                PiecesOffset::Zulu
            }
            offset => offset,
        });
        Ok(Time { civil: pieces.date().to_datetime(time), offset, zone })
    }
}

/// The parser takes a leap second for the second before it, which would be early.
fn has_second_60(text: &str) -> bool {
    let after_date = text.split_once(['T', 't', ' ']).map_or("", |(_, time)| time);
    let end = after_date.find(|letter: char| !letter.is_ascii_digit() && letter != ':');
    let digits = after_date[..end.unwrap_or(after_date.len())].replace(':', "");
    digits.len() == 6 && digits.ends_with("60")
}

/// The parser takes up to 25 hours; RFC 3339 ends at `23:59`.
fn is_less_than_a_day(offset: Offset) -> bool {
    offset.seconds().unsigned_abs() < 24 * 3600
}

/// An offset as RFC 3339 has it: `+01:00`. Seconds, which only very old ones have, come after.
fn written(offset: Offset) -> String {
    let (sign, secs) = (if offset.is_negative() { '-' } else { '+' }, offset.seconds().unsigned_abs());
    let minutes = format!("{sign}{:02}:{:02}", secs / 3600, secs / 60 % 60);
    if secs.is_multiple_of(60) { minutes } else { format!("{minutes}:{:02}", secs % 60) }
}

fn not_a_time(text: &str) -> TimeProblem {
    // In a query, `+` is a space. It is the commonest way to spoil an offset.
    match text.rsplit_once(' ') {
        Some((before, after)) if format!("{before}+{after}").parse::<Time>().is_ok() => {
            TimeProblem::LostPlus { text: text.into() }
        }
        _ => TimeProblem::NotATime { text: text.into() },
    }
}

/// A time with an offset is written in UTC; the others as they were said.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (TimeKind::Offset, Ok(moment)) = (self.kind(), self.resolve(None)) {
            return moment.fmt(f);
        }
        write!(f, "{}", self.civil)?;
        match self.offset {
            Some(PiecesOffset::Zulu) => f.write_str("Z")?,
            Some(offset) => f.write_str(&written(offset.to_numeric_offset()))?,
            None => {}
        }
        match &self.zone {
            Some(zone) => write!(f, "[{zone}]"),
            None => Ok(()),
        }
    }
}

impl Text for Time {
    const EXPECTED: &'static str = "a time such as \"2026-11-16T09:00:00+01:00\"";
    const NOT_A_NUMBER: &'static str =
        "a time is text, such as \"2026-11-16T09:00:00+01:00\": a number could count seconds or milliseconds";
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        text::read(deserializer)
    }
}

/// Why a time cannot be understood. Its text says what to write instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TimeProblem {
    /// It cannot be read.
    NotATime {
        /// What was said.
        text: Box<str>,
    },
    /// It has a date and nothing else.
    NoTimeOfDay {
        /// What was said.
        text: Box<str>,
    },
    /// It has a second 60, which no clock of ours shows.
    LeapSecond {
        /// What was said.
        text: Box<str>,
    },
    /// There is a space where the sign of the offset was.
    LostPlus {
        /// What was said.
        text: Box<str>,
    },
    /// A civil time, and nobody says where.
    NoZone {
        /// What was said.
        civil: DateTime,
    },
    /// There is no such zone.
    UnknownZone {
        /// What was said.
        zone: Box<str>,
        /// What may have been meant.
        nearest: Option<Box<str>>,
    },
    /// The time names one zone, and the field beside it another.
    TwoZones {
        /// The zone in the time.
        inner: Box<str>,
        /// The zone beside it.
        beside: Box<str>,
    },
    /// The zone has another offset at that time.
    Contradiction {
        /// The offset in the time.
        offset: Offset,
        /// The zone.
        zone: Box<str>,
        /// The offset that the zone has then.
        there: Offset,
    },
    /// Before [`Moment::MIN`] or after [`Moment::MAX`].
    OutOfRange,
}

impl fmt::Display for TimeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeProblem::NotATime { text } => {
                write!(f, "{text:?} is not a time: write it like 2026-11-16T09:00:00+01:00")
            }
            TimeProblem::NoTimeOfDay { text } => {
                write!(f, "{text:?} has no time of day: write it like 2026-11-16T09:00:00+01:00")
            }
            TimeProblem::LeapSecond { text } => {
                write!(f, "{text:?} has a second 60, which no clock shows here: seconds go to 59")
            }
            TimeProblem::LostPlus { text } => {
                write!(f, "{text:?} is not a time: in a query, the `+` of an offset must be written `%2B`")
            }
            TimeProblem::NoZone { civil } => write!(
                f,
                "{civil} has no offset, so it could be meant anywhere: write {civil}Z, or name a `timezone` such as \"Europe/Paris\""
            ),
            TimeProblem::UnknownZone { zone, nearest } => {
                write!(f, "there is no time zone {zone:?}")?;
                match nearest {
                    Some(nearest) => write!(f, ", did you mean {nearest:?}?"),
                    None => write!(f, ": use a name of the IANA database, such as \"Europe/Paris\""),
                }
            }
            TimeProblem::TwoZones { inner, beside } => {
                write!(f, "the time names the zone {inner:?} and `timezone` says {beside:?}: leave one out")
            }
            TimeProblem::Contradiction { offset, zone, there } => {
                let (offset, there) = (written(*offset), written(*there));
                write!(f, "the offset {offset} contradicts {zone:?}, which is at {there} then: leave one out")
            }
            TimeProblem::OutOfRange => {
                write!(f, "a time must lie between 1970 and {END_OF_TIME}")
            }
        }
    }
}

impl std::error::Error for TimeProblem {}
