//! The document that is served is what the wire types say today.

use std::path::Path;

use crate::document::document;

#[test]
fn the_document_is_what_the_types_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let written = format!("{}\n", serde_json::to_string_pretty(&document()).unwrap());
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        return std::fs::write(&path, written).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    for (number, (kept, now)) in kept.lines().zip(written.lines()).enumerate() {
        assert_eq!(
            kept,
            now,
            "line {} of docs/openapi.json: run scripts/openapi and look at the difference",
            number + 1
        );
    }
    assert_eq!(kept, written, "run scripts/openapi");
}

#[test]
fn every_name_that_is_referred_to_is_there() {
    let document = document();
    let text = document.to_string();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let names: Vec<&str> =
        text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for name in &names {
        assert!(schemas.contains_key(*name), "{name} is referred to, and not described");
    }
    for name in schemas.keys() {
        assert!(names.contains(&name.as_str()), "{name} is described, and nobody refers to it");
    }
}
