//! Errors as RFC 9457 has them, with a code that never changes its meaning.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// What went wrong, for people and for programs. Sent as `application/problem+json`.
///
/// Its `type` is not kept: it is the path of the code's page on the server. So a problem is small enough to be returned.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct Problem {
    /// The kind of problem, in a few words.
    #[serde(default)]
    pub title: Cow<'static, str>,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// What went wrong this time, and what to do.
    #[serde(default)]
    pub detail: Cow<'static, str>,
    /// The path that was asked for.
    #[serde(default)]
    pub instance: Option<Box<str>>,
    /// What a program looks at. One of [`code`], or one that is newer than this crate.
    #[serde(default)]
    pub code: Cow<'static, str>,
    /// The fields at fault.
    #[serde(default)]
    pub errors: Vec<FieldError>,
}

/// A problem as it is written.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct WrittenProblem<'a> {
    /// The path of the code's page on the server.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(example = "/errors/task_not_found"))]
    kind: String,
    /// The kind of problem, in a few words.
    title: &'a str,
    /// The HTTP status.
    status: u16,
    /// What went wrong this time, and what to do.
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
    /// The path that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
    /// What a program looks at.
    #[cfg_attr(feature = "openapi", schema(example = "task_not_found"))]
    code: &'a str,
    /// The fields at fault.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WrittenProblem {
            kind: self.kind(),
            title: &self.title,
            status: self.status,
            detail: &self.detail,
            instance: self.instance.as_deref(),
            code: &self.code,
            errors: &self.errors,
        }
        .serialize(serializer)
    }
}

impl Problem {
    /// The media type of a problem.
    pub const MEDIA_TYPE: &'static str = "application/problem+json";

    /// A problem of that code.
    pub fn new(status: u16, code: &'static str, title: &'static str, detail: impl Into<String>) -> Problem {
        Problem {
            title: Cow::Borrowed(title),
            status,
            detail: Cow::Owned(detail.into()),
            instance: None,
            code: Cow::Borrowed(code),
            errors: Vec::new(),
        }
    }

    /// Its `type`: the path of the code's page on the server.
    pub fn kind(&self) -> String {
        format!("/errors/{}", self.code)
    }

    /// Names a field that is at fault.
    pub fn field(mut self, field: impl Into<String>, detail: impl Into<String>) -> Problem {
        self.errors.push(FieldError { field: field.into(), detail: detail.into() });
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.detail.is_empty() { &self.title } else { &self.detail };
        write!(f, "{text}")?;
        // What the text says already of a field is not said again.
        for error in self.errors.iter().filter(|error| !text.contains(&error.detail)) {
            write!(f, "; {}: {}", error.field, error.detail)?;
        }
        write!(f, " ({} {})", self.status, self.code)
    }
}

impl std::error::Error for Problem {}

/// A field at fault.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FieldError {
    /// Its name, with the way to it: `http.url`.
    pub field: String,
    /// What is wrong with it, and what to do.
    pub detail: String,
}

/// The codes that a program may want to look at. There are others.
pub mod code {
    /// No such task, or it was forgotten by now.
    pub const TASK_NOT_FOUND: &str = "task_not_found";
    /// A task of the same identity is there, and the request said `error`.
    pub const TASK_EXISTS: &str = "task_exists";
    /// An attempt is under way, so nothing was changed.
    pub const TASK_RUNNING: &str = "task_running";
    /// It has ended, so nothing was changed.
    pub const TASK_ENDED: &str = "task_ended";
    /// `If-Match` names a revision that is not the present one.
    pub const TASK_CHANGED: &str = "task_changed";
    /// No such queue.
    pub const QUEUE_NOT_FOUND: &str = "queue_not_found";
    /// Tasks wait in it.
    pub const QUEUE_NOT_EMPTY: &str = "queue_not_empty";
    /// The time to run is over, or the attempt was reported on before.
    pub const TOKEN_LATE: &str = "token_late";
    /// Too much is asked at once. Nothing was changed; wait as `Retry-After` says.
    pub const OVERLOADED: &str = "overloaded";
    /// It may or may not have happened. Look before you ask again.
    pub const OUTCOME_UNKNOWN: &str = "outcome_unknown";
}
