//! Looking at tasks and changing them: one by its id, or all that a filter finds.

use serde::{Deserialize, Serialize};

use super::change::Change;
use super::json::{Base64, Json};
use super::problem::Problem;
use super::retry::Retry;
#[cfg(feature = "openapi")]
use super::schema::{Id, Url};
use super::span::Span;
use super::task::{Http, State, Task};
use super::time::{Moment, Time};
use super::two_way::{object, present};

/// What is to change about a task: PATCH. Left out, a field stays; `null` takes it away.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Patch {
    /// It is due then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The zone of the times that do not say where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "Europe/Paris"))]
    pub timezone: Option<String>,
    /// It is due so long from now, in place of `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// What it carries. `null` is JSON too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Json>,
    /// What it carries: bytes, in place of `payload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<Base64>,
    /// Call this, whatever was to be done before.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub http: Option<Http>,
    /// This handler runs it, whatever was to be done before.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub handler: Option<String>,
    /// How it is tried again.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Retry>))]
    pub retry: Change<Retry>,
    /// A soft deadline.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>))]
    pub start_by: Change<Time>,
    /// A hard one.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>))]
    pub expires_at: Change<Time>,
    /// How long an attempt may take.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Span>))]
    pub timeout: Change<Span>,
    /// A URL that is sent the result.
    #[serde(default, skip_serializing_if = "Change::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Url>))]
    pub callback: Change<String>,
}

/// How much of a task is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum View {
    /// Not what it carries.
    #[default]
    Basic,
    /// Everything.
    Full,
}

/// The query of a request that looks at one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ViewQuery {
    /// How much is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
}

/// The query of a request for a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResultQuery {
    /// How long to wait for the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
}

/// How a task ended; only `state` as long as it has not.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskResult {
    /// How far it has come.
    pub state: State,
    /// What came out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub result: Option<Json>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The answer to a cancellation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cancelled {
    /// How the task stands: `cancelled`.
    pub state: State,
}

/// The query of a request that lists tasks.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskQuery {
    /// Only of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Only of this lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Only of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Only in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Not due before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Due before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
    /// How many to a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000))]
    pub limit: Option<u32>,
    /// Where the page begins: `next` of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// How much of each is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
}

impl TaskQuery {
    /// The tasks that it means, without the page.
    pub fn into_filter(self) -> Filter {
        let TaskQuery { queue, lane, name, state, from, to, .. } = self;
        Filter { queue, lane, name, state, from, to }
    }
}

impl From<Filter> for TaskQuery {
    fn from(filter: Filter) -> TaskQuery {
        let Filter { queue, lane, name, state, from, to } = filter;
        TaskQuery { queue, lane, name, state, from, to, ..TaskQuery::default() }
    }
}

/// Which tasks are meant: those that all of this is true of.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Filter {
    /// Of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Of this lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// In this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Not due before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Due before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
}
object!(Filter);

/// A page of tasks.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskPage {
    /// In order. A page may be short and still have a next one.
    pub tasks: Vec<Task>,
    /// Where the next page begins; `null` on the last.
    #[serde(default)]
    pub next: Option<String>,
}

/// A change to all tasks that a filter finds: `:cancel`, `:retry`, `:run`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ByFilter {
    /// Which tasks. An empty one means all of them, but it must be said.
    pub filter: Filter,
    /// Only count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// How many at most in this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000))]
    pub limit: Option<u32>,
    /// Where to go on: `next` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Another time for all tasks that a filter finds: `:move`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MoveByFilter {
    /// Which tasks. An empty one means all of them, but it must be said.
    pub filter: Filter,
    /// Only count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// How many at most in this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000))]
    pub limit: Option<u32>,
    /// Where to go on: `next` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// They are due then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The zone of `at`, if it does not say where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// They are due so long from now, in place of `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
}

/// What a change by filter has done.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Changed {
    /// How many tasks the filter found.
    pub matched: u64,
    /// How many were changed; with `dry_run`, none.
    pub changed: u64,
    /// Why some were not; the first hundred.
    #[serde(default)]
    pub problems: Vec<TaskProblem>,
    /// Where to go on; `null` when all is done.
    #[serde(default)]
    pub next: Option<String>,
}

/// Why a task was not changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskProblem {
    /// Which task.
    pub id: String,
    /// Why.
    pub problem: Problem,
}

/// How a task stands after a change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Progress {
    /// Which task.
    #[cfg_attr(feature = "openapi", schema(value_type = Id))]
    pub id: String,
    /// How far it has come.
    pub state: State,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Moment>,
}

/// The query of a request that asks for pages of anything else.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PageQuery {
    /// How many to a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000))]
    pub limit: Option<u32>,
    /// Where the page begins: `next` of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
