//! Writes that go past the system's cache and are durable when they return.
//!
//! A write into the cache and a sync is two calls, and a page that is marked, looked for, written and marked again. In one
//! call a frame of a few tasks takes a fifth less of the processor and a tenth less time.
//! Decision record: `docs/decisions/0024-frames-past-the-cache.md`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::SECTOR;

/// Memory that such writes are made from begins with a page.
const PAGE: usize = 4096;
/// More than this at once goes the usual way: the memory for it would be kept.
const BYTES_MAX: usize = 1 << 20;

/// ext4 and XFS, as `statfs` numbers them. Others take such a write and leave it to somebody else to make it durable, as shares
/// of other machines do, or take it into the cache after all.
const KNOWN: [i128; 2] = [0xef53, 0x5846_5342];

/// What all files of a disk share. Clones are the same.
#[derive(Clone, Default, Debug)]
pub struct Way(Arc<Shared>);

#[derive(Default, Debug)]
struct Shared {
    /// Memory for what is being written: one file is written at a time.
    room: Mutex<Vec<u8>>,
    /// It was tried, and the disk or its file system cannot do it.
    is_closed: AtomicBool,
}

/// A file that is written so.
#[derive(Debug)]
pub struct Direct {
    file: File,
    way: Way,
}

impl Direct {
    /// Opens it; `None` where the file system cannot do that, or is none of those that are known to keep what it promises.
    pub fn open(path: &Path, way: Way) -> Option<Direct> {
        let flags = rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::DSYNC;
        let flags = i32::try_from(flags.bits()).ok()?;
        let file = OpenOptions::new().write(true).custom_flags(flags).open(path).ok()?;
        let kind = i128::from(rustix::fs::fstatfs(&file).ok()?.f_type);
        KNOWN.contains(&kind).then_some(Direct { file, way })
    }

    /// Writes whole sectors, durably. `None`: this is nothing for it, and is to be written as usual, all of it.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Option<io::Result<()>> {
        let is_whole = offset.is_multiple_of(SECTOR as u64) && bytes.len().is_multiple_of(SECTOR);
        let Shared { room, is_closed } = &*self.way.0;
        if !is_whole || bytes.len() > BYTES_MAX || is_closed.load(Ordering::Relaxed) {
            return None;
        }
        let mut room = room.lock().expect("nothing panics while it is held");
        if room.len() < bytes.len() + PAGE {
            *room = vec![0; (bytes.len() + PAGE).next_power_of_two()];
        }
        let from = room.as_ptr().align_offset(PAGE);
        let aligned = room.get_mut(from..from + bytes.len())?;
        aligned.copy_from_slice(bytes);
        match self.file.write_all_at(aligned, offset) {
            // Disks with larger sectors, and file systems that say so only now.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
            {
                is_closed.store(true, Ordering::Relaxed);
                None
            }
            written => Some(written),
        }
    }
}
