//! Days in words: `today`, `tomorrow`, `next monday`, `24 dec`, `dec 24 2026`, `2026-12-24`.

use jiff::Zoned;
use jiff::civil::{Date, Time as Clock, Weekday};

/// A day, as far as it was said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Day {
    /// So many days from today.
    Ahead(i32),
    /// The next such day. Today is one if its hour is still to come, and `next` was not said.
    Week(Weekday, Reach),
    /// The next such day of a year.
    Year { month: i8, day: i8 },
    /// This one.
    Date(Date),
}

/// Whether today may be meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    Today,
    LaterDay,
}

type Left<'a> = &'a [&'a str];

/// Reads a day at the beginning of what is left.
pub(super) fn read<'a>(words: Left<'a>) -> Result<Option<(Day, Left<'a>)>, String> {
    let found = match words {
        ["day", "after", "tomorrow", rest @ ..] => (Day::Ahead(2), rest),
        ["today" | "tonight", rest @ ..] => (Day::Ahead(0), rest),
        ["tomorrow", rest @ ..] => (Day::Ahead(1), rest),
        ["yesterday", rest @ ..] => (Day::Ahead(-1), rest),
        ["next", day, rest @ ..] => match weekday(day) {
            Some(weekday) => (Day::Week(weekday, Reach::LaterDay), rest),
            None => return Err(format!("\"next {day}\" is no day: name a day of the week, or the date")),
        },
        ["this", day, rest @ ..] => match weekday(day) {
            Some(weekday) => (Day::Week(weekday, Reach::Today), rest),
            None => return Err(format!("\"this {day}\" is no day: name a day of the week, or the date")),
        },
        [day, rest @ ..] if weekday(day).is_some() => match weekday(day) {
            Some(weekday) => (Day::Week(weekday, Reach::Today), rest),
            None => return Ok(None),
        },
        [first, second, rest @ ..] => match (month(first), ordinal(second), ordinal(first), month(second)) {
            (Some(month), Some(day), _, _) | (_, _, Some(day), Some(month)) => {
                return of_year(month, day, rest).map(Some);
            }
            _ => return iso(words),
        },
        _ => return iso(words),
    };
    Ok(Some(found))
}

fn iso<'a>(words: Left<'a>) -> Result<Option<(Day, Left<'a>)>, String> {
    let [first, rest @ ..] = words else { return Ok(None) };
    let looks_like_one = first.len() == 10
        && first.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !looks_like_one {
        return Ok(None);
    }
    let date = first.parse::<Date>().map_err(|_| format!("there is no day {first}"))?;
    Ok(Some((Day::Date(date), rest)))
}

/// A day and a month, and perhaps the year.
fn of_year<'a>(month: i8, day: i8, rest: Left<'a>) -> Result<(Day, Left<'a>), String> {
    if let [year, left @ ..] = rest
        && year.len() == 4
        && let Ok(year) = year.parse::<i16>()
    {
        let date = Date::new(year, month, day).map_err(|_| no_such_day(month, day))?;
        return Ok((Day::Date(date), left));
    }
    // In a leap year every day of a year is there.
    Date::new(2024, month, day).map_err(|_| no_such_day(month, day))?;
    Ok((Day::Year { month, day }, rest))
}

fn no_such_day(month: i8, day: i8) -> String {
    format!("month {month} has no day {day}")
}

impl Day {
    /// The date that is meant by somebody whose clock shows `here`.
    pub fn after(self, here: &Zoned, clock: Clock) -> Result<Date, String> {
        let today = here.date();
        let none = || "there is no such day before the year 9999".to_owned();
        let ahead = |days: i32| today.checked_add(jiff::Span::new().days(days)).map_err(|_| none());
        match self {
            Day::Ahead(days) => ahead(days),
            Day::Week(weekday, reach) => {
                let days = i32::from(today.weekday().until(weekday));
                let is_later = reach == Reach::Today && clock > here.time();
                ahead(if days == 0 && !is_later { 7 } else { days })
            }
            // The 29th of February comes after eight years at most.
            Day::Year { month, day } => (0..=8)
                .filter_map(|years| Date::new(today.year().checked_add(years)?, month, day).ok())
                .find(|date| *date > today || (*date == today && clock > here.time()))
                .ok_or_else(none),
            Day::Date(date) => Ok(date),
        }
    }
}

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" | "mon" => Weekday::Monday,
        "tuesday" | "tue" | "tues" => Weekday::Tuesday,
        "wednesday" | "wed" => Weekday::Wednesday,
        "thursday" | "thu" | "thur" | "thurs" => Weekday::Thursday,
        "friday" | "fri" => Weekday::Friday,
        "saturday" | "sat" => Weekday::Saturday,
        "sunday" | "sun" => Weekday::Sunday,
        _ => return None,
    })
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn month(word: &str) -> Option<i8> {
    let word = word.trim_end_matches('.');
    let is_it =
        |month: &str| word.len() >= 3 && (month == word || (word.len() <= 4 && month.starts_with(word)));
    (1..).zip(MONTHS.iter()).find(|(_, month)| is_it(month)).map(|(number, _)| number)
}

/// `24`, `24.`, `24th`.
fn ordinal(word: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th", "."].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}
