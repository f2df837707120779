//! Why a request to the scheduler failed, sorted by what to do.

use std::fmt;
use std::sync::Arc;

use punctual_core::id::NotATaskId;
use punctual_core::{EndState, Refusal, TaskId};
use punctual_store::StoreError;
use punctual_store::embedded::{FolderError, FolderTrouble};

use crate::view::TaskState;

/// Why a request to the scheduler failed.
#[derive(Debug)]
pub enum Error {
    /// The request is wrong, and nothing was changed. Mend it; the text says how.
    Refused(Refusal),
    /// The task's time is too far in the past, and nothing was changed.
    DueInPast,
    /// The text is no task id, and nothing was changed.
    BadId(NotATaskId),
    /// The payload or the result could not be written or read as JSON.
    Payload(serde_json::Error),
    /// A task of the same identity is there and may not be replaced; nothing was changed.
    Conflict(TaskId),
    /// An attempt is running, so nothing was changed.
    Running {
        /// Its number.
        attempt: u32,
    },
    /// The task has ended, so nothing was changed.
    Ended(EndState),
    /// The task ended without a result.
    NotSucceeded {
        /// How it ended.
        state: EndState,
        /// What went wrong.
        error: Option<Arc<str>>,
    },
    /// There is no such task, or it is no longer remembered.
    NotFound,
    /// The task was changed meanwhile; look at it again.
    Outdated {
        /// Its revision now.
        revision: u32,
    },
    /// The store has no room for more, and nothing was changed. What runs goes on.
    Full,
    /// Too many requests are waiting, and nothing was changed. Try again later.
    Overloaded,
    /// The scheduler does not own the task's partition, and nothing was changed: it is being reloaded, or another
    /// scheduler has taken the store over. Try again, or ask the other one.
    NotOwner,
    /// It may or may not have happened. Look before you repeat it, or repeat it with a unique key and the same time.
    Unknown,
    /// The worker's time for this attempt is over, or it was reported on before: nothing was changed, and somebody else
    /// may have the task by now.
    Late,
    /// The queue has tasks that wait, and nothing was changed.
    QueueNotEmpty,
    /// The queue was changed meanwhile; look at it again.
    QueueChanged,
    /// There is no such queue.
    QueueNotFound,
    /// The scheduler has stopped.
    Stopped,
    /// The data folder was not opened, copied or verified. The text says why, and what to do.
    Folder(FolderError),
    /// The store did not do as asked.
    Store(StoreError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(refusal) => refusal.fmt(f),
            Error::DueInPast => f.write_str(
                "the task's time is too far in the past: give a later time, or let the queue run late tasks at once (`past = run_now`)",
            ),
            Error::BadId(error) => error.fmt(f),
            Error::Payload(_) => f.write_str("the payload or the result is not what serde can read or write"),
            Error::Conflict(id) => write!(f, "task {id} has the same unique key, lane and time"),
            Error::Running { attempt } => write!(f, "attempt {attempt} is running, so nothing was changed"),
            Error::Ended(state) => {
                write!(f, "the task has ended ({}), so nothing was changed", TaskState::from(*state))
            },
            Error::NotSucceeded { state, error } => match error {
                Some(error) => write!(f, "the task did not succeed ({}): {error}", TaskState::from(*state)),
                None => write!(f, "the task did not succeed ({})", TaskState::from(*state)),
            },
            Error::NotFound => f.write_str("there is no such task, or it is no longer remembered"),
            Error::Outdated { revision } => write!(f, "the task was changed meanwhile; its revision is now {revision}"),
            Error::Full => f.write_str(
                "the disk is full, so nothing was changed: make room, or let history be kept for a shorter time",
            ),
            Error::Overloaded => f.write_str("too many requests are waiting: try again later"),
            Error::NotOwner => f.write_str(
                "the task's partition is being reloaded (try again), or another scheduler has taken the store over (ask that one)",
            ),
            Error::Unknown => f.write_str(
                "it may or may not have happened: look before you repeat it, or repeat it with a unique key and the same time",
            ),
            Error::Late => f.write_str(
                "the time to run is over, or this attempt was reported on before: drop the work, somebody else may have the task by now",
            ),
            Error::QueueNotEmpty => f.write_str("tasks wait in the queue: cancel them first, or let them run"),
            Error::QueueChanged => f.write_str("the queue was changed meanwhile: look at it again"),
            Error::QueueNotFound => f.write_str("there is no such queue"),
            Error::Stopped => f.write_str("the scheduler has stopped"),
            Error::Folder(error) => error.fmt(f),
            Error::Store(_) => f.write_str("the store did not do as asked"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Payload(error) => Some(error),
            Error::Folder(error) => error.source(),
            Error::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl Error {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Refused(refusal) => refusal.code(),
            Error::DueInPast => "task_due_in_past",
            Error::BadId(_) => "task_id_invalid",
            Error::Payload(_) => "payload_invalid",
            Error::Conflict(_) => "task_exists",
            Error::Running { .. } => "task_running",
            Error::Ended(_) => "task_ended",
            Error::NotSucceeded { .. } => "task_not_succeeded",
            Error::NotFound => "task_not_found",
            Error::Outdated { .. } => "task_changed",
            Error::Full => "store_full",
            Error::Overloaded => "overloaded",
            Error::NotOwner => "not_owner",
            Error::Unknown => "outcome_unknown",
            Error::Late => "token_late",
            Error::QueueNotEmpty => "queue_not_empty",
            Error::QueueChanged => "queue_changed",
            Error::QueueNotFound => "queue_not_found",
            Error::Stopped => "stopped",
            Error::Folder(error) => folder_code(&error.trouble),
            Error::Store(_) => "store_failed",
        }
    }

    /// The same again, for each item of a batch that failed as a whole.
    pub(crate) fn repeated(&self) -> Error {
        match self {
            Error::Overloaded => Error::Overloaded,
            Error::NotOwner => Error::NotOwner,
            Error::Stopped => Error::Stopped,
            _ => Error::Unknown,
        }
    }
}

fn folder_code(trouble: &FolderTrouble) -> &'static str {
    match trouble {
        FolderTrouble::InUse { .. } => "folder_in_use",
        FolderTrouble::Missing => "folder_missing",
        FolderTrouble::Foreign { .. } => "folder_foreign",
        FolderTrouble::NotEmpty => "folder_not_empty",
        FolderTrouble::Inside => "folder_inside",
        FolderTrouble::Unfinished => "folder_unfinished",
        FolderTrouble::Newer { .. } => "folder_newer",
        FolderTrouble::Unreadable(_) => "folder_unreadable",
        FolderTrouble::Disk(_) | FolderTrouble::Store(_) => "folder_failed",
    }
}

impl From<FolderError> for Error {
    fn from(error: FolderError) -> Error {
        Error::Folder(error)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::Refused(refusal)
    }
}

impl From<NotATaskId> for Error {
    fn from(error: NotATaskId) -> Error {
        Error::BadId(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        match error {
            StoreError::Full => Error::Full,
            error => Error::Store(error),
        }
    }
}
