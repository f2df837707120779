//! The types describe themselves as OpenAPI wants it.

use punctual_client::wire::*;
use serde_json::{Value, json};
use utoipa::PartialSchema;

fn described<T: PartialSchema>() -> Value {
    serde_json::to_value(T::schema()).expect("it can be written")
}

#[test]
fn what_is_text_on_the_wire_is_described_as_text() {
    assert_eq!(described::<Moment>()["format"], "date-time");
    assert_eq!(described::<Span>()["type"], "string");
    assert_eq!(described::<Json>(), json!({"description": "Any JSON."}));
}

#[test]
fn names_are_those_of_the_wire() {
    let task = described::<NewTask>();
    assert_eq!(task["additionalProperties"], false, "unknown fields are refused");
    assert!(task["properties"]["unique_key"].is_object());
    assert!(task.get("required").is_none(), "{task}");
    assert!(described::<Problem>()["properties"]["type"].is_object());
    assert!(described::<CallAt>()["properties"]["executionDateTime"].is_object());
    assert_eq!(described::<CallStatus>()["enum"], json!(["ToDo", "In progress", "Done", "Error"]));
    assert_eq!(described::<EventKind>()["enum"][0], "task.created");
    assert_eq!(described::<Scope>()["enum"][0], "read");
    let queue = described::<QueueSettings>();
    assert!(queue.get("required").is_none(), "{queue}");
}
