//! How much room is left on the disk of a folder, which tests can say.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Knows how much room a disk has. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct DiskRoom(Option<Arc<AtomicU64>>);

impl DiskRoom {
    /// A disk that has as much room as it is told: a real one cannot be filled where others work on it.
    pub fn of_tests(bytes: u64) -> DiskRoom {
        DiskRoom(Some(Arc::new(bytes.into())))
    }

    /// From now on there is so much. A real disk does not listen.
    pub fn set(&self, bytes: u64) {
        if let Some(told) = &self.0 {
            told.store(bytes, Ordering::Relaxed);
        }
    }

    /// How many bytes can still be written to the disk that a folder is on.
    pub fn free_bytes(&self, folder: &Path) -> io::Result<u64> {
        if let Some(told) = &self.0 {
            return Ok(told.load(Ordering::Relaxed));
        }
        let space = rustix::fs::statvfs(folder)?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }
}
