//! How a failed task is tried again: a name that everyone knows, or a rule.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::nearest::nearest;
use super::span::Span;
use super::two_way::two_way;

/// How a failed task is tried again.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Retry {
    /// As this name says.
    Preset(RetryPreset),
    /// By this rule.
    Rule(RetryRule),
}

/// Retry policies that have a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RetryPreset {
    /// 25 attempts, 1 s growing to 1 h.
    Default,
    /// As Standard Webhooks recommends.
    Webhooks,
    /// 20 s growing to 120 s.
    Pagerduty,
    /// After 5 min, 1 h and 4 h.
    Schedule,
}

impl RetryPreset {
    /// All of them.
    pub const ALL: [RetryPreset; 4] =
        [RetryPreset::Default, RetryPreset::Webhooks, RetryPreset::Pagerduty, RetryPreset::Schedule];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            RetryPreset::Default => "default",
            RetryPreset::Webhooks => "webhooks",
            RetryPreset::Pagerduty => "pagerduty",
            RetryPreset::Schedule => "schedule",
        }
    }
}

two_way! {
    /// Waits that grow. What is left out is as in `default`.
    #[derive(Clone, PartialEq, Debug, Default)]
    pub struct RetryRule, twin RetryRuleTwin {
        /// The first wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub min: Option<Span>,
        /// The longest wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max: Option<Span>,
        /// What each wait is multiplied with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100))]
        pub factor: Option<f64>,
        /// How many attempts in all, the first one included.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 4_294_967_295_i64))]
        pub attempts: Option<u32>,
        /// Give up when the task has been due for so long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_age: Option<Span>,
    }
}

impl From<RetryPreset> for Retry {
    fn from(preset: RetryPreset) -> Retry {
        Retry::Preset(preset)
    }
}

impl From<RetryRule> for Retry {
    fn from(rule: RetryRule) -> Retry {
        Retry::Rule(rule)
    }
}

impl<'de> Deserialize<'de> for Retry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Retry, D::Error> {
        deserializer.deserialize_any(RetryVisitor::<RetryRule>(PhantomData))
    }
}

pub(crate) struct RetryTwin(Retry);

impl<'de> Deserialize<'de> for RetryTwin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RetryTwin, D::Error> {
        deserializer.deserialize_any(RetryVisitor::<RetryRuleTwin>(PhantomData)).map(RetryTwin)
    }
}

impl From<RetryTwin> for Retry {
    fn from(twin: RetryTwin) -> Retry {
        twin.0
    }
}

/// Reads a name, or a rule as `R` has it.
struct RetryVisitor<R>(PhantomData<R>);

impl<'de, R: Deserialize<'de> + Into<RetryRule>> Visitor<'de> for RetryVisitor<R> {
    type Value = Retry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a retry policy, or {min, max, factor, attempts, max_age}")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Retry, E> {
        if let Some(preset) = RetryPreset::ALL.into_iter().find(|preset| preset.as_str() == name) {
            return Ok(Retry::Preset(preset));
        }
        let names = RetryPreset::ALL.map(RetryPreset::as_str);
        Err(match nearest(name, names) {
            Some(nearest) => {
                E::custom(format_args!("there is no retry policy {name:?}, did you mean {nearest:?}?"))
            }
            None => E::custom(format_args!(
                "there is no retry policy of that name: use one of {}, or write the rule out",
                names.join(", ")
            )),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Retry, A::Error> {
        R::deserialize(MapAccessDeserializer::new(map)).map(|rule| Retry::Rule(rule.into()))
    }
}
