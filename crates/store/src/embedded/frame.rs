//! How a group of records looks at rest: a frame, which is read whole or not at all.
//!
//! ```text
//!   0      4            8          16      24         32       36       40
//!   magic │ header sum │ checksum │ stamp │ sequence │ length │ records │ { length, bytes } …
//!                                 └────────── header sum ───────────────┘
//!                                 └────────── checksum ─────────────────────────────────────┘
//! ```
//!
//! Little-endian. The sums are seeded with the journal's identity, so that what was copied here from elsewhere is
//! not taken for ours. The short one makes the length trustworthy before the body is read. Pure functions: nothing
//! in here can fail but by answering that there is no frame.

mod batch;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::disk::SECTOR;
pub use batch::{Batch, Records};

/// What the system keeps in memory as one piece. Each write ends with one.
pub const PAGE: usize = 4096;
/// The bytes before the records.
pub const HEADER: usize = 40;

const MAGIC: u32 = u32::from_le_bytes(*b"PFr1");
const SUMMED_FROM: usize = 16;

/// The number of a frame. The first is 0, and there are no gaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The one after this.
    pub fn next(self) -> Sequence {
        Sequence(self.0 + 1)
    }
}

/// Which use of which segment a frame belongs to: grows each time a segment is begun. It tells the frames of
/// this use from those that an earlier one left behind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Stamp(pub u64);

/// Tells one journal from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Identity(pub u64);

/// The records of one frame, gathered to be written. Used again and again.
#[derive(Debug)]
pub struct FrameBuffer {
    /// The header's room, the records, and after sealing zeros.
    bytes: Vec<u8>,
    end: usize,
    records: u32,
}

impl Default for FrameBuffer {
    fn default() -> Self {
        FrameBuffer { bytes: vec![0; HEADER], end: HEADER, records: 0 }
    }
}

impl FrameBuffer {
    /// Makes it empty, and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER);
        (self.end, self.records) = (HEADER, 0);
    }

    /// Adds the records of a batch.
    pub fn push(&mut self, batch: &Batch) {
        self.bytes.truncate(self.end);
        self.bytes.extend_from_slice(batch.bytes());
        self.end = self.bytes.len();
        self.records += batch.len();
    }

    /// How long the frame is.
    pub fn frame_bytes(&self) -> usize {
        self.end
    }

    /// How much of it are records.
    pub fn records_bytes(&self) -> usize {
        self.end - HEADER
    }

    /// The records in it, in order.
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.bytes[HEADER..self.end], self.records).expect("a batch holds whole records")
    }

    /// Writes the header, and hands out the bytes from `offset` of a segment on: the frame, and zeros up to the end
    /// of its last page.
    pub fn seal(&mut self, identity: Identity, stamp: Stamp, sequence: Sequence, offset: u64) -> &[u8] {
        self.bytes.truncate(self.end);
        let length = u32::try_from(self.end - HEADER).expect("a frame is smaller than a segment");
        self.bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        self.bytes[16..24].copy_from_slice(&stamp.0.to_le_bytes());
        self.bytes[24..32].copy_from_slice(&sequence.0.to_le_bytes());
        self.bytes[32..36].copy_from_slice(&length.to_le_bytes());
        self.bytes[36..40].copy_from_slice(&self.records.to_le_bytes());
        let header_sum = header_sum(&self.bytes[SUMMED_FROM..HEADER], identity);
        self.bytes[4..8].copy_from_slice(&header_sum.to_le_bytes());
        let checksum = xxh3_64_with_seed(&self.bytes[SUMMED_FROM..], identity.0);
        self.bytes[8..16].copy_from_slice(&checksum.to_le_bytes());
        let written = written_bytes(offset, self.end);
        self.bytes.resize(written, 0);
        &self.bytes
    }
}

/// How many bytes are written for a frame that begins at this offset.
pub fn written_bytes(offset: u64, frame_bytes: usize) -> usize {
    let into_page = (offset % PAGE as u64) as usize;
    (into_page + frame_bytes).next_multiple_of(PAGE) - into_page
}

/// How many bytes lie between the begin of a frame and that of the next: each begins on a sector.
pub fn taken_bytes(frame_bytes: usize) -> u64 {
    frame_bytes.next_multiple_of(SECTOR) as u64
}

/// What the header of a frame says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Which use of a segment it was written in.
    pub stamp: Stamp,
    /// Its number.
    pub sequence: Sequence,
    /// How long the frame is, header and all.
    pub frame_bytes: usize,
    records: u32,
    checksum: u64,
}

impl Header {
    /// The header at the begin of these bytes, if there is one. The rest of the frame may be missing all the same.
    pub fn read(bytes: &[u8], identity: Identity) -> Option<Header> {
        let header = bytes.first_chunk::<HEADER>()?;
        let is_ours =
            u32_at(header, 0) == MAGIC && u32_at(header, 4) == header_sum(&header[SUMMED_FROM..], identity);
        is_ours.then(|| Header {
            stamp: Stamp(u64_at(header, 16)),
            sequence: Sequence(u64_at(header, 24)),
            frame_bytes: HEADER + u32_at(header, 32) as usize,
            records: u32_at(header, 36),
            checksum: u64_at(header, 8),
        })
    }

    /// The body of the frame that these bytes begin with, if it is all there.
    pub fn body<'a>(&self, bytes: &'a [u8], identity: Identity) -> Option<Body<'a>> {
        let frame = bytes.get(..self.frame_bytes)?;
        let is_whole = xxh3_64_with_seed(&frame[SUMMED_FROM..], identity.0) == self.checksum;
        is_whole.then(|| Body { bytes: &frame[HEADER..], records: self.records })
    }
}

/// What was in a frame whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    bytes: &'a [u8],
    records: u32,
}

impl<'a> Body<'a> {
    /// The records in it, if it was written as we do.
    pub fn records(self) -> Option<Records<'a>> {
        Records::new(self.bytes, self.records)
    }
}

/// Half of the hash is enough to keep a length from being believed by accident.
fn header_sum(fields: &[u8], identity: Identity) -> u32 {
    xxh3_64_with_seed(fields, !identity.0) as u32
}

fn u32_at(bytes: &[u8; HEADER], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8; HEADER], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests;
