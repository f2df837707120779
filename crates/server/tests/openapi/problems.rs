//! Answers with a problem: each set of codes is described once.

use std::collections::BTreeMap;

use punctual_server::api::Failure;
use serde_json::{Value, json};

/// Answers with problems, by their names in the document.
#[derive(Default)]
pub struct Problems(pub BTreeMap<String, Value>);

impl Problems {
    /// The answer with one of these codes.
    pub fn refer(&mut self, status: u16, codes: &[&'static str]) -> Value {
        let name = format!("{status}-{}", codes.join("-"));
        self.0.entry(name.clone()).or_insert_with(|| problem(status, codes));
        json!({"$ref": format!("#/components/responses/{name}")})
    }
}

/// Codes by their status.
pub fn by_status(codes: &[&'static str]) -> BTreeMap<u16, Vec<&'static str>> {
    let mut codes = codes.to_vec();
    codes.sort_unstable();
    codes.dedup();
    let mut sorted: BTreeMap<u16, Vec<&'static str>> = BTreeMap::new();
    for code in codes {
        sorted.entry(Failure::new(code, "").0.status).or_default().push(code);
    }
    sorted
}

fn problem(status: u16, codes: &[&'static str]) -> Value {
    let titles = codes.iter().map(|code| format!("- `{code}`: {}.", Failure::new(code, "").0.title));
    let mut answer = json!({
        "description": titles.collect::<Vec<_>>().join("\n"),
        "content": {"application/problem+json": {"schema": {
            "allOf": [
                {"$ref": "#/components/schemas/Problem"},
                {"properties": {"status": {"const": status}, "code": {"enum": codes}}},
            ]
        }}}
    });
    if matches!(status, 429 | 503) {
        let about = "Seconds after which the request may be made again.";
        let schema = json!({"type": "string", "pattern": "^[0-9]+$"});
        answer["headers"] = json!({"Retry-After": {"description": about, "schema": schema}});
    }
    answer
}
