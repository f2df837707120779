//! A list where anything else is expected is refused, with the place.
//!
//! What serde derives for a struct also reads a list of its fields' values, and for an enum calls a list no JSON. The
//! document of the API says what can stand where, so that this test finds every place, those of tomorrow too.

use serde_json::{Map, Value, json};

use crate::world::World;

#[tokio::test]
async fn a_list_is_refused_wherever_something_else_is_expected() {
    let document: Value = serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap();
    let world = World::new().await;
    let task = world.ask("POST", "/v1/queues/q/tasks", r#"{"delay": "1h"}"#).await.json();
    let (mut tried, mut wrong) = (0, Vec::new());
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let path = path.replace("{queue}", "q").replace("{name}", "n");
            let path = path.replace("{id}", task["id"].as_str().unwrap());
            for (place, body) in with_a_list(&document, schema) {
                let answer = world.ask(&method.to_uppercase(), &path, &body.to_string()).await.json();
                if !is_refused(&answer, &place) {
                    wrong.push(format!("{method} {path} {body}: {answer}"));
                }
                tried += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 100, "only {tried} places were found: is the document read as it is written?");
    world.stop().await;
}

/// Whether an answer says that there is a list, and where.
fn is_refused(answer: &Value, place: &str) -> bool {
    // Items of a batch are answered each for itself.
    let (problem, place) = match place.strip_prefix("tasks[0]") {
        Some(place) => (&answer["results"][0]["problem"], place.trim_start_matches('.')),
        None => (answer, place),
    };
    let detail = problem["detail"].as_str().unwrap_or_default();
    let says_so =
        ["a list, where an object is expected", "invalid type: sequence, expected", "one of the words"];
    says_so.iter().any(|words| detail.contains(words))
        && problem["errors"][0]["field"].as_str().unwrap_or_default() == place
}

/// Bodies in which everything is well but one list, each with its place.
fn with_a_list(document: &Value, schema: &Value) -> Vec<(String, Value)> {
    let schema = resolved(document, schema);
    let alternatives = ["oneOf", "anyOf"].iter().filter_map(|key| schema[key].as_array()).flatten();
    let mut bodies: Vec<_> = alternatives.flat_map(|schema| with_a_list(document, schema)).collect();
    if is_a(schema, "array") {
        let items = with_a_list(document, &schema["items"]).into_iter();
        bodies.extend(items.map(|(place, item)| (joined("[0]", &place), json!([item]))));
    } else if !schema["type"].is_null() {
        bodies.push((String::new(), json!([])));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        for (place, value) in with_a_list(document, property) {
            let body = Map::from_iter([(name.clone(), value)]);
            bodies.push((joined(name, &place), Value::Object(body)));
        }
    }
    bodies.sort_by(|(left, _), (right, _)| left.cmp(right));
    bodies.dedup();
    bodies
}

fn joined(outer: &str, inner: &str) -> String {
    match inner {
        "" => outer.to_owned(),
        inner if inner.starts_with('[') => format!("{outer}{inner}"),
        inner => format!("{outer}.{inner}"),
    }
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|to| to.strip_prefix("#/components/schemas/"));
    name.map_or(schema, |name| &document["components"]["schemas"][name])
}

fn is_a(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|it| it == kind),
        one => one == kind,
    }
}
