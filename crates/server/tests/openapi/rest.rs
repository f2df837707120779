//! What can be asked about the server itself.

use punctual_client::wire;
use serde_json::{Value, json};

use super::operation::Operation;

pub fn all() -> Vec<Operation> {
    let operations = [events(), healthz(), readyz(), metrics(), openapi(), error()];
    operations.into_iter().map(|operation| operation.tag("server")).collect()
}

fn events() -> Operation {
    let about = "Server-sent events for as long as the connection lasts. Each `data` is a CloudEvent.";
    let mut operation = Operation::new("get", "/v1/events", "listen", "Listen to what happens", about);
    let event = operation.refer::<wire::Event>();
    let schema = json!({"type": "string", "contentMediaType": "application/json", "contentSchema": event});
    operation
        .query::<wire::EventQuery>()
        .answers_as(200, "Events.", json!({"text/event-stream": {"schema": schema}}))
        .refuses(&["name_empty", "name_too_long", "queue_name_invalid"])
}

fn healthz() -> Operation {
    Operation::plain("get", "/healthz", "healthz", "Whether the process lives", "").answers_text(
        200,
        "It does.",
        "text/plain",
    )
}

fn readyz() -> Operation {
    Operation::new(
        "get",
        "/readyz",
        "readyz",
        "Whether it owns its partitions and its store takes writes",
        "",
    )
    .answers_text(200, "It does.", "text/plain")
    .refuses(&["not_ready"])
}

fn metrics() -> Operation {
    Operation::new("get", "/metrics", "metrics", "Figures for Prometheus", "").answers_text(
        200,
        "Figures, as OpenMetrics writes them.",
        "application/openmetrics-text",
    )
}

fn openapi() -> Operation {
    Operation::plain("get", "/openapi.json", "openapi", "This document", "").answers_as(
        200,
        "An OpenAPI 3.1 document.",
        json!({"application/json": {"schema": {"type": "object", "required": ["openapi", "paths"]}}}),
    )
}

fn error() -> Operation {
    let codes: Vec<&str> = punctual_server::api::codes().collect();
    let mut operation = Operation::plain(
        "get",
        "/errors/{code}",
        "error",
        "What a code means",
        "What happened, and what to do.",
    );
    operation.parameter(json!({
        "name": "code", "in": "path", "required": true, "description": "The `code` of a problem.",
        "schema": {"type": "string", "enum": codes},
    }));
    operation.answers_text(200, "The page of the code.", "text/markdown").refuses(&["not_found"])
}

/// What each tag is about.
pub fn tags() -> Value {
    json!([
        {"name": "tasks", "description": "Make tasks, look at them, change them."},
        {"name": "workers", "description": "Reserve tasks, and report on each by its token."},
        {"name": "queues", "description": "Settings that tasks share."},
        {"name": "lanes", "description": "Tasks of one lane run one at a time, in order."},
        {"name": "notifications", "description": "Who is told of trouble."},
        {"name": "keys", "description": "Who may ask."},
        {"name": "notifications", "description": "Who is told, by webhook, of what goes wrong."},
        {"name": "server", "description": "The server itself."},
    ])
}
