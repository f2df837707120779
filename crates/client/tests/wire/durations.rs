//! Durations: with units, as ISO 8601, and never as a bare number.

use std::time::Duration;

use proptest::prelude::*;
use punctual_client::wire::{Span, SpanProblem};

fn read(text: &str) -> Result<Duration, String> {
    text.parse::<Span>().map(Duration::from).map_err(|problem| problem.to_string())
}

#[test]
fn the_examples_of_the_protocol_are_read() {
    for (text, secs) in [("90s", 90.0), ("1h30m", 5400.0), ("500ms", 0.5), ("2d", 172_800.0), ("PT90S", 90.0)]
    {
        assert_eq!(read(text), Ok(Duration::from_secs_f64(secs)), "{text}");
    }
    assert_eq!(read("P7D"), Ok(Duration::from_secs(7 * 86_400)));
    assert_eq!(read("1w"), Ok(Duration::from_secs(7 * 86_400)));
    assert_eq!(read("PT0.000001S"), Ok(Duration::from_micros(1)));
}

#[test]
fn they_go_out_as_iso_8601() {
    let out = |text: &str| text.parse::<Span>().unwrap().to_string();
    assert_eq!(out("30s"), "PT30S");
    assert_eq!(out("90s"), "PT1M30S");
    assert_eq!(out("24h"), "PT24H");
    assert_eq!(out("7d"), "P7D");
    assert_eq!(out("14d"), "P14D");
    assert_eq!(out("49h"), "PT49H");
    assert_eq!(out("1500ms"), "PT1.5S");
    assert_eq!(out("0s"), "PT0S");
}

#[test]
fn a_number_without_a_unit_is_refused_with_a_way_out() {
    assert_eq!(
        read("90"),
        Err("\"90\" has no unit: write 90s for seconds, or 90ms for milliseconds".to_owned())
    );
    let json = serde_json::from_str::<Span>("90").unwrap_err().to_string();
    assert!(json.contains("a duration needs a unit: write \"90s\""), "{json}");
}

#[test]
fn what_has_no_fixed_length_or_no_sense_is_refused() {
    assert!(matches!("1mo".parse::<Span>(), Err(SpanProblem::NoFixedLength { .. })));
    assert!(matches!("P1Y".parse::<Span>(), Err(SpanProblem::NoFixedLength { .. })));
    assert!(matches!("-5s".parse::<Span>(), Err(SpanProblem::Negative { .. })));
    assert!(matches!("-PT5S".parse::<Span>(), Err(SpanProblem::Negative { .. })));
    assert!(matches!("soon".parse::<Span>(), Err(SpanProblem::NotADuration { .. })));
    assert!(matches!("01:00:00".parse::<Span>(), Err(SpanProblem::NotADuration { .. })));
    assert!(matches!("1d 01:00:00".parse::<Span>(), Err(SpanProblem::NotADuration { .. })));
    assert!(matches!("".parse::<Span>(), Err(SpanProblem::NotADuration { .. })));
    for long in ["P5000000D", "30000000d", "1w 999999999999999h", "PT99999999999999999999.5S", "80000y"] {
        assert!(matches!(long.parse::<Span>(), Err(SpanProblem::TooLong)), "{long}");
    }
    assert!(matches!("-30000000d".parse::<Span>(), Err(SpanProblem::Negative { .. })));
    assert!(matches!("PT1.12345678901S".parse::<Span>(), Err(SpanProblem::NotADuration { .. })));
    assert!(matches!("9".repeat(100_000).parse::<Span>(), Err(SpanProblem::NotADuration { .. })));
    assert_eq!(Span::from(Duration::MAX), Span::MAX);
}

proptest! {
    #[test]
    fn a_duration_survives_the_wire(micros in prop_oneof![0..10_000_000_u64, 0..Duration::from(Span::MAX).as_micros() as u64, (0..400_u64).prop_map(|days| days * 86_400_000_000)]) {
        let span = Span::from(Duration::from_micros(micros));
        let json = serde_json::to_string(&span).unwrap();
        prop_assert_eq!(serde_json::from_str::<Span>(&json).unwrap(), span, "{}", json);
        prop_assert_eq!(Duration::from(span), Duration::from_micros(micros));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in prop_oneof![".{0,40}", "[-+]?P?[0-9.,]{0,12}[YMWDTHSa-z ]{0,3}[0-9.]{0,6}[a-zA-Z]{0,5}"]) {
        if let Ok(span) = text.parse::<Span>() {
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
            prop_assert!(span <= Span::MAX);
        }
    }
}
