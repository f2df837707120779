//! Why a store did not do as asked, sorted by what the caller must do.

use std::error::Error;
use std::fmt;

/// What lies behind an error: kept for `source()`, never pasted into the text.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why a store did not do as asked.
#[derive(Debug)]
pub enum StoreError {
    /// Another node owns the partition now. Stop; do not retry.
    Fenced,
    /// It may or may not have happened. Read back before you decide.
    Unknown(Cause),
    /// The store did not answer, and nothing was changed. Try again later.
    Unavailable(Cause),
    /// There is no room for more, and nothing was changed. Try again when there is.
    Full,
    /// What is stored cannot be read. A person must look.
    Corrupt(Cause),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoreError::Fenced => "another node owns the partition now",
            StoreError::Unknown(_) => "the store did not say whether it was done",
            StoreError::Unavailable(_) => "the store did not answer",
            StoreError::Full => "the disk is full",
            StoreError::Corrupt(_) => "what is stored cannot be read",
        })
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StoreError::Fenced | StoreError::Full => None,
            StoreError::Unknown(cause) | StoreError::Unavailable(cause) | StoreError::Corrupt(cause) => {
                Some(cause.as_ref())
            }
        }
    }
}
