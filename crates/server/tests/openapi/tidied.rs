//! Schemas as they come from the types, put into the words of a document that is not about Rust.

use serde_json::{Map, Value, json};

/// A schema, and all in it.
pub fn tidied(schema: Value) -> Value {
    match schema {
        Value::Object(schema) => {
            let schema = schema.into_iter().map(|(name, value)| (name, tidied(value))).collect();
            or_null(without_rust(schema))
        }
        Value::Array(items) => Value::Array(items.into_iter().map(tidied).collect()),
        other => other,
    }
}

fn without_rust(mut schema: Map<String, Value>) -> Map<String, Value> {
    // Only text is a description: a field may have that name, too.
    if let Some(Value::String(about)) = schema.get_mut("description") {
        let text = about.split("\n\n```").next().unwrap_or_default();
        *about = text.replace("[`", "`").replace("`]", "`").replace('\n', " ");
    }
    if let Some(Value::String(format)) = schema.get_mut("format") {
        *format = format.replace("u-int", "uint");
    }
    // A variant with fields takes these and no others.
    if let Some(Value::Array(kinds)) = schema.get_mut("oneOf") {
        for kind in kinds.iter_mut().filter(|kind| kind["properties"].is_object()) {
            kind["additionalProperties"] = json!(false);
        }
    }
    schema
}

/// What may be left out may be `null`, too: told shortly, and with the description where one looks for it.
fn or_null(mut schema: Map<String, Value>) -> Value {
    let Some(Value::Array(kinds)) = schema.get("oneOf") else { return Value::Object(schema) };
    let [Value::Object(null), Value::Object(kind)] = &kinds[..] else { return Value::Object(schema) };
    if null.get("type") != Some(&json!("null")) {
        return Value::Object(schema);
    }
    let mut kind = kind.clone();
    let about = schema.remove("description").or_else(|| kind.remove("description"));
    // `null` is JSON.
    let is_any = kind.get("$ref") == Some(&json!("#/components/schemas/Json"));
    let mut whole =
        if is_any { kind } else { Map::from_iter([("anyOf".to_owned(), json!([kind, {"type": "null"}]))]) };
    whole.extend(about.map(|about| ("description".to_owned(), about)));
    Value::Object(whole)
}

/// As a parameter of a query, which has no `null`: what is not there is left out.
pub fn without_null(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return schema };
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = &kinds[..] {
            let kind = kind.clone();
            schema.insert("type".to_owned(), kind);
        }
    }
    match schema.get("anyOf") {
        Some(Value::Array(kinds)) => kinds.first().cloned().unwrap_or_default(),
        _ => Value::Object(schema),
    }
}
