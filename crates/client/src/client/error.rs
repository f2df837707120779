//! What can go wrong with a request, sorted by what to do about it.

use std::fmt;
use std::time::Duration;

use crate::wire::Problem;

/// What lies behind an error.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a request did not do as asked.
#[derive(Debug)]
pub enum Error {
    /// The server said no, and why. Nothing was changed. Look at the code of the problem.
    Refused(Box<Problem>),
    /// Too much is asked of the server, or it is about to stop. Nothing was changed. Try again after that long.
    Busy {
        /// What the server said.
        problem: Box<Problem>,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// There is no connection. Nothing was changed. Try again later.
    Unreachable(Cause),
    /// The request was sent, and no answer came, or the server does not know either. It may or may not have happened:
    /// look before you ask again, or repeat it with the same `Idempotency-Key`.
    Unknown(Cause),
    /// An answer came that makes no sense. Is this a Punctual server?
    Unreadable(Cause),
    /// The request cannot even be written. Nothing was sent.
    Impossible(Cause),
}

impl Error {
    /// The problem, if the server named one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Error::Refused(problem) | Error::Busy { problem, .. } => Some(problem),
            _ => None,
        }
    }

    /// The code of the problem: one of [`crate::wire::code`], or another.
    pub fn code(&self) -> Option<&str> {
        self.problem().map(|problem| &*problem.code)
    }

    /// Whether the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Error::Busy { .. } | Error::Unreachable(_) | Error::Unknown(_))
    }

    /// How long the server wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// What a status says when it is not success.
    pub(crate) fn of(problem: Problem, retry_after: Option<Duration>) -> Error {
        let problem = Box::new(problem);
        match problem.status {
            429 | 503 => Error::Busy { problem, retry_after },
            500..=599 => Error::Unknown(problem),
            _ => Error::Refused(problem),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(problem) => problem.fmt(f),
            Error::Busy { problem, .. } => write!(f, "the server is busy, try again later: {problem}"),
            Error::Unreachable(_) => f.write_str("the server cannot be reached, try again later"),
            Error::Unknown(_) => f.write_str("it may or may not have happened, look before you ask again"),
            Error::Unreadable(_) => f.write_str("the answer makes no sense, is this a Punctual server?"),
            Error::Impossible(_) => f.write_str("the request cannot be written"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Refused(_) | Error::Busy { .. } => None,
            Error::Unreachable(cause)
            | Error::Unknown(cause)
            | Error::Unreadable(cause)
            | Error::Impossible(cause) => Some(&**cause),
        }
    }
}
