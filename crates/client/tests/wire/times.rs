//! Times: with an offset, with a zone, civil, and what clock changes do to them.

use proptest::prelude::*;
use punctual_client::wire::{Moment, Time, TimeKind, TimeProblem};

/// The moment that is meant, or what is said against it.
fn resolved(text: &str, timezone: Option<&str>) -> String {
    match text.parse::<Time>().and_then(|time| time.resolve(timezone)) {
        Ok(moment) => moment.to_string(),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn the_three_ways_to_say_a_time_mean_the_same_moment() {
    let moment = "2026-11-16T08:00:00.000000Z";
    assert_eq!(resolved("2026-11-16T09:00:00+01:00", None), moment);
    assert_eq!(resolved("2026-11-16T09:00[Europe/Paris]", None), moment);
    assert_eq!(resolved("2026-11-16T09:00:00", Some("Europe/Paris")), moment);
    assert_eq!(resolved("2026-11-16T09:00", Some("+01:00")), moment);
    assert_eq!(resolved("2026-11-16T08:00:00Z", None), moment);
    assert_eq!(resolved("2026-11-16T09:00+01:00[Europe/Paris]", Some("Europe/Paris")), moment);

    let kind = |text: &str| text.parse::<Time>().unwrap().kind();
    assert_eq!(kind("2026-11-16T09:00:00+01:00"), TimeKind::Offset);
    assert_eq!(kind("2026-11-16T09:00[Europe/Paris]"), TimeKind::Zone);
    assert_eq!(kind("2026-11-16T09:00:00"), TimeKind::Civil);
}

#[test]
fn a_civil_time_without_a_zone_is_refused_with_a_way_out() {
    assert_eq!(
        resolved("2026-11-16T09:00:00", None),
        "2026-11-16T09:00:00 has no offset, so it could be meant anywhere: write 2026-11-16T09:00:00Z, or name a \
         `timezone` such as \"Europe/Paris\""
    );
}

#[test]
fn a_skipped_time_is_the_moment_of_the_change_and_a_repeated_one_is_the_first() {
    // Paris skips 02:00 to 03:00 on 29 March 2026, and repeats it on 25 October.
    for skipped in ["02:00", "02:30", "02:59:59.999999"] {
        let text = format!("2026-03-29T{skipped}[Europe/Paris]");
        assert_eq!(resolved(&text, None), "2026-03-29T01:00:00.000000Z", "{text}");
    }
    assert_eq!(resolved("2026-03-29T03:00[Europe/Paris]", None), "2026-03-29T01:00:00.000000Z");
    assert_eq!(resolved("2026-03-29T03:30[Europe/Paris]", None), "2026-03-29T01:30:00.000000Z");
    assert_eq!(resolved("2026-10-25T02:30[Europe/Paris]", None), "2026-10-25T00:30:00.000000Z");
    assert_eq!(resolved("2026-10-25T02:30", Some("Europe/Paris")), "2026-10-25T00:30:00.000000Z");
    // The offset says which of the two is meant.
    assert_eq!(resolved("2026-10-25T02:30+01:00[Europe/Paris]", None), "2026-10-25T01:30:00.000000Z");
    // Samoa skipped the whole of 30 December 2011.
    assert_eq!(resolved("2011-12-30T12:00[Pacific/Apia]", None), "2011-12-30T10:00:00.000000Z");
}

#[test]
fn contradictions_are_refused() {
    assert_eq!(
        resolved("2026-11-16T09:00:00+02:00[Europe/Paris]", None),
        "the offset +02:00 contradicts \"Europe/Paris\", which is at +01:00 then: leave one out"
    );
    assert_eq!(
        resolved("2026-11-16T09:00:00+02:00", Some("Europe/Paris")),
        "the offset +02:00 contradicts \"Europe/Paris\", which is at +01:00 then: leave one out"
    );
    assert_eq!(
        resolved("2026-11-16T09:00[Europe/Paris]", Some("Europe/Rome")),
        "the time names the zone \"Europe/Paris\" and `timezone` says \"Europe/Rome\": leave one out"
    );
    // `Z` says nothing about the place.
    assert_eq!(resolved("2026-11-16T09:00:00Z", Some("Europe/Paris")), "2026-11-16T09:00:00.000000Z");
}

#[test]
fn what_cannot_be_read_is_explained() {
    assert_eq!(
        resolved("2026-11-16T09:00", Some("Europe/Pariss")),
        "there is no time zone \"Europe/Pariss\", did you mean \"Europe/Paris\"?"
    );
    assert_eq!(
        resolved("2026-11-16T09:00", Some("Nowhere at all")),
        "there is no time zone \"Nowhere at all\": use a name of the IANA database, such as \"Europe/Paris\""
    );
    assert_eq!(
        resolved("2026-11-16", None),
        "\"2026-11-16\" has no time of day: write it like 2026-11-16T09:00:00+01:00"
    );
    assert_eq!(
        resolved("tomorrow", None),
        "\"tomorrow\" is not a time: write it like 2026-11-16T09:00:00+01:00"
    );
    assert_eq!(
        resolved("2026-11-16T09:00:00 01:00", None),
        "\"2026-11-16T09:00:00 01:00\" is not a time: in a query, the `+` of an offset must be written `%2B`"
    );
    let json = serde_json::from_str::<Time>("1763280000").unwrap_err().to_string();
    assert!(json.contains("a number could count seconds or milliseconds"), "{json}");
}

#[test]
fn the_range_of_times_has_ends() {
    assert_eq!(resolved("1970-01-01T00:00:00Z", None), "1970-01-01T00:00:00.000000Z");
    assert_eq!(resolved("9999-12-30T00:00:00Z", None), "9999-12-30T00:00:00.000000Z");
    assert_eq!(resolved("9999-12-30T22:00:00Z", None), "9999-12-30T22:00:00.000000Z");
    let refused = "a time must lie between 1970 and 9999-12-30T22:00:00Z";
    assert_eq!(resolved("9999-12-30T22:00:00.000001Z", None), refused);
    assert_eq!(resolved("1969-12-31T23:59:59.999999Z", None), refused);
    assert_eq!(resolved("9999-12-31T23:59:59-14:00", None), refused);
    assert!(matches!("10000-01-01T00:00Z".parse::<Time>(), Err(TimeProblem::NotATime { .. })));
    assert!(matches!("9".repeat(100_000).parse::<Time>(), Err(TimeProblem::NotATime { .. })));
}

#[test]
fn a_negative_zero_says_nothing_of_the_place() {
    assert_eq!(resolved("2026-11-16T09:00:00-00:00", None), "2026-11-16T09:00:00.000000Z");
    assert_eq!(resolved("2026-11-16T09:00:00-00:00[Europe/Paris]", None), "2026-11-16T09:00:00.000000Z");
    assert!(resolved("2026-11-16T09:00:00+00:00[Europe/Paris]", None).contains("contradicts"));
}

#[test]
fn an_offset_is_less_than_a_day() {
    assert_eq!(resolved("2026-11-16T09:00:00+23:59", None), "2026-11-15T09:01:00.000000Z");
    assert_eq!(resolved("2026-11-16T09:00:00", Some("-23:59")), "2026-11-17T08:59:00.000000Z");
    for text in ["2026-11-16T09:00:00+24:00", "2026-11-16T09:00:00-25:00", "2026-11-16T09:00:00-25:00[UTC]"] {
        assert!(matches!(text.parse::<Time>(), Err(TimeProblem::NotATime { .. })), "{text}");
    }
    for zone in ["+24:00", "-25:00"] {
        assert!(resolved("2026-11-16T09:00:00", Some(zone)).contains("there is no time zone"), "{zone}");
        let inside = format!("2026-11-16T09:00:00[{zone}]");
        assert!(resolved(&inside, None).contains("there is no time zone"), "{inside}");
    }
}

#[test]
fn a_second_60_is_refused() {
    for text in
        ["2026-12-31T23:59:60Z", "2026-12-31 23:59:60", "20261231T235960Z", "2026-12-31T23:59:60.5+01:00"]
    {
        assert!(matches!(text.parse::<Time>(), Err(TimeProblem::LeapSecond { .. })), "{text}");
    }
    assert!(resolved("2026-12-31T23:60:00Z", None).contains("is not a time"));
    assert_eq!(resolved("2026-12-31T16:00:00Z", None), "2026-12-31T16:00:00.000000Z");
}

#[test]
fn every_moment_can_be_written() {
    let text = Moment::MAX.to_string();
    assert_eq!(text, "9999-12-30T22:00:00.000000Z");
    assert_eq!(text.parse(), Ok(Moment::MAX));
    assert_eq!(Moment::from_micros(253_402_300_799_999_999).to_string(), text, "the last that may be stored");
    assert_eq!(Moment::from_micros(i64::MAX).to_string(), text);
    assert_eq!(Time::from(Moment::from_micros(i64::MAX)).to_string(), text);
    assert_eq!(Moment::from_micros(i64::MIN).to_string(), "1970-01-01T00:00:00.000000Z");
}

#[test]
fn nothing_is_early_by_a_nanosecond() {
    assert_eq!(resolved("2026-11-16T08:00:00.000000001Z", None), "2026-11-16T08:00:00.000001Z");
    assert_eq!(resolved("2026-11-16T08:00:00.999999999Z", None), "2026-11-16T08:00:01.000000Z");
}

fn any_moment() -> impl Strategy<Value = Moment> {
    (0..=Moment::MAX.as_micros()).prop_map(Moment::from_micros)
}

/// Text that looks like a time often enough to get past the first letter.
const LIKE_A_TIME: &str = r"[0-9+-]{0,6}-?[0-9]{0,3}-?[0-9]{0,3}[Tt ]?[0-9:.,]{0,15}([Zz]|[+-][0-9:]{0,9})?(\[[!A-Za-z/_+-:]{0,20}\])?";

proptest! {
    #[test]
    fn a_moment_survives_the_wire(moment in any_moment()) {
        let json = serde_json::to_string(&moment).unwrap();
        prop_assert_eq!(serde_json::from_str::<Moment>(&json).unwrap(), moment);
        prop_assert_eq!(json.len(), "\"2026-11-16T08:00:00.000000Z\"".len());
        let time = serde_json::to_string(&Time::from(moment)).unwrap();
        prop_assert_eq!(time, json);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in prop_oneof![".{0,40}", LIKE_A_TIME], zone in prop_oneof![".{0,12}", "[+-][0-9:]{0,9}"]) {
        if let Ok(time) = text.parse::<Time>() {
            for timezone in [None, Some("Europe/Paris"), Some(zone.as_str())] {
                let moment = time.resolve(timezone);
                let again: Time = time.to_string().parse().expect("what was written can be read");
                // What is finer than a microsecond may be gone; the moment that is meant is the same.
                prop_assert_eq!(again.resolve(timezone).ok(), moment.ok());
            }
        }
    }

    #[test]
    fn a_civil_time_in_a_zone_is_that_time_there(moment in any_moment(), zone in prop::sample::select(vec!["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"])) {
        let there = jiff::Timestamp::from_microsecond(moment.as_micros()).unwrap().in_tz(zone).unwrap();
        let civil: Time = there.datetime().to_string().parse().unwrap();
        let named: Time = there.to_string().parse().unwrap();
        // The offset tells the two of a repeated hour apart; without it, the first is meant.
        prop_assert_eq!(named.resolve(None).unwrap(), moment);
        let first = civil.resolve(Some(zone)).unwrap();
        prop_assert!(first <= moment, "{} is after {}", first, moment);
        prop_assert!(moment.since(first).as_secs() <= 24 * 3600);
    }
}
