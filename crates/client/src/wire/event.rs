//! What the server tells by itself: events to those who listen, and notifications to a URL.

use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use super::schema::{SigningSecret, Url};
use super::span::Span;
use super::task::Task;
use super::time::Moment;

/// Something that happened, as a CloudEvent 1.0.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// `1.0`.
    pub specversion: String,
    /// Tells events apart.
    pub id: String,
    /// The server it comes from.
    pub source: String,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// The task's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// When.
    pub time: Moment,
    /// To what.
    #[serde(default)]
    pub data: EventData,
}

/// What something happened to.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventData {
    /// The queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// The task, or the head of the lane, as it stands after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// How late tasks are, if it is about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Span>,
    /// Whether they begin to be late or are late no more, if it is about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// How many events were missed at most, if it is about that and the server has no keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
}

/// Declares the kinds of events with their names.
macro_rules! event_kinds {
    ( $( $(#[$about:meta])* $kind:ident = $name:literal, )* ) => {
        /// What can happen.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        pub enum EventKind {
            $( $(#[$about])* #[serde(rename = $name)] $kind, )*
        }

        impl EventKind {
            /// All of them.
            pub const ALL: &'static [EventKind] = &[ $( EventKind::$kind, )* ];

            /// As it is written.
            pub fn as_str(self) -> &'static str {
                match self { $( EventKind::$kind => $name, )* }
            }
        }
    };
}

event_kinds! {
    /// A task was made.
    TaskCreated = "task.created",
    /// An attempt began.
    TaskStarted = "task.started",
    /// An attempt failed, and there will be another.
    TaskRetrying = "task.retrying",
    /// An attempt succeeded.
    TaskSucceeded = "task.succeeded",
    /// A task was given up.
    TaskDead = "task.dead",
    /// A task was cancelled.
    TaskCancelled = "task.cancelled",
    /// A task was not started in time.
    TaskExpired = "task.expired",
    /// A lane's head waits for a person.
    LaneBlocked = "lane.blocked",
    /// Tasks start later than they should. Only in notifications.
    Lateness = "lateness",
    /// Whoever listens was too slow, and did not hear of some events. Only there, whatever else is listened for.
    EventsMissed = "events.missed",
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The query of a request that listens to events.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventQuery {
    /// Only of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Only of this kind.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EventKind>,
}

/// Whom to tell, and of what: PUT.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewNotification {
    /// Where to send it.
    #[cfg_attr(feature = "openapi", schema(value_type = Url))]
    pub url: String,
    /// Of what.
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub events: Vec<EventKind>,
    /// Only of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// With `lateness`: when tasks are later than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_over: Option<Span>,
    /// What it is signed with. Never shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<SigningSecret>))]
    pub secret: Option<String>,
}

/// A notification as it is answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Notification {
    /// Its name.
    pub name: String,
    /// Where it is sent.
    pub url: String,
    /// Of what.
    pub events: Vec<EventKind>,
    /// Only of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// With `lateness`: when tasks are later than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_over: Option<Span>,
    /// Whether it is signed.
    #[serde(default)]
    pub signed: bool,
}

/// All notifications.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NotificationPage {
    /// In order of their names.
    pub notifications: Vec<Notification>,
    /// Where the next page begins; `null` on the last.
    #[serde(default)]
    pub next: Option<String>,
}
