//! Places in words: `Europe/Paris`, `Paris`, `New York`, `UTC`, `+01:00`.

use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;

type Left<'a> = &'a [&'a str];

/// No name of a city has more words.
const WORDS_MAX: usize = 4;

/// Reads a time zone at the beginning of what is left.
pub(super) fn read<'a>(words: Left<'a>) -> Result<Option<(TimeZone, Left<'a>)>, String> {
    let [first, rest @ ..] = words else { return Ok(None) };
    if matches!(*first, "utc" | "gmt" | "z") {
        return Ok(Some((TimeZone::UTC, rest)));
    }
    if first.starts_with(['+', '-']) {
        let zone = DateTimeParser::new().parse_time_zone(first);
        return zone
            .map(|zone| Some((zone, rest)))
            .map_err(|_| format!("{first:?} is no offset: write it like +01:00"));
    }
    if first.contains('/') && first.contains(|letter: char| letter.is_ascii_alphabetic()) {
        return match TimeZone::get(first) {
            Ok(zone) => Ok(Some((zone, rest))),
            Err(_) => Err(no_such_zone(first)),
        };
    }
    if let Some(places) = abbreviation(first) {
        let upper = first.to_uppercase();
        return Err(format!("{upper} is used in more than one place: name yours, such as {places}"));
    }
    if !first.starts_with(|letter: char| letter.is_alphabetic()) {
        return Ok(None);
    }
    city(words)
}

/// The zone of a city, if exactly one has its name. The longest name wins.
fn city<'a>(words: Left<'a>) -> Result<Option<(TimeZone, Left<'a>)>, String> {
    let known: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    for length in (1..=words.len().min(WORDS_MAX)).rev() {
        let wanted = words[..length].join("_");
        let is_it = |name: &&String| {
            name.rsplit_once('/').is_some_and(|(_, city)| city.eq_ignore_ascii_case(&wanted))
        };
        let mut found: Vec<&String> = known.iter().filter(is_it).filter(|name| is_usual(name)).collect();
        found.sort();
        found.dedup();
        match found.as_slice() {
            [] => {}
            [name] => return Ok(TimeZone::get(name).ok().map(|zone| (zone, &words[length..]))),
            [one, other, ..] => return Err(format!("{wanted:?} may be {one} or {other}: write which")),
        }
    }
    Ok(None)
}

/// Old and double names are left out, so that a city has one.
fn is_usual(name: &str) -> bool {
    let areas = [
        "Africa/",
        "America/",
        "Antarctica/",
        "Asia/",
        "Atlantic/",
        "Australia/",
        "Europe/",
        "Indian/",
        "Pacific/",
    ];
    areas.iter().any(|area| name.starts_with(area))
}

/// Letters that stand for a zone in some places, and what to write there.
fn abbreviation(word: &str) -> Option<&'static str> {
    Some(match word {
        "est" | "edt" | "et" => "America/New_York",
        "cst" | "cdt" | "ct" => "America/Chicago or Asia/Shanghai",
        "mst" | "mdt" | "mt" => "America/Denver",
        "pst" | "pdt" | "pt" => "America/Los_Angeles",
        "cet" | "cest" | "met" => "Europe/Paris",
        "eet" | "eest" => "Europe/Athens",
        "wet" | "west" => "Europe/Lisbon",
        "bst" => "Europe/London or Asia/Dhaka",
        "ist" => "Asia/Kolkata, Europe/Dublin or Asia/Jerusalem",
        "jst" => "Asia/Tokyo",
        "aest" | "aedt" => "Australia/Sydney",
        _ => return None,
    })
}

fn no_such_zone(name: &str) -> String {
    let known: Vec<String> = jiff::tz::db().available().map(|zone| zone.to_string()).collect();
    let lower: Vec<String> = known.iter().map(|zone| zone.to_lowercase()).collect();
    let nearest = punctual_client::wire::nearest(name, lower.iter().map(String::as_str));
    let nearest = nearest.and_then(|nearest| known.iter().find(|zone| zone.eq_ignore_ascii_case(nearest)));
    match nearest {
        Some(nearest) => format!("there is no time zone {name:?}, did you mean {nearest}?"),
        None => format!("there is no time zone {name:?}: use a name such as Europe/Paris"),
    }
}
