//! The whole document, put together from its operations.

use std::collections::BTreeMap;

use punctual_client::wire;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::operation::{Operation, Schemas};
use super::tidied::tidied;
use super::{keys, operating, queues, rest, tasks, work};

const ABOUT: &str = "Tasks that run when they are due: calls at a given time, and work for those who come for it. \
    Bodies are JSON. Times go out in UTC, durations as ISO 8601. Unknown fields are refused. \
    Errors are problem details (RFC 9457) whose `code` never changes its meaning; `type` is the path of the code's page.";

/// All operations.
pub fn operations() -> Vec<Operation> {
    [tasks::all(), work::all(), queues::all(), keys::all(), operating::all(), rest::all()]
        .into_iter()
        .flatten()
        .collect()
}

/// The document.
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut problems = BTreeMap::new();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for mut operation in operations() {
        schemas.append(&mut operation.schemas);
        let (path, method) = (operation.path, operation.method);
        let there = paths.entry(path).or_default().insert(method.to_owned(), operation.write());
        problems.append(&mut operation.problems.0);
        assert_eq!(there, None, "{method} {path} is described once");
    }
    let mut more =
        vec![(wire::Problem::name().into_owned(), <wire::Problem as utoipa::PartialSchema>::schema())];
    <wire::Problem as ToSchema>::schemas(&mut more);
    for (name, schema) in more {
        schemas.insert(name, tidied(serde_json::to_value(schema).expect("a schema can be written")));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Punctual",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:8700", "description": "Where a server listens if nothing is said."}],
        "tags": rest::tags(),
        "security": [{}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": problems,
            "securitySchemes": {"key": {
                "type": "http", "scheme": "bearer",
                "description": "An API key. On loopback the server works without keys.",
            }},
        },
    })
}
