//! Reads a body, and says which field is at fault.

use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use super::nearest::unknown_field;
use super::problem::FieldError;

/// The body of a request that has nothing to say: none at all, or an object without fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Nothing {}

/// What is wrong with a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BodyFault {
    /// The field at fault, with the way to it (`tasks[3].http.url`); nothing if it is the body as a whole.
    pub field: Option<String>,
    /// What is wrong, and what to do.
    pub detail: String,
    /// Whether it is JSON at all. If it is, it says something that cannot be.
    pub is_json: bool,
}

/// What is said of a list that stands for an object.
pub(crate) const LIST_FOR_OBJECT: &str = "a list, where an object is expected";

/// Reads a body. What is right is read once; what is wrong is read again, to find the place.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, BodyFault> {
    refuse_list(body)?;
    serde_json::from_slice(body).map_err(|error| fault::<T>(body, &error))
}

/// A list of a type's fields would be read as well, and nobody means that.
pub(crate) fn refuse_list(body: &[u8]) -> Result<(), BodyFault> {
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(BodyFault { field: None, detail: LIST_FOR_OBJECT.to_owned(), is_json: true });
    }
    Ok(())
}

fn fault<T: DeserializeOwned>(body: &[u8], error: &serde_json::Error) -> BodyFault {
    let fault = fault_of(body, error);
    if !fault.is_json {
        return fault;
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let path = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Err(error) => error.path().to_string(),
        Ok(_) => String::new(),
    };
    let path = Some(path).filter(|path| !path.is_empty() && path != ".");
    let field = match (path, fault.field) {
        // The way leads only to where the missing one should be.
        (Some(path), Some(missing)) => Some(format!("{path}.{missing}")),
        (path, missing) => missing.or(path),
    };
    BodyFault { field, ..fault }
}

/// The field, if an error of serde complains that there is none. It has no other way to tell than its message.
fn missing_field(error: &serde_json::Error) -> Option<String> {
    let message = error.to_string();
    let (field, _) = message.strip_prefix("missing field `")?.split_once('`')?;
    Some(field.to_owned())
}

/// What is wrong, without the place; but a field that is missing is named.
pub(crate) fn fault_of(body: &[u8], error: &serde_json::Error) -> BodyFault {
    if let Err(error) = std::str::from_utf8(body) {
        let detail = format!("the body is not JSON: it is not UTF-8 from byte {} on", error.valid_up_to());
        return BodyFault { field: None, detail, is_json: false };
    }
    // Where a word is expected, anything else is told as if the text itself were at fault.
    let is_mistaken =
        error.classify() == Category::Syntax && serde_json::from_slice::<IgnoredAny>(body).is_ok();
    let is_json = is_mistaken || error.classify() == Category::Data;
    let missing = missing_field(error).filter(|_| is_json);
    let detail = match unknown_field(error) {
        _ if missing.is_some() => "is missing".to_owned(),
        _ if is_mistaken && is_half_a_character(error) => {
            "text with half a character: `\\ud800` to `\\udfff` stand only in pairs".to_owned()
        }
        _ if is_mistaken => "neither one of the words nor the object that can stand here".to_owned(),
        _ if !is_json => format!("the body is not JSON: {error}"),
        Some(unknown) => unknown.to_string(),
        None => in_words_of_the_wire(without_place(&error.to_string())),
    };
    BodyFault { field: missing, detail, is_json }
}

/// What only serde_json's message tells.
fn is_half_a_character(error: &serde_json::Error) -> bool {
    let message = error.to_string();
    message.contains("surrogate") || message.contains("hex escape")
}

/// Lines and columns say little about a body that a program has written; the field says more.
fn without_place(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message)
}

/// What is a struct here is an object there, whatever it is called.
fn in_words_of_the_wire(message: &str) -> String {
    if message.ends_with("unit variant, expected newtype variant") {
        return "a word that needs a value: write an object, {\"the word\": its value}".to_owned();
    }
    let message = &message.replace("expected a sequence", "expected a list");
    match message.rsplit_once(", expected struct ") {
        Some((found, _)) => format!("{found}, expected an object"),
        None => message.to_owned(),
    }
}

impl BodyFault {
    /// As an entry of a problem's `errors`.
    pub fn field_error(&self) -> Option<FieldError> {
        let field = self.field.clone()?;
        Some(FieldError { field, detail: self.detail.clone() })
    }
}

impl fmt::Display for BodyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{field}: {}", self.detail),
            None => f.write_str(&self.detail),
        }
    }
}

impl std::error::Error for BodyFault {}
