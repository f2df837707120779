//! Opens a journal: finds its segments, replays its frames, and tells a torn end from damage.
//!
//! The journal ends where no valid frame follows. A frame that was cut short by a crash lies there at most, because
//! frame n+1 is written after the sync of frame n. So a valid frame *beyond* the end, anywhere in the folder, means
//! that something acknowledged is missing between the two, and the journal is refused.

use std::io;

use super::error::{Failure, OpenError, Place};
use super::reader::Reader;
use super::segment::{self, FRAMES_AT, Named, Segment};
use super::{Options, Used};
use crate::Cause;
use crate::embedded::disk::{Disk, DiskFile};
use crate::embedded::frame::{self, Identity, Records, Sequence, Stamp};

/// What was found when a journal was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// Segments that were found.
    pub segments: usize,
    /// Frames that were replayed.
    pub frames: u64,
    /// Records in them.
    pub records: u64,
    /// The sequence of the next frame.
    pub next: Sequence,
    /// Where a frame was begun, never acknowledged unless the disk lost it, and cut off now. Known only if its
    /// header reached the disk.
    pub torn: Option<Place>,
}

/// A journal at rest, in pieces.
pub(super) struct Recovered<F> {
    pub identity: Identity,
    /// In order; the last one is where the journal goes on.
    pub used: Vec<Used<F>>,
    pub spare: Vec<Segment<F>>,
    pub next_number: u64,
    pub recovery: Recovery,
}

pub(super) fn recover<D: Disk>(
    disk: &D,
    options: &Options,
    from: Sequence,
    replay: impl FnMut(Sequence, Records<'_>) -> Result<(), Cause>,
) -> Result<Recovered<D::File>, OpenError> {
    let mut folder = Folder::read(disk, options)?;
    let segments = folder.segments.len();
    let mut memory = Vec::new();
    let Sorted { used, spare } = folder.sort(from, &mut memory)?;
    let mut walk =
        Walk { identity: folder.identity, from, memory, replay, frames: 0, records: 0, last: None };
    let (used, next) = walk.run(used)?;
    let end = End { identity: folder.identity, used: &used, spare: &spare, next };
    end.refuse_newer_frames(&mut walk.memory)?;
    end.refuse_missing_frames(from)?;
    let torn = end.torn(&mut walk.memory)?;
    if let (Some(tail), Some((offset, frame_bytes))) = (used.last(), walk.last) {
        make_durable(&tail.segment, offset, frame_bytes)?;
    }
    // Segments that an earlier process made may not be durable under their names.
    disk.sync_folder()
        .map_err(|cause| OpenError::Failed(Failure::new("syncing the journal's folder", cause)))?;
    let recovery = Recovery { segments, frames: walk.frames, records: walk.records, next, torn };
    Ok(Recovered { identity: folder.identity, used, spare, next_number: folder.next_number, recovery })
}

fn reading<F>(segment: &Segment<F>, offset: u64) -> impl FnOnce(io::Error) -> OpenError + '_ {
    move |cause| OpenError::Failed(segment.failure("reading", offset, cause))
}

/// Segments that are needed, in order, and the others.
struct Sorted<F> {
    used: Vec<Used<F>>,
    spare: Vec<Segment<F>>,
}

struct Folder<F> {
    identity: Identity,
    segments: Vec<Segment<F>>,
    next_number: u64,
}

impl<F: DiskFile> Folder<F> {
    fn read<D: Disk<File = F>>(disk: &D, options: &Options) -> Result<Folder<F>, OpenError> {
        let failed = |cause| OpenError::Failed(Failure::new("reading the journal's folder", cause));
        let mut folder = Folder { identity: options.identity, segments: Vec::new(), next_number: 1 };
        for name in disk.list().map_err(failed)? {
            match segment::named(&name) {
                Named::Segment(number) => {
                    let (segment, identity) = segment::open(disk, name)?;
                    folder.add(segment, identity)?;
                    folder.next_number = folder.next_number.max(number + 1);
                }
                Named::Unfinished => disk.remove(&name).map_err(failed)?,
                Named::Other => {}
            }
        }
        Ok(folder)
    }

    fn add(&mut self, segment: Segment<F>, identity: Identity) -> Result<(), OpenError> {
        if self.segments.is_empty() {
            self.identity = identity;
        } else if self.identity != identity {
            return Err(segment.damaged(0, "this segment belongs to another journal"));
        }
        self.segments.push(segment);
        Ok(())
    }

    /// Tells those that hold frames from this sequence on from the others.
    fn sort(&mut self, from: Sequence, memory: &mut Vec<u8>) -> Result<Sorted<F>, OpenError> {
        let (mut used, mut spare) = (Vec::new(), Vec::new());
        for segment in std::mem::take(&mut self.segments) {
            match first_frame(&segment, self.identity, memory)? {
                Some((stamp, first)) => used.push(Used { segment, stamp, first, end: FRAMES_AT }),
                None => spare.push(segment),
            }
        }
        used.sort_by_key(|used| used.stamp);
        refuse_disorder(&used)?;
        let begun = used.partition_point(|used| used.first <= from);
        if begun == 0 && !used.is_empty() {
            let what =
                format!("the journal begins with frame {}, and {} is asked for", used[0].first.0, from.0);
            return Err(used[0].segment.damaged(FRAMES_AT, what));
        }
        let kept = used.split_off(begun.saturating_sub(1));
        spare.extend(used.into_iter().map(|released| released.segment));
        Ok(Sorted { used: kept, spare })
    }
}

fn first_frame<F: DiskFile>(
    segment: &Segment<F>,
    identity: Identity,
    memory: &mut Vec<u8>,
) -> Result<Option<(Stamp, Sequence)>, OpenError> {
    let mut reader = Reader::new(segment, identity, memory);
    let frame = reader.frame_at(FRAMES_AT).map_err(reading(segment, FRAMES_AT))?;
    Ok(frame.map(|(header, _)| (header.stamp, header.sequence)))
}

fn refuse_disorder<F>(used: &[Used<F>]) -> Result<(), OpenError> {
    for pair in used.windows(2) {
        if pair[0].stamp >= pair[1].stamp || pair[0].first >= pair[1].first {
            let what = format!("its frames overlap with those of {}", pair[0].segment.name);
            return Err(pair[1].segment.damaged(FRAMES_AT, what));
        }
    }
    Ok(())
}

/// Goes from frame to frame.
struct Walk<R> {
    identity: Identity,
    from: Sequence,
    memory: Vec<u8>,
    replay: R,
    frames: u64,
    records: u64,
    /// Offset and length of the last frame, in the last segment.
    last: Option<(u64, usize)>,
}

impl<R: FnMut(Sequence, Records<'_>) -> Result<(), Cause>> Walk<R> {
    /// Fills in where each segment ends, and says what the next sequence is.
    fn run<F: DiskFile>(&mut self, mut used: Vec<Used<F>>) -> Result<(Vec<Used<F>>, Sequence), OpenError> {
        let mut next = used.first().map_or(self.from, |first| first.first);
        for index in 0..used.len() {
            if used[index].first != next {
                let (before, after) = (&used[index - 1], &used[index]);
                return Err(missing(&before.segment, before.end, next, &after.segment.place(FRAMES_AT)));
            }
            next = self.read(&mut used[index])?;
        }
        Ok((used, next))
    }

    fn read<F: DiskFile>(&mut self, used: &mut Used<F>) -> Result<Sequence, OpenError> {
        let segment = &used.segment;
        let mut reader = Reader::new(segment, self.identity, &mut self.memory);
        let mut next = used.first;
        while let Some((header, body)) = reader.frame_at(used.end).map_err(reading(segment, used.end))? {
            if (header.stamp, header.sequence) != (used.stamp, next) {
                break; // Left behind by an earlier use of the segment.
            }
            if next >= self.from {
                let records = body.records();
                let records =
                    records.ok_or_else(|| segment.damaged(used.end, "the records are malformed"))?;
                self.frames += 1;
                self.records += records.len() as u64;
                let place = || segment.place(used.end);
                (self.replay)(next, records)
                    .map_err(|cause| OpenError::NotUnderstood { place: place(), cause })?;
            }
            self.last = Some((used.end, header.frame_bytes));
            used.end += frame::taken_bytes(header.frame_bytes);
            next = next.next();
        }
        Ok(next)
    }
}

fn missing<F>(segment: &Segment<F>, offset: u64, sequence: Sequence, newer: &Place) -> OpenError {
    segment.damaged(offset, format!("frame {} is missing, and a newer one lies in {newer}", sequence.0))
}

/// Where the journal ends, and what lies around that.
struct End<'a, F> {
    identity: Identity,
    used: &'a [Used<F>],
    spare: &'a [Segment<F>],
    next: Sequence,
}

impl<F: DiskFile> End<'_, F> {
    /// Where a frame could have been begun that was not finished.
    fn beyond(&self) -> impl Iterator<Item = (&Segment<F>, u64)> {
        let tail = self.used.last().map(|tail| (&tail.segment, tail.end));
        tail.into_iter().chain(self.spare.iter().map(|segment| (segment, FRAMES_AT)))
    }

    fn refuse_newer_frames(&self, memory: &mut Vec<u8>) -> Result<(), OpenError> {
        for (segment, offset) in self.beyond() {
            let mut reader = Reader::new(segment, self.identity, memory);
            if let Some((newer_at, _)) = reader.find(offset, self.next).map_err(reading(segment, offset))? {
                let (tail, end) = self.beyond().next().expect("this segment, if no other");
                return Err(missing(tail, end, self.next, &segment.place(newer_at)));
            }
        }
        Ok(())
    }

    fn refuse_missing_frames(&self, from: Sequence) -> Result<(), OpenError> {
        match self.used.last() {
            Some(tail) if self.next < from => {
                let what =
                    format!("the journal ends before frame {}, and {} is asked for", self.next.0, from.0);
                Err(tail.segment.damaged(tail.end, what))
            }
            _ => Ok(()),
        }
    }

    fn torn(&self, memory: &mut Vec<u8>) -> Result<Option<Place>, OpenError> {
        for (segment, offset) in self.beyond() {
            let mut reader = Reader::new(segment, self.identity, memory);
            let header = reader.header_at(offset).map_err(reading(segment, offset))?;
            if header.is_some_and(|header| header.sequence == self.next) {
                return Ok(Some(segment.place(offset)));
            }
        }
        Ok(None)
    }
}

/// Writes the last frame once more. It may be seen and yet not be on disk: the process before us may have died
/// before its sync, or its sync may have failed, and then another sync alone would write nothing.
fn make_durable<F: DiskFile>(tail: &Segment<F>, offset: u64, frame_bytes: usize) -> Result<(), OpenError> {
    let mut bytes = vec![0; frame::taken_bytes(frame_bytes) as usize];
    tail.file.read_at(offset, &mut bytes).map_err(reading(tail, offset))?;
    let again = tail.file.write_at(offset, &bytes).and_then(|()| tail.file.sync());
    again.map_err(|cause| OpenError::Failed(tail.failure("writing again", offset, cause)))
}
