//! `POST /schedule`: a call at a given time, in four fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::json::Json;
use super::retry::Retry;
#[cfg(feature = "openapi")]
use super::schema::{Headers, Id, Method, QueueName, Url};
use super::span::Span;
use super::task::{OnConflict, State};
use super::time::{Moment, Time};
use super::two_way::present;

/// Call this URL at that time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallAt {
    /// Where.
    #[cfg_attr(feature = "openapi", schema(value_type = Url))]
    pub url: String,
    /// The method of the call; POST if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Method>))]
    pub verb: Option<String>,
    /// What is sent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub body: Option<Json>,
    /// When.
    #[serde(rename = "executionDateTime")]
    pub execution_date_time: Time,
    /// The zone of the time, if it does not say where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "Europe/Paris"))]
    pub timezone: Option<String>,
    /// Besides the ones that Punctual sends.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Headers))]
    pub headers: BTreeMap<String, String>,
    /// Tasks of one lane run one at a time, in order of their time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub lane: Option<String>,
    /// The same key, lane and time again is the same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub unique_key: Option<String>,
    /// A name to find it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub name: Option<String>,
    /// The queue it waits in; `default` if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<QueueName>))]
    pub queue: Option<String>,
    /// How it is tried again, when not as its queue says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How long the call may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// A URL that is sent the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Url>))]
    pub callback: Option<String>,
    /// What happens when a task of the same unique key, lane and time is there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_conflict: Option<OnConflict>,
}

/// A call as it is answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduledCall {
    /// The task's id.
    #[cfg_attr(feature = "openapi", schema(value_type = Id))]
    pub id: String,
    /// Where.
    pub url: String,
    /// The method of the call.
    pub verb: String,
    /// When.
    #[serde(rename = "executionDateTime")]
    pub execution_date_time: Moment,
    /// How far it has come.
    pub status: CallStatus,
}

/// How far a call has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CallStatus {
    /// It waits.
    ToDo,
    /// It has begun.
    #[serde(rename = "In progress")]
    InProgress,
    /// It succeeded.
    Done,
    /// It will not be made, or not again.
    Error,
}

/// A call that is to be tried again has begun; one that blocks its lane has failed, until a person decides.
impl From<State> for CallStatus {
    fn from(state: State) -> CallStatus {
        match state {
            State::Scheduled => CallStatus::ToDo,
            State::Running | State::Reserved | State::Retrying => CallStatus::InProgress,
            State::Succeeded => CallStatus::Done,
            State::Blocked | State::Dead | State::Cancelled | State::Expired => CallStatus::Error,
        }
    }
}
