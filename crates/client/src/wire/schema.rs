//! How the types that are written as text, or not looked into, are described in an OpenAPI document.

use std::borrow::Cow;

use utoipa::openapi::schema::{Schema, SchemaType};
use utoipa::openapi::{KnownFormat, ObjectBuilder, RefOr, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use super::json::{Base64, Json};
use super::problem::{FieldError, Problem, WrittenProblem};
use super::span::Span;
use super::time::{Moment, Time};

/// A type that is text on the wire.
macro_rules! described_as_text {
    ($type:ident, $name:literal, $format:expr, $example:literal, $about:literal) => {
        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }

        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .format($format)
                    .description(Some($about))
                    .examples([$example])
                    .into()
            }
        }
    };
}

described_as_text!(
    Moment,
    "Moment",
    Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)),
    "2026-11-16T08:00:00.000000Z",
    "A moment, in UTC with microseconds."
);
described_as_text!(
    Time,
    "Time",
    None,
    "2026-11-16T09:00:00+01:00",
    "RFC 3339 with an offset, RFC 9557 with a zone, or civil time with `timezone` beside it."
);
described_as_text!(
    Span,
    "Span",
    None,
    "PT1M30S",
    "A duration: ISO 8601, or short like `1h30m`. A number without a unit is refused."
);
described_as_text!(
    Base64,
    "Base64",
    Some(SchemaFormat::KnownFormat(KnownFormat::Byte)),
    "aGVsbG8=",
    "Bytes, as base64 with padding (RFC 4648)."
);

impl ToSchema for Json {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Json")
    }
}

impl PartialSchema for Json {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some("Any JSON.")).into()
    }
}

impl ToSchema for Problem {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Problem")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((FieldError::name().into_owned(), FieldError::schema()));
    }
}

impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        WrittenProblem::schema()
    }
}
