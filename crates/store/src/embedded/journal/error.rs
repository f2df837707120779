//! Why a journal was not opened, or did not take a frame.

use std::error::Error;
use std::sync::Arc;
use std::{fmt, io};

use crate::Cause;

/// Where in the folder something lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file's name.
    pub file: String,
    /// Bytes from its begin.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.file, self.offset)
    }
}

/// What was being done when the disk failed, and what it said.
#[derive(Debug)]
pub struct Failure {
    /// A clause, such as "syncing segment-000003".
    pub deed: String,
    /// What the disk said.
    pub cause: io::Error,
}

impl Failure {
    pub(super) fn new(deed: impl Into<String>, cause: io::Error) -> Failure {
        Failure { deed: deed.into(), cause }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.deed)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

/// Why a journal was not opened. Nothing that was acknowledged was changed.
#[derive(Debug)]
pub enum OpenError {
    /// Somebody else has it open. Stop the other one.
    Locked,
    /// It was written by a newer version of this program. Use that one.
    Newer {
        /// The file that says so.
        file: String,
        /// The format it is in.
        format: u32,
        /// The newest format known here.
        known: u32,
    },
    /// Something that was acknowledged is missing or spoiled. A person must look.
    Damaged {
        /// Where it should be.
        place: Place,
        /// What is wrong there.
        what: String,
    },
    /// Whoever replays the records cannot make sense of one.
    NotUnderstood {
        /// The frame it lies in.
        place: Place,
        /// What they said.
        cause: Cause,
    },
    /// The disk failed.
    Failed(Failure),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Locked => f.write_str("the journal is open elsewhere"),
            OpenError::Newer { file, format, known } => {
                write!(f, "{file} has format {format}, and {known} is the newest that is known here")
            }
            OpenError::Damaged { place, what } => write!(f, "the journal is damaged, {place}: {what}"),
            OpenError::NotUnderstood { place, .. } => write!(f, "replaying the frame of {place}"),
            OpenError::Failed(failure) => failure.fmt(f),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            OpenError::NotUnderstood { cause, .. } => Some(cause.as_ref()),
            OpenError::Failed(failure) => failure.source(),
            _ => None,
        }
    }
}

/// Why a frame was not taken.
#[derive(Clone, Debug)]
pub enum AppendError {
    /// There is no room for one more segment, or for the frame. Nothing was written that counts; try again when there is.
    Full,
    /// The records do not fit into a segment. Nothing was written.
    TooLarge {
        /// What was asked for.
        bytes: usize,
        /// What is possible.
        bytes_max: usize,
    },
    /// The disk failed, now or before, and nothing more is written. What was under way may be on disk or
    /// not: open the journal again to know.
    Failed(Arc<Failure>),
    /// The writer has been stopped. Nothing was written.
    Stopped,
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppendError::Full => f.write_str("there is no room for more in the journal"),
            AppendError::TooLarge { bytes, bytes_max } => {
                write!(f, "a frame of {bytes} bytes, and {bytes_max} is the most")
            }
            AppendError::Failed(failure) => write!(f, "the journal has failed: {failure}"),
            AppendError::Stopped => f.write_str("the journal's writer has been stopped"),
        }
    }
}

impl Error for AppendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            AppendError::Failed(failure) => failure.source(),
            _ => None,
        }
    }
}
