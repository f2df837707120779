//! How the types that are written as text, or not looked into, are described in an OpenAPI document.

use std::borrow::Cow;

use utoipa::openapi::schema::{Schema, SchemaType};
use utoipa::openapi::{KnownFormat, ObjectBuilder, RefOr, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use super::event::EventKind;
use super::json::{Base64, Json};
use super::key::Scope;
use super::problem::{FieldError, Problem, WrittenProblem};
use super::span::Span;
use super::time::{Moment, Time};

/// A type that is text on the wire.
macro_rules! described_as_text {
    ($type:ident, $format:expr, $length_max:expr, $pattern:expr, $example:literal, $about:literal) => {
        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($type))
            }
        }

        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .format($format)
                    .max_length($length_max)
                    .pattern($pattern)
                    .description(Some($about))
                    .examples([$example])
                    .into()
            }
        }
    };
}

/// Text that is only text to Rust. It has a name in the document, so that its rule is told once.
macro_rules! named_text {
    ($($type:ident, $length_max:expr, $pattern:expr, $example:literal, $about:literal;)*) => {
        $(
            #[doc = $about]
            pub(crate) struct $type;
            described_as_text!($type, None, $length_max, Some($pattern), $example, $about);
        )*
    };
}

/// A day, a time of day, and perhaps an offset and a zone.
const TIME: &str = concat!(
    "^(19[7-9][0-9]|[2-9][0-9]{3})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    "[Tt ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,9})?)?",
    r"([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])?(\[[A-Za-z0-9_/+:-]{1,64}\])?$"
);

/// Weeks, or days, hours, minutes and seconds; or short.
const SPAN: &str = concat!(
    "^(P[0-9]{1,9}[WD]",
    "|P([0-9]{1,9}D)?T([0-9]{1,9}H)?([0-9]{1,9}M)?[0-9]{1,9}([.][0-9]{1,9})?S",
    "|P([0-9]{1,9}D)?T([0-9]{1,9}H)?[0-9]{1,9}M|P([0-9]{1,9}D)?T[0-9]{1,9}H",
    "|([0-9]{1,9}w)?([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?[0-9]{1,9}(s|ms|us)",
    "|([0-9]{1,9}w)?([0-9]{1,9}d)?([0-9]{1,9}h)?[0-9]{1,9}m",
    "|([0-9]{1,9}w)?([0-9]{1,9}d)?[0-9]{1,9}h|([0-9]{1,9}w)?[0-9]{1,9}d|[0-9]{1,9}w)$"
);

described_as_text!(
    Moment,
    Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)),
    None,
    None::<&str>,
    "2026-11-16T08:00:00.000000Z",
    "A moment, in UTC with microseconds."
);
described_as_text!(
    Time,
    None,
    Some(128),
    Some(TIME),
    "2026-11-16T09:00:00+01:00",
    "RFC 3339 with an offset, RFC 9557 with a zone, or civil time with `timezone` beside it."
);
described_as_text!(
    Span,
    None,
    Some(128),
    Some(SPAN),
    "PT1M30S",
    "A duration: ISO 8601, or short like `1h30m`. A number without a unit is refused."
);
described_as_text!(
    Base64,
    Some(SchemaFormat::KnownFormat(KnownFormat::Byte)),
    None,
    Some("^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"),
    "aGVsbG8=",
    "Bytes, as base64 with padding (RFC 4648)."
);

named_text! {
    Id, None, "^[0-9a-hjkmnp-tv-z]{40}$", "0000e8r00000000g1pq40j9k3r50000000000041", "A task's id.";
    QueueName, Some(100), "^[A-Za-z0-9_.-]{1,100}$", "mail", "A queue's name: letters, digits, `_`, `-` and `.`.";
    Token, None, "^[0-9]{1,20}[.][0-9]{1,10}$", "1.1", "Names an attempt. It comes with the task.";
    Url, Some(2_048), r"^[hH][tT][tT][pP][sS]?://[^\s\\#@]+$", "http://127.0.0.1:8000/hook", "An address to be called: http or https, without user, password and fragment.";
    Method, Some(32), "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$", "POST", "Any HTTP method but CONNECT.";
    SigningSecret, Some(100), "^(whsec_[A-Za-z0-9+/]{32,86}={0,2}|whsk_([A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{86}==))$", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "In base64, as Standard Webhooks writes them: a secret of 24 to 64 bytes (`whsec_`), or the seed of an ed25519 key (`whsk_`), with or without the public key behind it.";
    PublicKey, Some(49), "^whpk_[A-Za-z0-9+/]{43}=$", "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "An ed25519 public key in base64, as Standard Webhooks writes it.";
    StatusPattern, Some(3), "^[1-5]([0-9]{2}|xx)$", "2xx", "A status, or `2xx` for a whole class.";
}

/// A type that is one of some words. What serde is told by a macro, the derive does not see.
macro_rules! described_as_word {
    ($type:ident, $about:literal) => {
        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($type))
            }
        }

        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .enum_values(Some($type::ALL.iter().map(|word| word.as_str())))
                    .description(Some($about))
                    .into()
            }
        }
    };
}

described_as_word!(Scope, "What a key may do.");
described_as_word!(EventKind, "What can happen.");

/// Headers of a call.
pub(crate) struct Headers;

impl ToSchema for Headers {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Headers")
    }
}

impl PartialSchema for Headers {
    fn schema() -> RefOr<Schema> {
        let name =
            ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"));
        let value = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[\\t\\x20-\\x7e]*$"));
        ObjectBuilder::new()
            .schema_type(Type::Object)
            .property_names(Some(name))
            .additional_properties(Some(value))
            .max_properties(Some(32))
            .description(Some("Names and values, 8 KiB in all. What belongs to the connection, or is sent by Punctual itself, cannot be set."))
            .examples([serde_json::json!({"x-customer": "7"})])
            .into()
    }
}

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
