//! What time it is for a server; and, if its clock is made for tests, how it is set forward.

use serde::{Deserialize, Serialize};

use super::span::Span;
use super::time::{Moment, Time};

/// What time it is for a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Clock {
    /// What kind of clock it has.
    pub clock: ClockKind,
    /// What it shows.
    pub now: Moment,
}

/// What kind of clock a server has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ClockKind {
    /// The machine's own.
    Real,
    /// One that stands still until it is set forward.
    Virtual,
}

/// How far a virtual clock is to be set forward: one of the two.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AdvanceClock {
    /// To this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
    /// The zone of a civil time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// By so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Span>,
}

/// The clock was set forward, and everything that was due until then has had its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Advanced {
    /// What the clock shows.
    pub now: Moment,
    /// How many attempts began meanwhile.
    pub started: u64,
}
