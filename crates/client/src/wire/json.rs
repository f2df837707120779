//! What a task carries, byte for byte: JSON that nobody has looked into, or bytes as base64.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Any JSON, kept as it was written: no number loses a digit, no field its place.
///
/// Two are equal when they are written alike, not when they mean the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Anything that serde can write.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Json, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Json)
    }

    /// JSON that is written already; an error if it is not JSON.
    pub fn from_text(text: impl Into<String>) -> Result<Json, serde_json::Error> {
        RawValue::from_string(text.into()).map(Json)
    }

    /// What it says.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// As it was written, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        Box::<str>::from(self.0).into_boxed_bytes().into_vec()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Bytes, written as base64 (RFC 4648, with padding).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Base64(pub Vec<u8>);

impl fmt::Debug for Base64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Base64({})", STANDARD.encode(&self.0))
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Base64, D::Error> {
        deserializer.deserialize_str(Base64Visitor)
    }
}

struct Base64Visitor;

impl Visitor<'_> for Base64Visitor {
    type Value = Base64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes as base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Base64, E> {
        STANDARD
            .decode(text)
            .map(Base64)
            .map_err(|error| E::custom(format_args!("not base64 with padding (RFC 4648): {error}")))
    }
}
