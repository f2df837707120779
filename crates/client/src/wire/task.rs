//! Tasks: as they are asked for, and as they are answered.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::json::{Base64, Json};
use super::retry::{Retry, RetryTwin};
#[cfg(feature = "openapi")]
use super::schema::{Headers, Id, Method, Url};
use super::span::Span;
use super::time::{Moment, Time};
use super::two_way::{lenient_option, present, two_way};

/// A task to be scheduled.
///
/// ```
/// use std::time::Duration;
/// use punctual_client::wire::NewTask;
///
/// let task = NewTask::new().payload(&42)?.after(Duration::from_secs(90)).lane("customer-7");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewTask {
    /// When it is due; now if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The zone of the times that do not say where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "Europe/Paris"))]
    pub timezone: Option<String>,
    /// So long from now, in place of `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Tasks of one lane run one at a time, in order of their time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub lane: Option<String>,
    /// The same key, lane and time again is the same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub unique_key: Option<String>,
    /// What happens when that task is there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_conflict: Option<OnConflict>,
    /// A name to find it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub name: Option<String>,
    /// What it carries: any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Json>,
    /// What it carries: bytes, in place of `payload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<Base64>,
    /// Call this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
    /// Run by the program that embeds Punctual and has this handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub handler: Option<String>,
    /// How it is tried again, when not as its queue says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// 0 goes first, 9 last; not with a lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(maximum = 9))]
    pub priority: Option<u8>,
    /// Among tasks that could start, the nearest deadline goes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_by: Option<Time>,
    /// Not started by then, it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// How long an attempt may take; for workers, their time to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// A URL that is sent the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Url>))]
    pub callback: Option<String>,
}

impl NewTask {
    /// A task that is due now and carries nothing.
    pub fn new() -> NewTask {
        NewTask::default()
    }

    /// What it carries: anything that serde can write as JSON.
    pub fn payload(mut self, payload: &(impl Serialize + ?Sized)) -> Result<NewTask, serde_json::Error> {
        self.payload = Some(Json::of(payload)?);
        Ok(self)
    }

    /// What it carries, byte for byte.
    pub fn payload_bytes(mut self, payload: impl Into<Vec<u8>>) -> NewTask {
        self.payload_base64 = Some(Base64(payload.into()));
        self
    }

    /// Due at that time: a [`Time`], a [`Moment`] or a [`std::time::SystemTime`].
    pub fn at(mut self, at: impl Into<Time>) -> NewTask {
        self.at = Some(at.into());
        self
    }

    /// Due after that long.
    pub fn after(mut self, delay: Duration) -> NewTask {
        self.delay = Some(delay.into());
        self
    }

    /// Tasks of one lane run one at a time, in order of their time.
    pub fn lane(mut self, lane: impl Into<String>) -> NewTask {
        self.lane = Some(lane.into());
        self
    }

    /// The same key, lane and time again is the same task.
    pub fn unique_key(mut self, key: impl Into<String>) -> NewTask {
        self.unique_key = Some(key.into());
        self
    }

    /// A name to find it by.
    pub fn name(mut self, name: impl Into<String>) -> NewTask {
        self.name = Some(name.into());
        self
    }

    /// Call this.
    pub fn http(mut self, http: Http) -> NewTask {
        self.http = Some(http);
        self
    }

    /// How it is tried again, when not as its queue says.
    pub fn retry(mut self, retry: impl Into<Retry>) -> NewTask {
        self.retry = Some(retry.into());
        self
    }
}

two_way! {
    /// A call to be made.
    #[derive(Clone, PartialEq, Debug, Default)]
    pub struct Http, twin HttpTwin {
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
        /// What is sent: a string as its text, everything else as JSON. Without it, the payload is sent, as JSON.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        pub body: Option<Json>,
        /// What is sent: bytes, in place of `body`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub body_base64: Option<Base64>,
        /// How long the call may take.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub timeout: Option<Span>,
    }
}

impl Http {
    /// A POST to that address.
    pub fn post(url: impl Into<String>) -> Http {
        Http { url: url.into(), ..Http::default() }
    }
}

/// What happens when a task of the same unique key, lane and time is there already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum OnConflict {
    /// The new one takes its place.
    #[default]
    Replace,
    /// The old one stays.
    Keep,
    /// The old one stays, and it is an error.
    Error,
}

/// A task as it is answered. What is not there is left out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Task {
    /// What to ask for it by.
    #[cfg_attr(feature = "openapi", schema(value_type = Id))]
    pub id: String,
    /// The queue it is in.
    pub queue: String,
    /// How far it has come.
    pub state: State,
    /// When it was to be due.
    pub at: Moment,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Moment>,
    /// Its lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Its unique key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_key: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// 0 goes first, 9 last.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(maximum = 9))]
    pub priority: u8,
    /// How many attempts there have been.
    #[serde(default)]
    pub attempts: u32,
    /// Who does it.
    pub target: TargetKind,
    /// A soft deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_by: Option<Moment>,
    /// A hard one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Moment>,
    /// How long an attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// How the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Moment>,
    /// How often it was changed. It is the task's `ETag`.
    #[serde(default)]
    pub revision: u32,
    /// What whoever makes it should know: that no server can run it, for instance. Only when it is made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What it carries, with `view=full`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Json>,
    /// What it carries, if that is not JSON, with `view=full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<Base64>,
    /// What it calls, with `view=full`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient_option::<_, HttpTwin, _>"
    )]
    pub http: Option<Http>,
    /// The handler that runs it, with `view=full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// A URL that is sent the result, with `view=full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<String>,
    /// What came out, with `view=full`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub result: Option<Json>,
    /// How it is tried again, with `view=full`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient_option::<_, RetryTwin, _>"
    )]
    pub retry: Option<Retry>,
}

/// How far a task has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum State {
    /// It waits for its time, or for whatever keeps it from starting.
    Scheduled,
    /// An attempt runs.
    Running,
    /// A worker has it.
    Reserved,
    /// An attempt failed; it waits for the next one.
    Retrying,
    /// Its attempts ran out, and it holds its lane until it is retried or cancelled.
    Blocked,
    /// An attempt succeeded.
    Succeeded,
    /// It was given up.
    Dead,
    /// It was cancelled.
    Cancelled,
    /// It was not started in time.
    Expired,
}

impl State {
    /// All of them, in the order of a task's life.
    pub const ALL: [State; 9] = [
        State::Scheduled,
        State::Running,
        State::Reserved,
        State::Retrying,
        State::Blocked,
        State::Succeeded,
        State::Dead,
        State::Cancelled,
        State::Expired,
    ];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Scheduled => "scheduled",
            State::Running => "running",
            State::Reserved => "reserved",
            State::Retrying => "retrying",
            State::Blocked => "blocked",
            State::Succeeded => "succeeded",
            State::Dead => "dead",
            State::Cancelled => "cancelled",
            State::Expired => "expired",
        }
    }

    /// Whether nothing more will happen to it by itself.
    pub fn has_ended(self) -> bool {
        matches!(self, State::Succeeded | State::Dead | State::Cancelled | State::Expired)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<State, UnknownState> {
        State::ALL.into_iter().find(|state| state.as_str() == text).ok_or(UnknownState)
    }
}

/// No task is ever in such a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownState;

impl fmt::Display for UnknownState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a state is one of {}", State::ALL.map(State::as_str).join(", "))
    }
}

impl std::error::Error for UnknownState {}

/// Who does a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TargetKind {
    /// A worker that reserves it.
    Worker,
    /// The server of a URL.
    Http,
    /// A handler in the program that embeds Punctual.
    Handler,
}
