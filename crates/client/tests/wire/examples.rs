//! What the protocol's page shows is what the types read and write.

use std::fmt::Debug;

use punctual_client::wire::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const PROTOCOL: &str = include_str!("../../../../docs/protocol.md");

/// Reads a text and writes it again: nothing is lost, nothing is added, and it is still the same.
fn round_trip<T: DeserializeOwned + Serialize + PartialEq + Debug>(text: &str) -> T {
    let read: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let written = serde_json::to_string(&read).expect("it can be written");
    let value = |text: &str| serde_json::from_str::<Value>(text).expect("it is JSON");
    assert_eq!(value(&written), value(text));
    assert_eq!(serde_json::from_str::<T>(&written).expect("it can be read again"), read);
    read
}

/// The code blocks of the page that are JSON.
fn json_blocks() -> Vec<&'static str> {
    PROTOCOL.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_task_on_the_page_is_a_task() {
    let task: Task = round_trip(json_blocks()[0]);
    assert_eq!(task.state, State::Retrying);
    assert_eq!(task.target, TargetKind::Worker);
    assert_eq!(task.timeout, Some(Span::from_secs(30)));
}

#[test]
fn all_states_on_the_page_are_states() {
    let listed = PROTOCOL.split("`state` is one of `").nth(1).unwrap().split('`').next().unwrap();
    let listed: Vec<State> = listed.split(", ").map(|state| state.parse().unwrap()).collect();
    assert_eq!(listed, State::ALL);
    for state in State::ALL {
        assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
    }
}

#[test]
fn a_new_task_has_every_field_of_the_table() {
    let task: NewTask = round_trip(
        r#"{"at": "2026-11-16T09:00:00", "timezone": "Europe/Paris", "delay": "PT1M30S", "lane": "a", "unique_key": "k",
            "on_conflict": "keep", "name": "n", "payload": {"to": "ana"}, "payload_base64": "aGVsbG8=",
            "http": {"url": "https://example.com", "method": "PUT", "headers": {"x": "y"}, "body": [1], "timeout": "PT5S"},
            "handler": "h", "retry": {"min": "PT1S", "max": "PT1H", "factor": 2.0, "attempts": 25, "max_age": "P2D"},
            "priority": 3, "start_by": "2026-11-16T08:00:00.000000Z", "expires_at": "2026-11-16T09:00:00[Europe/Paris]",
            "timeout": "PT30S", "callback": "https://example.com/done"}"#,
    );
    assert_eq!(task.payload_base64, Some(Base64(b"hello".to_vec())));
    let table = PROTOCOL.split("| field | meaning |").nth(1).unwrap().split("\n\n").next().unwrap();
    let written = serde_json::to_value(&task).unwrap();
    for row in table.lines().filter(|row| row.starts_with("| `")) {
        let names = row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2);
        for name in names {
            assert!(written.get(name).is_some(), "{name} is in the table and not in the type");
        }
    }
}

#[test]
fn a_payload_is_carried_byte_for_byte() {
    let text = r#"{"payload":{"b": 1.000000000000000000001,  "a" : [ 9007199254740993 ],"b":2}}"#;
    let task: NewTask = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&task).unwrap(), text);
    assert_eq!(task.payload.unwrap().into_bytes(), &text.as_bytes()[11..text.len() - 1]);

    let nothing: NewTask = serde_json::from_str(r#"{"payload": null}"#).unwrap();
    assert_eq!(nothing.payload.unwrap().text(), "null");
}

#[test]
fn retry_is_a_name_or_a_rule() {
    for name in ["default", "webhooks", "pagerduty", "schedule"] {
        let retry: Retry = round_trip(&format!("\"{name}\""));
        assert!(matches!(retry, Retry::Preset(preset) if preset.as_str() == name));
    }
    let rule: Retry = round_trip(r#"{"attempts": 3}"#);
    assert_eq!(rule, Retry::Rule(RetryRule { attempts: Some(3), ..RetryRule::default() }));
}

#[test]
fn a_batch_is_answered_item_by_item() {
    let results: Results<CreateResult> = round_trip(
        r#"{"results": [{"status": 201, "id": "1"}, {"status": 422, "problem": {"type": "/errors/body_invalid",
            "title": "t", "status": 422, "detail": "d", "instance": "/v1/queues/mail/tasks", "code": "body_invalid",
            "errors": [{"field": "http.url", "detail": "d"}]}}]}"#,
    );
    assert_eq!(results.results[0].id(), Ok("1"));
    assert_eq!(results.results[1].id().unwrap_err().errors[0].field, "http.url");
}

#[test]
fn one_task_and_many_are_told_apart_and_a_bad_one_spoils_no_other() {
    let one = Creation::read(br#" {"delay": "90s", "payload": {"tasks": []}}"#).unwrap();
    assert!(matches!(one, Creation::One(task) if task.delay == Some(Span::from_secs(90))));
    let body = br#"{ "tasks": [{"delay": "90s"}, {"dealy": "90s"}] }"#;
    let Creation::Many(tasks) = Creation::read(body).unwrap() else { panic!("it is a batch") };
    let tasks: Vec<_> = tasks.each().collect();
    assert_eq!(tasks[0].as_ref().unwrap().delay, Some(Span::from_secs(90)));
    assert_eq!(tasks[1].as_ref().unwrap_err().1, r#"{"dealy": "90s"}"#);
    let escaped = Creation::read(br#"{"\u0074asks": [{"delay": "90s"}]}"#).unwrap();
    assert!(matches!(escaped, Creation::Many(tasks) if tasks.len() == 1), "the same word in other letters");
    let fault = |body: &'static [u8]| Creation::read(body).unwrap_err();
    assert_eq!(fault(br#"{"\u0074asks": 1}"#), fault(br#"{"tasks": 1}"#));
    assert!(Creation::read(br#"{"tasks": [{}], "task": 1}"#).is_err());
    assert!(!Creation::read(br#"{"tasks": [{}"#).unwrap_err().is_json);
}

#[test]
fn what_is_not_utf_8_is_not_json() {
    let fault = read::<NewTask>(b"{\"payload\": \"\xff\"}").unwrap_err();
    assert!(!fault.is_json && fault.detail.contains("not UTF-8 from byte 13"), "{fault}");
}

#[test]
fn a_batch_is_read_in_one_go_unless_something_is_wrong_with_it() {
    let right = |body: &str| matches!(Items::<NewTask>::read(body.as_bytes()), Ok(Items::Right(_)));
    assert!(right(r#"{"tasks": [{"delay": "90s"}, {}]}"#) && right(r#"{"tasks": []}"#));
    assert!(!right(r#"{"tasks": [{}, []]}"#), "a list of its fields is no object");
    assert!(!right(r#"{"tasks": [{}, 7]}"#));
    let many = |count: usize| format!(r#"{{"tasks": [{}]}}"#, vec!["{}"; count].join(","));
    assert!(right(&many(BATCH_MAX)) && !right(&many(BATCH_MAX + 1)));
    let many = many(BATCH_MAX + 1);
    assert_eq!(
        Items::<NewTask>::read(many.as_bytes()).unwrap().len(),
        BATCH_MAX + 1,
        "it is told how many there are"
    );
}

#[test]
fn a_patch_tells_apart_what_stays_and_what_goes() {
    let patch: Patch =
        round_trip(r#"{"delay": "PT90H", "callback": null, "timeout": "PT5S", "payload": null}"#);
    assert_eq!(patch.callback, Change::Clear);
    assert_eq!(patch.timeout, Change::Set(Span::from_secs(5)));
    assert_eq!(patch.retry, Change::Keep);
    assert_eq!(patch.payload.unwrap().text(), "null");
}

#[test]
fn queue_settings_have_every_field_of_the_table() {
    let settings: QueueSettings = round_trip(
        r#"{"target": {"http": {"url": "https://example.com", "method": "PUT", "headers": {"x": "y"}}},
            "retry": "default", "on_exhausted": "dead_letter", "priority": 5, "pinned": false, "concurrency": null,
            "rate": {"starts": 10, "per": "PT1S", "burst": 20}, "timeout": "PT30S", "exclusive": false, "past": "run_now",
            "retention": {"succeeded": "PT24H", "dead": "P7D", "identities": "P14D"}, "secrets": ["whsec_x"],
            "success": {"codes": ["2xx"], "give_up": ["410"], "conflict": "repeated"}}"#,
    );
    assert_eq!(settings.concurrency, Change::Clear);
    let table = PROTOCOL.split("| field | default |").nth(1).unwrap().split("\n\n").next().unwrap();
    let written = serde_json::to_value(&settings).unwrap();
    for row in table.lines().filter(|row| row.starts_with("| `")) {
        for name in row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2) {
            assert!(written.get(name).is_some(), "{name} is in the table and not in the type");
        }
    }
    for target in [r#""worker""#, r#"{"handler": "h"}"#] {
        round_trip::<QueueTarget>(target);
    }
}

#[test]
fn a_queue_as_it_is_answered() {
    let queue: Queue = round_trip(
        r#"{"name": "mail", "paused": true, "target": "worker", "retry": "default", "on_exhausted": "block", "priority": 5,
            "pinned": false, "timeout": "PT30S", "exclusive": false, "past": "reject", "secrets": 2, "public_keys": ["whpk_x"],
            "retention": {"succeeded": "PT24H"}, "success": {"codes": ["2xx"]}}"#,
    );
    assert_eq!(queue.secrets, 2);
    let stats: QueueStats = round_trip(
        r#"{"queue": "mail", "paused": false, "waiting": 3, "tasks": {"running": 3, "reserved": 1},
            "flow": {"created": 9, "succeeded": 4, "dead": 1, "cancelled": 0, "expired": 0}, "next_at": "2026-11-16T08:00:00.000000Z"}"#,
    );
    assert_eq!((stats.tasks[&State::Reserved], stats.flow.dead), (1, 1));
}

#[test]
fn what_workers_say() {
    round_trip::<Reserve>(r#"{"worker": "w1", "max": 10, "wait": "PT30S", "ttr": "PT1M"}"#);
    let reserved: Reserved = round_trip(
        r#"{"tasks": [{"id": "1", "token": "t", "queue": "mail", "payload": {"to": "ana"}, "attempt": 1,
            "at": "2026-11-16T08:00:00.000000Z", "lane": "a", "name": "n", "ttr_until": "2026-11-16T08:01:00.000000Z", "ttr": "PT1M",
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "a=b"}]}"#,
    );
    assert_eq!(reserved.tasks[0].attempt, 1);
    round_trip::<Ack>(r#"{"token": "t", "result": {"ok": true}}"#);
    round_trip::<Nack>(r#"{"token": "t", "error": "no", "delay": "PT5S"}"#);
    round_trip::<Touch>(r#"{"token": "t", "ttr": "PT1M"}"#);
    round_trip::<Release>(r#"{"token": "t"}"#);
    round_trip::<Bury>(r#"{"token": "t", "error": "no"}"#);
    round_trip::<Kick>("{}");
    round_trip::<Nothing>("{}");
    round_trip::<Batch<AckItem>>(r#"{"tasks": [{"id": "1", "token": "t", "result": null}]}"#);
    round_trip::<Batch<KickItem>>(r#"{"tasks": [{"id": "1"}]}"#);
    round_trip::<Progress>(r#"{"id": "1", "state": "retrying", "next_at": "2026-11-16T08:00:00.000000Z"}"#);
    round_trip::<Touched>(r#"{"ttr_until": "2026-11-16T08:00:00.000000Z"}"#);
    round_trip::<Results<ReportResult>>(r#"{"results": [{"status": 200, "id": "1", "state": "succeeded"}]}"#);
}

#[test]
fn the_rest_of_the_page() {
    round_trip::<Cancelled>(r#"{"state": "cancelled"}"#);
    round_trip::<TaskResult>(r#"{"state": "succeeded", "result": {"sent": 1}}"#);
    round_trip::<TaskPage>(r#"{"tasks": [], "next": null}"#);
    round_trip::<ByFilter>(
        r#"{"filter": {"queue": "mail", "state": "dead"}, "dry_run": true, "limit": 10, "cursor": "c"}"#,
    );
    round_trip::<MoveByFilter>(r#"{"filter": {}, "delay": "PT5M"}"#);
    round_trip::<Changed>(r#"{"matched": 3, "changed": 2, "problems": [], "next": "c"}"#);
    round_trip::<LaneName>(r#"{"queue": "mail", "lane": "a"}"#);
    round_trip::<LanePage>(r#"{"lanes": [{"queue": "mail", "lane": "a", "blocked": true}], "next": null}"#);
    let call: CallAt = round_trip(
        r#"{"url": "https://example.com", "verb": "POST", "body": {"a": 1}, "executionDateTime": "2026-11-16T09:00:00",
            "timezone": "Europe/Paris", "headers": {"x": "y"}, "lane": "a", "unique_key": "k", "name": "n", "queue": "q",
            "retry": "webhooks", "timeout": "PT5S", "callback": "https://example.com", "on_conflict": "error"}"#,
    );
    assert_eq!(call.execution_date_time.kind(), TimeKind::Civil);
    round_trip::<ScheduledCall>(
        r#"{"id": "1", "url": "https://example.com", "verb": "POST", "executionDateTime": "2026-11-16T08:00:00.000000Z",
            "status": "In progress"}"#,
    );
    round_trip::<NewNotification>(
        r#"{"url": "https://example.com", "events": ["task.dead", "lane.blocked", "lateness"], "queue": "mail",
            "lateness_over": "PT5S", "secret": "whsec_x"}"#,
    );
    let event: Event = round_trip(
        r#"{"specversion": "1.0", "id": "7", "source": "/punctual", "type": "task.created", "subject": "1",
            "time": "2026-11-16T08:00:00.000000Z", "data": {"queue": "mail"}}"#,
    );
    assert_eq!(event.kind, EventKind::TaskCreated);
}

#[test]
fn a_list_of_values_is_no_object() {
    assert!(read::<ByFilter>(br#"{"filter": [null, null]}"#).is_err());
    assert!(read::<ByFilter>(br#"{"filter": {}}"#).is_ok());
    assert_eq!(read::<Kick>(b" []").unwrap_err().detail, "a list, where an object is expected");
}
