//! Reads what is written as text, and explains it when a number stands there instead.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Something that is written as text.
pub(crate) trait Text: FromStr<Err: fmt::Display> {
    /// What should stand there.
    const EXPECTED: &'static str;
    /// Why a number does not do.
    const NOT_A_NUMBER: &'static str;
}

pub(crate) fn read<'de, T: Text, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(TextVisitor(PhantomData))
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: Text> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<T, E> {
        Err(E::custom(T::NOT_A_NUMBER))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<T, E> {
        Err(E::custom(T::NOT_A_NUMBER))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<T, E> {
        Err(E::custom(T::NOT_A_NUMBER))
    }
}
