//! Makes segments: files of zeros that are durable, under their name, before the first frame is written to them.

use std::io;

use super::error::Failure;
use super::segment::{self, Segment};
use crate::embedded::disk::{self, Disk, DiskFile};
use crate::embedded::frame::Identity;

/// How much is zeroed at a time: little, so that a sync of the journal that comes in between waits for little.
const CHUNK: u64 = 256 << 10;

/// Why there is no new segment.
pub(super) enum NotMade {
    /// There is no room. It may come back.
    NoSpace,
    Failed(Failure),
}

#[derive(Clone)]
pub(super) struct Maker<D> {
    pub disk: D,
    pub identity: Identity,
    pub segment_bytes: u64,
    /// Bytes that are left to others.
    pub keep_free_bytes: u64,
    /// No file has this number or a higher one.
    pub next_number: u64,
}

impl<D: Disk> Maker<D> {
    /// Makes one. `pause` is called between two chunks with how much is done, and may end it all with an error.
    pub fn make(
        &mut self,
        pause: impl FnMut(&D::File, u64) -> io::Result<()>,
    ) -> Result<Segment<D::File>, NotMade> {
        let name = segment::name(self.next_number);
        let unfinished = segment::unfinished_name(self.next_number);
        self.next_number += 1;
        let made = self.make_file(&name, &unfinished, pause);
        made.map(|file| Segment { name: name.clone(), file, bytes: self.segment_bytes }).map_err(|error| {
            // One of them is there, or none. What is left all the same is found by the next start.
            let _ = self.disk.remove(&unfinished);
            let _ = self.disk.remove(&name);
            if disk::is_no_space(&error) {
                NotMade::NoSpace
            } else {
                NotMade::Failed(Failure::new(format!("making {name}"), error))
            }
        })
    }

    fn make_file(
        &self,
        name: &str,
        unfinished: &str,
        pause: impl FnMut(&D::File, u64) -> io::Result<()>,
    ) -> io::Result<D::File> {
        // Asked first, so that a full disk is not written to in vain each time somebody tries.
        if self.disk.free_bytes()? < self.segment_bytes.saturating_add(self.keep_free_bytes) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file = self.disk.create(unfinished)?;
        self.fill(&file, pause)?;
        file.sync()?;
        self.disk.rename(unfinished, name)?;
        self.disk.sync_folder()?;
        Ok(file)
    }

    fn fill(&self, file: &D::File, mut pause: impl FnMut(&D::File, u64) -> io::Result<()>) -> io::Result<()> {
        let zeros = vec![0; CHUNK.min(self.segment_bytes) as usize];
        let mut filled = 0;
        while filled < self.segment_bytes {
            let chunk = CHUNK.min(self.segment_bytes - filled);
            file.write_at(filled, &zeros[..chunk as usize])?;
            filled += chunk;
            pause(file, filled)?;
        }
        file.write_at(0, &segment::first_page(self.identity, self.segment_bytes))
    }
}
