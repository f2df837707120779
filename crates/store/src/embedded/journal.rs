//! The journal: frames in files that are zeroed once and used again and again, one write and one sync for each.
//!
//! ```text
//!     sealed            active            ready
//!   ┌─────────┐       ┌─────────┐       ┌─────────┐  ┌─────────┐
//!   │ 1 2 3 4 │ ────▶ │ 5 6     │ ────▶ │         │  │         │ …   two are kept back for ends
//!   └─────────┘       └─────────┘       └─────────┘  └─────────┘
//!        └──────── released: used again ─────▲
//! ```
//!
//! What lies where, what is refused and why: `docs/decisions/0009-the-journal.md`.

mod error;
mod maker;
mod reader;
mod recover;
mod segment;
mod supply;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

pub use error::{AppendError, Failure, OpenError, Place};
pub use recover::Recovery;

use self::maker::{Maker, NotMade};
use self::segment::{FRAMES_AT, Segment};
use self::supply::{Supply, Workshop};
use super::disk::{Disk, DiskFile, is_no_space};
use super::frame::{self, FrameBuffer, Identity, PAGE, Records, Sequence, Stamp};
use crate::Cause;

/// How a journal is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The size of a segment, rounded up to whole pages. A frame must fit into one.
    pub segment_bytes: u64,
    /// Segments kept back for [`Class::End`].
    pub reserved_segments: usize,
    /// Segments that wait to be used again, on top of those. What is released beyond is removed.
    pub spare_segments_max: usize,
    /// Bytes of the disk that new segments leave to others.
    pub keep_free_bytes: u64,
    /// Tells a new journal from others: draw it by chance. One that exists keeps its own.
    pub identity: Identity,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            segment_bytes: 64 << 20,
            reserved_segments: 2,
            spare_segments_max: 4,
            keep_free_bytes: 64 << 20,
            identity: Identity::default(),
        }
    }
}

impl Options {
    /// Lengths within a segment are 32 bits wide.
    const SEGMENT_BYTES_MAX: u64 = 1 << 30;

    fn rounded(mut self) -> Options {
        let page = PAGE as u64;
        self.segment_bytes =
            self.segment_bytes.clamp(2 * page, Self::SEGMENT_BYTES_MAX).next_multiple_of(page);
        self
    }
}

/// Whether a frame may be written to the segments that are kept back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// It asks for more work, and is refused when the disk is full.
    New,
    /// It records what has been done, or makes room. It is refused when the reserve is used up too.
    End,
}

/// How long a frame can be for which nothing need be made ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Room {
    new: usize,
    end: usize,
}

impl Room {
    /// What is left of it after a frame of so many bytes.
    pub fn after(self, frame_bytes: usize) -> Room {
        let taken = frame::taken_bytes(frame_bytes) as usize;
        Room { new: self.new.saturating_sub(taken), end: self.end.saturating_sub(taken) }
    }

    /// For frames of that class.
    pub fn of(self, class: Class) -> usize {
        match class {
            Class::New => self.new,
            Class::End => self.end,
        }
    }
}

/// Reads a journal that nobody writes, without making it ready to be written.
pub fn inspect<D: Disk>(
    disk: &D,
    from: Sequence,
    replay: impl FnMut(Sequence, Records<'_>) -> Result<(), Cause>,
) -> Result<(Identity, Recovery), OpenError> {
    let found = recover::recover(disk, &Options::default(), from, replay)?;
    Ok((found.identity, found.recovery))
}

/// How much of a journal is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// The sequence of the next frame.
    pub next: Sequence,
    /// Segments with frames that are not released.
    pub used_segments: usize,
    /// Their size.
    pub used_bytes: u64,
    /// Segments that wait to be used.
    pub ready_segments: usize,
}

/// A segment with frames in it.
struct Used<F> {
    segment: Segment<F>,
    stamp: Stamp,
    /// The sequence of its first frame.
    first: Sequence,
    /// Where the next frame would lie.
    end: u64,
}

/// Frames on a disk. It is written by one thread, and nobody else has it open.
pub struct Journal<D: Disk> {
    options: Options,
    identity: Identity,
    /// Full, oldest first.
    sealed: VecDeque<Used<D::File>>,
    active: Option<Used<D::File>>,
    ready: Vec<Segment<D::File>>,
    next: Sequence,
    last_stamp: Stamp,
    /// Once the disk has failed, nobody knows what is on it until it is read again.
    failure: Option<Arc<Failure>>,
    supply: Supply<D>,
    disk: D,
    /// Dropped last: until then the folder is ours.
    _lock: D::Lock,
}

impl<D: Disk> Journal<D> {
    /// Opens the journal of a folder, or begins one with frame `from`, and replays every frame from there on, in
    /// order. `from` is what the caller has safe elsewhere: the sequence it last released before, or a later one.
    pub fn open(
        disk: D,
        options: Options,
        from: Sequence,
        replay: impl FnMut(Sequence, Records<'_>) -> Result<(), Cause>,
    ) -> Result<(Journal<D>, Recovery), OpenError> {
        let options = options.rounded();
        let lock = disk.lock("lock");
        let lock = lock.map_err(|cause| OpenError::Failed(Failure::new("locking the journal", cause)))?;
        let lock = lock.ok_or(OpenError::Locked)?;
        let mut found = recover::recover(&disk, &options, from, replay)?;
        let maker = Maker {
            disk: disk.clone(),
            identity: found.identity,
            segment_bytes: options.segment_bytes,
            keep_free_bytes: options.keep_free_bytes,
            next_number: found.next_number,
        };
        let active = found.used.pop();
        let mut journal = Journal {
            options,
            identity: found.identity,
            sealed: found.used.into(),
            last_stamp: active.as_ref().map_or(Stamp(0), |active| active.stamp),
            active,
            ready: Vec::new(),
            next: found.recovery.next,
            failure: None,
            supply: Supply::Inline(maker),
            disk,
            _lock: lock,
        };
        found.spare.into_iter().for_each(|segment| journal.retire(segment));
        let begins = usize::from(journal.active.is_none());
        journal.stock_up(journal.options.reserved_segments + begins).map_err(OpenError::Failed)?;
        Ok((journal, found.recovery))
    }

    /// Has segments made ahead, by a thread of their own, from now on. Otherwise an append that begins a segment
    /// may have to make one.
    pub fn prepare_in_background(&mut self) -> io::Result<()> {
        if let Supply::Inline(maker) = &self.supply {
            self.supply = Supply::Background(Workshop::start(maker.clone())?);
            self.order();
        }
        Ok(())
    }

    /// Writes a frame, and returns when it is durable.
    pub fn append(&mut self, class: Class, frame: &mut FrameBuffer) -> Result<Sequence, AppendError> {
        if let Some(failure) = &self.failure {
            return Err(AppendError::Failed(failure.clone()));
        }
        let (bytes, bytes_max) = (frame.frame_bytes(), self.frame_bytes_max());
        if bytes > bytes_max {
            return Err(AppendError::TooLarge { bytes, bytes_max });
        }
        self.begin_segment_if_needed(class, bytes)?;
        match self.write(frame) {
            Ok(Some(sequence)) => Ok(sequence),
            Ok(None) => Err(AppendError::Full),
            Err(failure) => Err(self.fail(failure)),
        }
    }

    /// Sees to it that a frame of at most so many bytes can be written next, and says what can.
    pub fn make_room(&mut self, class: Class, frame_bytes: usize) -> Result<Room, AppendError> {
        if let Some(failure) = &self.failure {
            return Err(AppendError::Failed(failure.clone()));
        }
        let bytes_max = self.frame_bytes_max();
        if frame_bytes > bytes_max {
            return Err(AppendError::TooLarge { bytes: frame_bytes, bytes_max });
        }
        self.begin_segment_if_needed(class, frame_bytes)?;
        Ok(self.room())
    }

    /// What can be written without making anything ready.
    pub fn room(&self) -> Room {
        let end = self.active.as_ref().map_or(0, |active| (active.segment.bytes - active.end) as usize);
        let has_reserve = self.ready.len() >= self.options.reserved_segments;
        Room { new: if has_reserve { end } else { 0 }, end }
    }

    /// The longest frame that can be written.
    pub fn frame_bytes_max(&self) -> usize {
        (self.options.segment_bytes - FRAMES_AT) as usize
    }

    /// Lets segments be used again of which every frame is below this sequence. The caller has what is in them
    /// safe elsewhere, durably, and will open the journal from there. Returns how many segments that were.
    pub fn release_before(&mut self, sequence: Sequence) -> usize {
        let mut released = 0;
        while self.first_of_second().is_some_and(|first| first <= sequence) {
            let Some(oldest) = self.sealed.pop_front() else { break };
            self.retire(oldest.segment);
            released += 1;
        }
        released
    }

    /// What tells it from others.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// How much is in use, so that the caller can see to it that it is not too much.
    pub fn usage(&self) -> Usage {
        let used = self.sealed.iter().chain(&self.active);
        Usage {
            next: self.next,
            used_segments: used.clone().count(),
            used_bytes: used.map(|used| used.segment.bytes).sum(),
            ready_segments: self.ready.len(),
        }
    }

    /// All frames of the oldest sealed segment are below the first of the one after it.
    fn first_of_second(&self) -> Option<Sequence> {
        self.sealed.get(1).or(self.active.as_ref()).map(|used| used.first)
    }

    /// `None`: the disk has no room for it, and it is not there. File systems that never write in place can say so
    /// also of blocks that were zeroed before.
    fn write(&mut self, frame: &mut FrameBuffer) -> Result<Option<Sequence>, Failure> {
        let (sequence, active) = (self.next, self.active.as_mut().expect("there is room"));
        let (segment, offset, frame_bytes) = (&active.segment, active.end, frame.frame_bytes());
        let bytes = frame.seal(self.identity, active.stamp, sequence, offset);
        let is_durable = match segment.file.write_through(offset, bytes) {
            Err(cause) if is_no_space(&cause) => {
                match segment.write_what_is_there(offset, &bytes[..frame_bytes])? {
                    true => false,
                    false => return Ok(None),
                }
            }
            written => written.map_err(|cause| segment.failure("writing", offset, cause))?,
        };
        if !is_durable {
            segment.file.sync().map_err(|cause| segment.failure("syncing", offset, cause))?;
        }
        active.end += frame::taken_bytes(frame_bytes);
        self.supply.note_used(active.end);
        self.next = sequence.next();
        Ok(Some(sequence))
    }

    fn fail(&mut self, failure: Failure) -> AppendError {
        let failure = Arc::new(failure);
        self.failure = Some(failure.clone());
        AppendError::Failed(failure)
    }

    /// Sees to it that the active segment has room for the frame. What is new must leave the reserve as it is, and
    /// is refused while the reserve is not complete, even if the active segment has room: that is for the ends.
    fn begin_segment_if_needed(&mut self, class: Class, frame_bytes: usize) -> Result<(), AppendError> {
        if let Some(made) = self.supply.poll() {
            self.stock(made).map_err(|failure| self.fail(failure))?;
        }
        let begins = usize::from(!self.active.as_ref().is_some_and(|active| active.has_room(frame_bytes)));
        let all = self.options.reserved_segments + begins;
        let needed = if class == Class::New { all } else { begins };
        // Whoever makes segments itself had better do so before it takes from the reserve.
        let wanted = if begins == 1 && self.supply.is_inline() { all } else { needed };
        self.stock_up(wanted).map_err(|failure| self.fail(failure))?;
        if self.ready.len() < needed {
            return Err(AppendError::Full);
        }
        if begins == 1 {
            self.begin_segment();
            self.order();
        }
        Ok(())
    }

    /// Nothing is written: the stamp of its first frame is what begins a segment.
    fn begin_segment(&mut self) {
        let segment = self.ready.pop().expect("one is ready");
        self.last_stamp = Stamp(self.last_stamp.0 + 1);
        let begun = Used { segment, stamp: self.last_stamp, first: self.next, end: FRAMES_AT };
        self.sealed.extend(self.active.replace(begun));
    }

    /// Makes segments until so many are ready, or the disk is full.
    fn stock_up(&mut self, wanted: usize) -> Result<(), Failure> {
        while self.ready.len() < wanted {
            let made = self.supply.wait();
            let is_full = matches!(made, Err(NotMade::NoSpace));
            self.stock(made)?;
            if is_full {
                break;
            }
        }
        Ok(())
    }

    fn stock(&mut self, made: Result<Segment<D::File>, NotMade>) -> Result<(), Failure> {
        match made {
            Ok(segment) => self.ready.push(segment),
            Err(NotMade::NoSpace) => {}
            Err(NotMade::Failed(failure)) => return Err(failure),
        }
        Ok(())
    }

    /// Has a segment made in the background when none is ready but the reserve.
    fn order(&mut self) {
        if self.ready.len() <= self.options.reserved_segments {
            self.supply.order();
        }
    }

    /// Keeps a segment to be used again, or removes it: if there are enough, or it has the size of other options.
    fn retire(&mut self, segment: Segment<D::File>) {
        let ready_max = self.options.reserved_segments + self.options.spare_segments_max;
        let fits = segment.bytes == self.options.segment_bytes;
        if fits && self.ready.len() < ready_max {
            self.ready.push(segment);
        } else {
            // If it cannot be removed, the next start finds it among the spares and tries again.
            let _ = self.disk.remove(&segment.name);
        }
    }
}

impl<F> Used<F> {
    fn has_room(&self, frame_bytes: usize) -> bool {
        self.end + frame::written_bytes(self.end, frame_bytes) as u64 <= self.segment.bytes
    }
}
