//! Queues and lanes: their settings, and how they stand.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::change::Change;
use super::retry::{Retry, RetryTwin};
#[cfg(feature = "openapi")]
use super::schema::{Headers, Method, PublicKey, SigningSecret, StatusPattern, Url};
use super::select::View;
use super::span::Span;
use super::task::{State, Task};
use super::time::Moment;
use super::two_way::{lenient, lenient_option, two_way};

/// Settings of a queue. PUT takes all of them, and what is left out or `null` is the default; PATCH takes some, and
/// only `null` is the default.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueSettings {
    /// Who does its tasks.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<QueueTarget>))]
    pub target: Change<QueueTarget>,
    /// How a failed task is tried again.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Retry>))]
    pub retry: Change<Retry>,
    /// What happens when the attempts run out.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<OnExhausted>))]
    pub on_exhausted: Change<OnExhausted>,
    /// 0 goes first, 9 last. Decided when the queue is made.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u8>, maximum = 9))]
    pub priority: Change<u8>,
    /// All tasks in one partition, so that the limits are exact in a cluster. Decided when the queue is made.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub pinned: Change<bool>,
    /// How many attempts may run at once.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>, minimum = 1, maximum = 4_294_967_295_i64))]
    pub concurrency: Change<u32>,
    /// How many attempts may start in a time.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Rate>))]
    pub rate: Change<Rate>,
    /// How long an attempt may take; for workers, their time to run.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Span>))]
    pub timeout: Change<Span>,
    /// No two copies of a task at once, even when a node is lost.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub exclusive: Change<bool>,
    /// What happens to a task whose time has passed when it comes.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Past>))]
    pub past: Change<Past>,
    /// How long ended tasks are kept.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Retention>))]
    pub retention: Change<Retention>,
    /// What calls are signed with, the newest first. Never shown again.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<SigningSecret>>))]
    pub secrets: Change<Vec<String>>,
    /// Which answers of a called server mean what.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Success>))]
    pub success: Change<Success>,
}

/// Who does the tasks of a queue: `"worker"`, `{"http": {…}}` or `{"handler": name}`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum QueueTarget {
    /// Workers that reserve them.
    #[default]
    Worker,
    /// The server of a URL.
    Http(HttpTarget),
    /// A handler in the program that embeds Punctual.
    Handler(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QueueTargetTwin {
    Worker,
    Http(HttpTargetTwin),
    Handler(String),
}

impl From<QueueTargetTwin> for QueueTarget {
    fn from(twin: QueueTargetTwin) -> QueueTarget {
        match twin {
            QueueTargetTwin::Worker => QueueTarget::Worker,
            QueueTargetTwin::Http(http) => QueueTarget::Http(http.into()),
            QueueTargetTwin::Handler(name) => QueueTarget::Handler(name),
        }
    }
}

two_way! {
    /// Where the tasks of a queue go. Their payload is sent.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct HttpTarget, twin HttpTargetTwin {
        /// Where.
        #[cfg_attr(feature = "openapi", schema(value_type = Url))]
        pub url: String,
        /// POST if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<Method>))]
        pub method: Option<String>,
        /// Besides the ones that Punctual sends.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        #[cfg_attr(feature = "openapi", schema(value_type = Headers))]
        pub headers: BTreeMap<String, String>,
    }
}

two_way! {
    /// So many starts in so long.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Rate, twin RateTwin {
        /// How many.
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000_000))]
        pub starts: u32,
        /// In how long.
        pub per: Span,
        /// How many at once after a rest; `starts` if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000))]
        pub burst: Option<u32>,
    }
}

two_way! {
    /// How long ended tasks are kept. In a PATCH, what is left out stays.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Retention, twin RetentionTwin {
        /// Those that ended in any way but dead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub succeeded: Option<Span>,
        /// Those that were given up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub dead: Option<Span>,
        /// How long a unique key is remembered after its task has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub identities: Option<Span>,
        /// How many bytes of ended tasks a node keeps: beyond that the oldest go first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub bytes: Option<u64>,
    }
}

two_way! {
    /// Which answers of a called server mean what. In a PATCH, what is left out stays.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct Success, twin SuccessTwin {
        /// These are success: `"204"`, or `"2xx"` for a whole class.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<StatusPattern>>))]
        pub codes: Option<Vec<String>>,
        /// These end all attempts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<StatusPattern>>))]
        pub give_up: Option<Vec<String>>,
        /// When 409 means that it was done before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub conflict: Option<Conflict>,
    }
}

/// When the answer 409 means that a task was done before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Conflict {
    /// When it may have been called before.
    #[default]
    Repeated,
    /// Always.
    Always,
    /// Never: it is a failure.
    Never,
}

/// What happens to a task whose attempts have run out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum OnExhausted {
    /// In a lane, it holds the lane until a person decides.
    #[default]
    Block,
    /// It is dead, and its lane goes on.
    DeadLetter,
}

/// What happens to a task whose time has passed when it comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Past {
    /// It is refused.
    #[default]
    Reject,
    /// It is due now.
    RunNow,
}

/// A queue as it is answered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Nothing starts while this is set.
    #[serde(default)]
    pub paused: bool,
    /// Who does its tasks.
    #[serde(deserialize_with = "lenient::<_, QueueTargetTwin, _>")]
    pub target: QueueTarget,
    /// How a failed task is tried again.
    #[serde(deserialize_with = "lenient::<_, RetryTwin, _>")]
    pub retry: Retry,
    /// What happens when the attempts run out.
    pub on_exhausted: OnExhausted,
    /// 0 goes first, 9 last.
    #[cfg_attr(feature = "openapi", schema(maximum = 9))]
    pub priority: u8,
    /// Whether all its tasks are in one partition.
    #[serde(default)]
    pub pinned: bool,
    /// How many attempts may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How many attempts may start in a time.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient_option::<_, RateTwin, _>"
    )]
    pub rate: Option<Rate>,
    /// How long an attempt may take.
    pub timeout: Span,
    /// No two copies of a task at once, even when a node is lost.
    #[serde(default)]
    pub exclusive: bool,
    /// What happens to a task whose time has passed when it comes.
    pub past: Past,
    /// How long ended tasks are kept.
    #[serde(deserialize_with = "lenient::<_, RetentionTwin, _>")]
    pub retention: Retention,
    /// How many secrets it signs with.
    #[serde(default)]
    pub secrets: usize,
    /// What its signatures are checked with, of those secrets that are ed25519 keys, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<PublicKey>))]
    pub public_keys: Vec<String>,
    /// Which answers of a called server mean what.
    #[serde(deserialize_with = "lenient::<_, SuccessTwin, _>")]
    pub success: Success,
}

/// A page of queues.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueuePage {
    /// In order of their names.
    pub queues: Vec<Queue>,
    /// Where the next page begins; `null` on the last.
    #[serde(default)]
    pub next: Option<String>,
}

/// How a queue stands.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueStats {
    /// Its name.
    pub queue: String,
    /// Nothing starts while this is set.
    #[serde(default)]
    pub paused: bool,
    /// How many tasks wait: for their time, for a retry, for a person, or for whatever keeps them from starting. Left out
    /// while those of earlier runs are still being counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// How many tasks are in each state in which they have not ended. Those in which they wait are left out while they
    /// are still being counted.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub tasks: BTreeMap<State, u64>,
    /// What came and went since the server began.
    #[serde(default)]
    pub flow: Flow,
    /// When the first task is due, or was, that nobody works on yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Moment>,
    /// How late that one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Span>,
}

/// What came and went since the server began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Flow {
    /// Tasks that were made.
    #[serde(default)]
    pub created: u64,
    /// Tasks that succeeded.
    #[serde(default)]
    pub succeeded: u64,
    /// Tasks that were given up.
    #[serde(default)]
    pub dead: u64,
    /// Tasks that were cancelled.
    #[serde(default)]
    pub cancelled: u64,
    /// Tasks that were not started in time.
    #[serde(default)]
    pub expired: u64,
}

/// The query of a request that lists lanes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneQuery {
    /// Only of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Only those whose head waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<bool>,
    /// How many to a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000))]
    pub limit: Option<u32>,
    /// Where the page begins: `next` of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// How much of each head is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
}

/// A lane and its head.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lane {
    /// Its queue.
    pub queue: String,
    /// Its name.
    pub lane: String,
    /// Whether its head waits for a person.
    #[serde(default)]
    pub blocked: bool,
    /// The task that is next in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Task>,
}

/// A page of lanes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LanePage {
    /// The lanes.
    pub lanes: Vec<Lane>,
    /// Where the next page begins; `null` on the last.
    #[serde(default)]
    pub next: Option<String>,
}

/// Which lane is meant: `:release` tries its head again, `:skip` cancels it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneName {
    /// Its queue.
    pub queue: String,
    /// Its name.
    pub lane: String,
}
