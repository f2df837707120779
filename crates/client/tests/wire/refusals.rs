//! What a server reads must be known to it; what a client reads need not be.

use punctual_client::wire::*;

fn fault<T: serde::de::DeserializeOwned + std::fmt::Debug>(body: &str) -> String {
    read::<T>(body.as_bytes()).expect_err("it is wrong").to_string()
}

#[test]
fn an_unknown_field_is_refused_and_the_nearest_is_named() {
    assert_eq!(
        fault::<NewTask>(r#"{"dealy": "90s"}"#),
        r#"dealy: unknown field "dealy", did you mean "delay"?"#
    );
    assert_eq!(
        fault::<NewTask>(r#"{"http": {"url": "u", "metod": "GET"}}"#),
        r#"http.metod: unknown field "metod", did you mean "method"?"#
    );
    assert_eq!(
        fault::<NewTask>(r#"{"retry": {"atempts": 3}}"#),
        r#"retry.atempts: unknown field "atempts", did you mean "attempts"?"#
    );
    assert_eq!(
        fault::<QueueSettings>(r#"{"success": {"code": []}}"#),
        r#"success.code: unknown field "code", did you mean "codes"?"#
    );
    assert_eq!(fault::<NewTask>(r#"{"colour": 1}"#), r#"colour: unknown field "colour""#);
    assert_eq!(fault::<Kick>(r#"{"a": 1}"#), r#"a: unknown field "a""#);
    assert_eq!(fault::<Nothing>(r#"{"until": 1}"#), r#"until: unknown field "until""#);
    assert_eq!(
        fault::<Batch<AckItem>>(r#"{"tasks": [{"id": "1", "tokn": "t"}]}"#),
        r#"tasks[0].tokn: unknown field "tokn", did you mean "token"?"#
    );
}

#[test]
fn the_field_at_fault_is_named() {
    assert_eq!(
        fault::<NewTask>(r#"{"payload": {"any": [1]}, "delay": 90}"#),
        "delay: a duration needs a unit: write \"90s\" or \"500ms\", not a bare number"
    );
    assert_eq!(
        fault::<NewTask>(r#"{"http": {"url": "u", "timeout": "1y"}}"#),
        "http.timeout: \"1y\" has months or years, which have no fixed length: write it in days"
    );
    assert_eq!(
        fault::<NewTask>(r#"{"retry": "webhook"}"#),
        "retry: there is no retry policy \"webhook\", did you mean \"webhooks\"?"
    );
    assert!(fault::<NewTask>(r#"{"payload_base64": "?"}"#).starts_with("payload_base64: not base64"));
    assert!(fault::<NewTask>("{").starts_with("the body is not JSON: EOF"));
    assert!(fault::<NewTask>("").starts_with("the body is not JSON: EOF"));
    let fault = read::<NewTask>(br#"{"delay": 90}"#).unwrap_err();
    assert_eq!(fault.field_error().unwrap().field, "delay");
}

#[test]
fn a_field_that_is_missing_is_named_with_the_way_to_it() {
    assert_eq!(fault::<ReleaseItem>(r#"{"id": "x"}"#), "token: is missing");
    assert_eq!(fault::<Batch<AckItem>>(r#"{"tasks": [{"token": "1.1"}]}"#), "tasks[0].id: is missing");
    assert_eq!(fault::<NewTask>(r#"{"http": {}}"#), "http.url: is missing");
    let fault = read::<ReleaseItem>(br#"{"id": "x"}"#).unwrap_err().field_error().unwrap();
    assert_eq!((fault.field.as_str(), fault.detail.as_str()), ("token", "is missing"));
}

#[test]
fn nothing_is_said_in_words_of_rust() {
    assert_eq!(fault::<ReleaseItem>("5"), "invalid type: integer `5`, expected an object");
    assert_eq!(fault::<NewTask>(r#"{"http": "u"}"#), "http: invalid type: string \"u\", expected an object");
    assert_eq!(
        fault::<NewTask>(r#"{"retry": "sometimes"}"#),
        "retry: there is no retry policy of that name: use one of default, webhooks, pagerduty, schedule, or write the rule out"
    );
}

#[test]
fn a_field_named_to_deceive_is_quoted_whole() {
    let body = r#"{"a`, expected one of `delay": 1}"#;
    let error = serde_json::from_str::<NewTask>(body).unwrap_err();
    let unknown = unknown_field(&error).unwrap();
    assert_eq!(unknown, UnknownField { field: "a`, expected one of `delay".to_owned(), nearest: None });
}

#[test]
fn the_nearest_word_is_near() {
    let known = ["at", "delay", "lane", "unique_key", "executionDateTime"];
    assert_eq!(nearest("dealy", known), Some("delay"));
    assert_eq!(nearest("uniquekey", known), Some("unique_key"));
    assert_eq!(nearest("executiondatetime", known), Some("executionDateTime"));
    assert_eq!(nearest("line", known), Some("lane"));
    assert_eq!(nearest("colour", known), None);
    assert_eq!(nearest(&"x".repeat(1_000_000), known), None);
}

#[test]
fn a_client_overlooks_what_is_newer_than_itself() {
    let task: Task = serde_json::from_str(
        r#"{"id": "1", "queue": "q", "state": "dead", "at": "2026-11-16T08:00:00.000000Z", "target": "http", "new": 1,
            "http": {"url": "u", "new": 1}, "retry": {"attempts": 3, "new": 1}}"#,
    )
    .unwrap();
    assert_eq!(task.http, Some(Http { url: "u".to_owned(), ..Http::default() }));
    let queue: Queue = serde_json::from_str(
        r#"{"name": "mail", "target": {"http": {"url": "u", "new": 1}}, "retry": {"new": 1}, "on_exhausted": "block",
            "priority": 5, "rate": {"starts": 1, "per": "PT1S", "new": 1}, "timeout": "PT30S", "past": "reject",
            "retention": {"new": 1}, "success": {"new": 1}, "new": 1}"#,
    )
    .unwrap();
    assert!(matches!(queue.target, QueueTarget::Http(_)));
    let problem: Problem =
        serde_json::from_str(r#"{"code": "task_running", "status": 409, "attempt": 3}"#).unwrap();
    assert_eq!(problem.code, code::TASK_RUNNING);
}
