//! What workers say: they reserve tasks, and report on each by its token.

use serde::{Deserialize, Serialize};

use super::json::{Base64, Json};
use super::problem::Problem;
#[cfg(feature = "openapi")]
use super::schema::{Id, Token};
use super::span::Span;
use super::task::State;
use super::time::Moment;
use super::two_way::present;

/// Hand me tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reserve {
    /// Who asks, for people who look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// How many at most, 1 to 1,000; one if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000))]
    pub max: Option<u32>,
    /// How long to wait for the first, up to 30 s; not at all if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
    /// The time to run of each; as the task and its queue say if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttr: Option<Span>,
}

/// Tasks for a worker.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reserved {
    /// In the order in which they should be begun.
    pub tasks: Vec<ReservedTask>,
}

/// A task that a worker has.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReservedTask {
    /// Which task.
    #[cfg_attr(feature = "openapi", schema(value_type = Id))]
    pub id: String,
    /// Names this attempt in all reports on it.
    #[cfg_attr(feature = "openapi", schema(value_type = Token))]
    pub token: String,
    /// The queue it is in.
    pub queue: String,
    /// What it carries.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Json>,
    /// What it carries, if that is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<Base64>,
    /// The first is 1.
    pub attempt: u32,
    /// When it was due.
    pub at: Moment,
    /// Its lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// After this, the token is late.
    pub ttr_until: Moment,
    /// How long that is from now on: clocks of two machines seldom agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttr: Option<Span>,
    /// The trace that the task was made in, as W3C Trace Context writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// What others keep with that trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

/// A report, and the same as an item of a batch.
macro_rules! report {
    (
        $(#[$about:meta])*
        $name:ident, $item:ident { $( $(#[$about_field:meta])* $field:ident: $type:ty, )* }
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub struct $name {
            $( $(#[$about_field])* pub $field: $type, )*
        }

        #[doc = concat!("[`", stringify!($name), "`], as an item of a batch.")]
        #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub struct $item {
            /// Which task.
            pub id: String,
            $( $(#[$about_field])* pub $field: $type, )*
        }

        impl $item {
            /// The task's id, and the report alone.
            pub fn into_parts(self) -> (String, $name) {
                (self.id, $name { $( $field: self.$field, )* })
            }
        }

        impl $name {
            /// As an item of a batch.
            pub fn of(self, id: impl Into<String>) -> $item {
                $item { id: id.into(), $( $field: self.$field, )* }
            }
        }
    };
}

report! {
    /// It is done.
    Ack, AckItem {
        /// Names the attempt.
        #[cfg_attr(feature = "openapi", schema(value_type = Token))]
        token: String,
        /// What came out.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        result: Option<Json>,
    }
}

report! {
    /// It failed: again as the retry policy says.
    Nack, NackItem {
        /// Names the attempt.
        #[cfg_attr(feature = "openapi", schema(value_type = Token))]
        token: String,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Not again before this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay: Option<Span>,
    }
}

report! {
    /// More time, from now on.
    Touch, TouchItem {
        /// Names the attempt.
        #[cfg_attr(feature = "openapi", schema(value_type = Token))]
        token: String,
        /// How much; as much as at first if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttr: Option<Span>,
    }
}

report! {
    /// Back to where it was. It was not an attempt.
    Release, ReleaseItem {
        /// Names the attempt.
        #[cfg_attr(feature = "openapi", schema(value_type = Token))]
        token: String,
    }
}

report! {
    /// Give it up.
    Bury, BuryItem {
        /// Names the attempt.
        #[cfg_attr(feature = "openapi", schema(value_type = Token))]
        token: String,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    }
}

report! {
    /// Try a dead or blocked one again.
    Kick, KickItem {}
}

/// The answer to a touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Touched {
    /// After this, the token is late.
    pub ttr_until: Moment,
    /// How long that is from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttr: Option<Span>,
}

/// Many reports in one request.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Batch<T> {
    /// In order; up to 10,000.
    #[cfg_attr(feature = "openapi", schema(max_items = 10_000))]
    pub tasks: Vec<T>,
}

/// What became of one report of a batch: `state` (for a touch, `ttr_until`), or `problem`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportResult {
    /// What the answer's status would have been, had it come alone.
    pub status: u16,
    /// Which task.
    pub id: String,
    /// How far it has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Moment>,
    /// After this, the token is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttr_until: Option<Moment>,
    /// How long that is from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttr: Option<Span>,
    /// Why nothing was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// The query of a request that looks at what is next in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PeekQuery {
    /// How many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000))]
    pub limit: Option<u32>,
}
