//! A file of the journal: a first page that is written once, and room for frames.

use std::io;

use xxhash_rust::xxh3::xxh3_64;

use super::error::{Failure, OpenError, Place};
use crate::embedded::disk::{Disk, DiskFile};
use crate::embedded::frame::{Identity, PAGE};

/// Where the first frame of a segment lies.
pub(super) const FRAMES_AT: u64 = PAGE as u64;
/// The newest format that is known here.
pub(super) const FORMAT: u32 = 1;

const MAGIC: [u8; 8] = *b"PunctJnl";
/// Magic, format, identity, size, checksum. Their places are the same in every format to come.
const ABOUT: usize = 40;
const PREFIX: &str = "segment-";
const UNFINISHED: &str = ".new";

/// A file, ready for frames or with frames in it.
pub(super) struct Segment<F> {
    pub name: String,
    pub file: F,
    pub bytes: u64,
}

impl<F> Segment<F> {
    pub fn place(&self, offset: u64) -> Place {
        Place { file: self.name.clone(), offset }
    }

    pub fn failure(&self, deed: &str, offset: u64, cause: io::Error) -> Failure {
        Failure::new(format!("{deed} {}", self.place(offset)), cause)
    }

    pub fn damaged(&self, offset: u64, what: impl Into<String>) -> OpenError {
        OpenError::Damaged { place: self.place(offset), what: what.into() }
    }
}

impl<F: DiskFile> Segment<F> {
    /// A write found no room. Part of it may be there, of which a crash keeps some: that is no frame, and the next one
    /// lies over it. But if only the zeros behind it found no room, or its sync when it was written past the cache, the
    /// frame is whole, and whoever opens the journal next would take it for written. So it is: written again, because a
    /// sync that succeeds proves nothing of what does not wait for it.
    pub fn write_what_is_there(&self, offset: u64, frame: &[u8]) -> Result<bool, Failure> {
        let mut there = vec![0; frame.len()];
        self.file.read_at(offset, &mut there).map_err(|cause| self.failure("reading", offset, cause))?;
        if there != frame {
            return Ok(false);
        }
        self.file.write_at(offset, frame).map_err(|cause| self.failure("writing", offset, cause))?;
        Ok(true)
    }
}

/// What a file's name says it is.
pub(super) enum Named {
    Segment(u64),
    /// Its making was interrupted: nothing was ever written to it but zeros.
    Unfinished,
    Other,
}

pub(super) fn named(name: &str) -> Named {
    let Some(rest) = name.strip_prefix(PREFIX) else { return Named::Other };
    match (rest.strip_suffix(UNFINISHED), rest.parse()) {
        (Some(_), _) => Named::Unfinished,
        (None, Ok(number)) => Named::Segment(number),
        (None, Err(_)) => Named::Other,
    }
}

pub(super) fn name(number: u64) -> String {
    format!("{PREFIX}{number:06}")
}

pub(super) fn unfinished_name(number: u64) -> String {
    format!("{}{UNFINISHED}", name(number))
}

pub(super) fn first_page(identity: Identity, bytes: u64) -> [u8; PAGE] {
    let mut page = [0; PAGE];
    page[0..8].copy_from_slice(&MAGIC);
    page[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    page[16..24].copy_from_slice(&identity.0.to_le_bytes());
    page[24..32].copy_from_slice(&bytes.to_le_bytes());
    let checksum = xxh3_64(&page[..ABOUT - 8]);
    page[32..40].copy_from_slice(&checksum.to_le_bytes());
    page
}

/// Opens a segment, and refuses it unless its first page and its length are as they were made.
pub(super) fn open<D: Disk>(disk: &D, name: String) -> Result<(Segment<D::File>, Identity), OpenError> {
    let failed = |cause| OpenError::Failed(Failure::new(format!("opening {name}"), cause));
    let file = disk.open(&name).map_err(failed)?;
    let length = file.len().map_err(failed)?;
    let mut about = [0; ABOUT];
    if length >= ABOUT as u64 {
        file.read_at(0, &mut about).map_err(failed)?;
    }
    let segment = Segment { name, file, bytes: length };
    let (identity, bytes) = read_about(&segment, &about)?;
    if bytes != length {
        return Err(segment.damaged(length, format!("it is {length} bytes long, and was made with {bytes}")));
    }
    Ok((segment, identity))
}

fn read_about<F>(segment: &Segment<F>, about: &[u8; ABOUT]) -> Result<(Identity, u64), OpenError> {
    let number = |at: usize| u64::from_le_bytes(about[at..at + 8].try_into().expect("eight bytes"));
    if about[0..8] != MAGIC || number(32) != xxh3_64(&about[..ABOUT - 8]) {
        return Err(segment.damaged(0, "this is not the begin of a segment"));
    }
    let format = u32::from_le_bytes(about[8..12].try_into().expect("four bytes"));
    if format > FORMAT {
        return Err(OpenError::Newer { file: segment.name.clone(), format, known: FORMAT });
    }
    Ok((Identity(number(16)), number(24)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::disk::SimulatedDisk;

    fn open_page(page: &[u8]) -> Result<(u64, Identity), OpenError> {
        let disk = SimulatedDisk::new(0);
        disk.create("segment-000001").expect("created").write_at(0, page).expect("written");
        let (segment, identity) = open(&disk, "segment-000001".into())?;
        Ok((segment.bytes, identity))
    }

    #[test]
    fn a_first_page_says_what_was_made() {
        let page = first_page(Identity(7), PAGE as u64);
        assert_eq!(open_page(&page).expect("opened"), (PAGE as u64, Identity(7)));
    }

    #[test]
    fn a_spoiled_first_page_and_a_wrong_length_are_damage() {
        let good = first_page(Identity(7), PAGE as u64);
        for at in 0..ABOUT {
            let mut page = good;
            page[at] ^= 1;
            assert!(matches!(open_page(&page), Err(OpenError::Damaged { .. })), "byte {at}");
        }
        for length in [0, 10, PAGE - 1] {
            assert!(matches!(open_page(&good[..length]), Err(OpenError::Damaged { .. })), "{length} bytes");
        }
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let mut page = first_page(Identity(7), PAGE as u64);
        page[8] = 2;
        let checksum = xxh3_64(&page[..ABOUT - 8]);
        page[32..40].copy_from_slice(&checksum.to_le_bytes());
        let error = open_page(&page).expect_err("newer");
        assert_eq!(error.to_string(), "segment-000001 has format 2, and 1 is the newest that is known here");
    }

    #[test]
    fn names_tell_segments_from_what_was_left_unfinished() {
        assert!(matches!(named(&name(12)), Named::Segment(12)));
        assert!(matches!(named(&unfinished_name(12)), Named::Unfinished));
        assert!(matches!(named("lock"), Named::Other));
        assert!(matches!(named("segment-of-a-cake"), Named::Other));
    }
}
