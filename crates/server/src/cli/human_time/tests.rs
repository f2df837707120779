//! What people write, and what it means on a Monday morning in Berlin.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use punctual_client::wire::Moment;

use super::understand;

/// Monday the 16th of November 2026, 10:30 in Berlin.
const NOW: &str = "2026-11-16T09:30:00Z";

fn moment(text: &str) -> Moment {
    Moment::from_micros(text.parse::<Timestamp>().unwrap().as_microsecond())
}

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").unwrap()
}

fn means(text: &str) -> String {
    match understand(text, moment(NOW), &berlin()) {
        Ok(when) => when.at.to_string().replace(".000000", ""),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_people_write_is_understood() {
    for (text, expected) in [
        ("now", NOW),
        ("in 90m", "2026-11-16T11:00:00Z"),
        ("90m", "2026-11-16T11:00:00Z"),
        ("in 1h30m", "2026-11-16T11:00:00Z"),
        ("In 2 hours", "2026-11-16T11:30:00Z"),
        ("2 hours from now", "2026-11-16T11:30:00Z"),
        ("in an hour", "2026-11-16T10:30:00Z"),
        ("in half an hour", "2026-11-16T10:00:00Z"),
        ("in 3 days", "2026-11-19T09:30:00Z"),
        ("PT90S", "2026-11-16T09:31:30Z"),
        ("1h ago", "2026-11-16T08:30:00Z"),
        ("tomorrow 9:00 Europe/Paris", "2026-11-17T08:00:00Z"),
        ("tomorrow 9:00 europe/paris", "2026-11-17T08:00:00Z"),
        ("Tomorrow at 9am, Paris time", "2026-11-17T08:00:00Z"),
        ("tomorrow 9:00 New York", "2026-11-17T14:00:00Z"),
        ("tomorrow 9:00 UTC", "2026-11-17T09:00:00Z"),
        ("tomorrow 9:00 +05:30", "2026-11-17T03:30:00Z"),
        ("9:00 tomorrow", "2026-11-17T08:00:00Z"),
        ("day after tomorrow 9:00", "2026-11-18T08:00:00Z"),
        ("today 18:30", "2026-11-16T17:30:00Z"),
        ("tonight 8pm", "2026-11-16T19:00:00Z"),
        ("today 8:00", "2026-11-16T07:00:00Z"),
        ("11:00", "2026-11-16T10:00:00Z"),
        ("10:00", "2026-11-17T09:00:00Z"),
        ("11:00:30", "2026-11-16T10:00:30Z"),
        ("9:00:00", "2026-11-17T08:00:00Z"),
        ("noon", "2026-11-16T11:00:00Z"),
        ("midnight", "2026-11-16T23:00:00Z"),
        ("12am tomorrow", "2026-11-16T23:00:00Z"),
        ("12:15 pm", "2026-11-16T11:15:00Z"),
        ("next monday 8:30", "2026-11-23T07:30:00Z"),
        ("monday 8:30", "2026-11-23T07:30:00Z"),
        ("monday 11:30", "2026-11-16T10:30:00Z"),
        ("next monday 11:30", "2026-11-23T10:30:00Z"),
        ("fri 17:00:30", "2026-11-20T16:00:30Z"),
        ("2026-12-24 18:00", "2026-12-24T17:00:00Z"),
        ("2026-12-24T18:00", "2026-12-24T17:00:00Z"),
        ("2026-12-24 18:00 Asia/Tokyo", "2026-12-24T09:00:00Z"),
        ("2026-12-24 6pm", "2026-12-24T17:00:00Z"),
        ("24 dec 18:00", "2026-12-24T17:00:00Z"),
        ("December 24th at 18:00", "2026-12-24T17:00:00Z"),
        ("24. Dec. 2027 18:00", "2027-12-24T17:00:00Z"),
        ("1 march 7:00", "2027-03-01T06:00:00Z"),
        ("29 feb 12:00", "2028-02-29T11:00:00Z"),
        ("2026-12-24T18:00:00+01:00", "2026-12-24T17:00:00Z"),
        ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00Z"),
        ("2026-12-24T18:00[America/New_York]", "2026-12-24T23:00:00Z"),
    ] {
        assert_eq!(means(text), expected, "{text}");
    }
}

#[test]
fn what_could_mean_two_things_is_refused_with_what_to_write() {
    for (text, why) in [
        ("", "there is nothing in it"),
        ("tomorrow", "it has no time of day: add one, such as 9:00"),
        ("tomorrow 9", "\"9\" may be an hour of the morning or the evening: write 9:00 or 9pm"),
        ("12/24/2026 18:00", "write it like 2026-12-24"),
        ("tomorrow 9:00 EST", "EST is used in more than one place: name yours, such as America/New_York"),
        ("tomorrow 9:00 Europe/Pari", "there is no time zone \"europe/pari\", did you mean Europe/Paris?"),
        ("soon", "write it like \"in 90m\""),
        ("in 90", "\"90\" has no unit"),
        ("in 2 months", "months or years"),
        ("25:00", "no clock shows 25:00"),
        ("13pm", "there is no hour \"13\" in half a day"),
        ("30 feb 9:00", "month 2 has no day 30"),
        ("2026-02-30 9:00", "there is no day 2026-02-30"),
        ("9:00 10:00", "it names more than one time of day"),
        ("next week 9:00", "\"next week\" is no day"),
        ("in 2 years", "months or years"),
    ] {
        let said = means(text);
        assert!(said.contains(why), "{text}: {said}");
    }
}

#[test]
fn what_a_clock_change_skips_or_repeats_is_said() {
    let skipped = understand("2027-03-28 02:30", moment(NOW), &berlin()).unwrap();
    assert_eq!(skipped.at, moment("2027-03-28T01:00:00Z"));
    assert!(skipped.note.unwrap().contains("skip 02:30:00"));
    let repeated = understand("2027-10-31 02:30", moment(NOW), &berlin()).unwrap();
    assert_eq!(repeated.at, moment("2027-10-31T00:30:00Z"));
    assert!(repeated.note.unwrap().contains("02:30:00 twice"));
}

#[test]
fn a_length_is_kept_as_one_so_that_the_servers_clock_counts() {
    let when = understand("in 90m", moment(NOW), &berlin()).unwrap();
    assert_eq!(when.after, Some(std::time::Duration::from_secs(5400)));
    assert_eq!(understand("11:00", moment(NOW), &berlin()).unwrap().after, None);
}

#[test]
fn no_clock_shows_a_second_60() {
    for text in ["9:00:60", "21:00:61", "2026-12-24T18:00:60Z", "2026-12-24 18:00:60", "tomorrow 9:00:60"] {
        let said = means(text);
        assert!(said.contains("seconds") && said.contains("to 59"), "{text}: {said}");
    }
    assert!(means("in 9:00:00").contains("is not a duration"), "{}", means("in 9:00:00"));
}

proptest! {
    #[test]
    fn nothing_makes_it_panic(text in any::<String>(), now in 0..Moment::MAX.as_micros()) {
        understand(&text, Moment::from_micros(now), &berlin()).ok();
    }

    #[test]
    fn no_mixture_of_words_makes_it_panic(
        words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..6),
        now in 0..Moment::MAX.as_micros(),
    ) {
        understand(&words.join(" "), Moment::from_micros(now), &berlin()).ok();
    }

    #[test]
    fn any_moment_can_be_written_in_three_ways(micros in 0..Moment::MAX.as_micros()) {
        let now = moment(NOW);
        let exact = Moment::from_micros(micros);
        prop_assert_eq!(understand(&exact.to_string(), now, &berlin()).unwrap().at, exact);
        let whole = Timestamp::from_second(micros / 1_000_000).unwrap().to_zoned(TimeZone::UTC);
        let spoken = whole.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        prop_assert_eq!(understand(&spoken, now, &berlin()).unwrap().at.as_micros(), micros / 1_000_000 * 1_000_000);
        let civil = whole.strftime("%Y-%m-%d %H:%M:%S").to_string();
        let civil = understand(&civil, now, &TimeZone::UTC).unwrap();
        prop_assert_eq!(civil.at.as_micros(), micros / 1_000_000 * 1_000_000);
    }
}

const WORDS: [&str; 36] = [
    "in",
    "at",
    "next",
    "this",
    "monday",
    "tomorrow",
    "today",
    "9:00",
    "9",
    "99:99",
    "am",
    "pm",
    "9pm",
    "dec",
    "24",
    "29",
    "feb",
    "2026",
    "9999",
    "9999-12-31",
    "0000-01-01",
    "23:59:59",
    "utc",
    "+25:00",
    "-12:00",
    "paris",
    "ago",
    "90m",
    "10000d",
    "day",
    "after",
    "midnight",
    "noon",
    "from",
    "now",
    "PT1S",
];
