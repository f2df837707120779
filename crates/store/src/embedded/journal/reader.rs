//! Reads the frames of a segment in large pieces.

use std::io;

use super::segment::Segment;
use crate::embedded::disk::{DiskFile, SECTOR};
use crate::embedded::frame::{Body, HEADER, Header, Identity, Sequence};

/// How much is read at a time.
const CHUNK: usize = 1 << 20;

/// Holds one piece of one segment. Its memory is used again for the next.
pub(super) struct Reader<'a, F> {
    segment: &'a Segment<F>,
    identity: Identity,
    piece: &'a mut Vec<u8>,
    piece_at: u64,
}

impl<'a, F: DiskFile> Reader<'a, F> {
    pub fn new(segment: &'a Segment<F>, identity: Identity, memory: &'a mut Vec<u8>) -> Reader<'a, F> {
        memory.clear();
        Reader { segment, identity, piece: memory, piece_at: 0 }
    }

    /// The header at this offset. The rest of its frame may be missing.
    pub fn header_at(&mut self, offset: u64) -> io::Result<Option<Header>> {
        let identity = self.identity;
        let bytes = self.bytes_at(offset, HEADER)?;
        Ok(bytes.and_then(|bytes| Header::read(bytes, identity)))
    }

    /// The frame at this offset, if it is whole.
    pub fn frame_at(&mut self, offset: u64) -> io::Result<Option<(Header, Body<'_>)>> {
        let Some(header) = self.header_at(offset)? else { return Ok(None) };
        let identity = self.identity;
        let bytes = self.bytes_at(offset, header.frame_bytes)?;
        let body = bytes.and_then(|bytes| header.body(bytes, identity));
        Ok(body.map(|body| (header, body)))
    }

    /// The first whole frame from this offset on that has this sequence or a higher one.
    pub fn find(&mut self, offset: u64, at_least: Sequence) -> io::Result<Option<(u64, Sequence)>> {
        for offset in (offset..self.segment.bytes).step_by(SECTOR) {
            let Some(header) = self.header_at(offset)? else { continue };
            if header.sequence >= at_least && self.frame_at(offset)?.is_some() {
                return Ok(Some((offset, header.sequence)));
            }
        }
        Ok(None)
    }

    /// So many bytes at this offset, or a few more; nothing if the segment ends before that.
    fn bytes_at(&mut self, offset: u64, count: usize) -> io::Result<Option<&[u8]>> {
        let left = self.segment.bytes.saturating_sub(offset);
        if left < count as u64 {
            return Ok(None);
        }
        let piece_end = self.piece_at + self.piece.len() as u64;
        if offset < self.piece_at || offset + count as u64 > piece_end {
            let length = (count.max(CHUNK) as u64).min(left);
            self.piece.resize(length as usize, 0);
            self.piece_at = offset;
            self.segment.file.read_at(offset, self.piece)?;
        }
        Ok(self.piece.get((offset - self.piece_at) as usize..))
    }
}
