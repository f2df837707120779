//! A file twice: as it is seen, and as a crash would leave it.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

use super::super::SECTOR;

/// The sectors of a file, however long it is.
pub(super) const ALL: Range<usize> = 0..usize::MAX;

#[derive(Default)]
pub(super) struct Contents {
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// The sectors that the next sync writes. One that differs and is not in here was forgotten by a failed sync.
    unsynced: BTreeSet<usize>,
}

impl Contents {
    pub fn seen(&self) -> &[u8] {
        &self.seen
    }

    pub fn unsynced_sectors(&self) -> usize {
        self.unsynced.len()
    }

    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.seen.get(from..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let from = usize::try_from(offset).expect("a simulated file is small");
        let (end, old_end) = (from + bytes.len(), self.seen.len());
        if bytes.is_empty() {
            return;
        }
        if end > old_end {
            self.seen.resize(end, 0);
        }
        self.seen[from..end].copy_from_slice(bytes);
        // A hole before the bytes makes the file longer too.
        self.unsynced.extend(from.min(old_end) / SECTOR..end.div_ceil(SECTOR));
    }

    pub fn sync(&mut self, sectors: &Range<usize>) {
        self.fail_to_sync(sectors, || true);
    }

    /// Some sectors of these are written, the others forgotten: what is seen stays, and no later sync writes it.
    pub fn fail_to_sync(&mut self, sectors: &Range<usize>, mut is_written: impl FnMut() -> bool) {
        let unsynced: Vec<usize> = self.unsynced.extract_if(sectors.clone(), |_| true).collect();
        for sector in unsynced {
            if is_written() {
                self.keep(sector);
            }
        }
    }

    pub fn crash(&mut self, is_written: impl FnMut() -> bool) {
        self.fail_to_sync(&ALL, is_written);
        self.seen.clone_from(&self.durable);
    }

    pub fn flip(&mut self, offset: usize, mask: u8) {
        for version in [&mut self.seen, &mut self.durable] {
            if let Some(byte) = version.get_mut(offset) {
                *byte ^= mask;
            }
        }
    }

    fn keep(&mut self, sector: usize) {
        let from = sector * SECTOR;
        let end = (from + SECTOR).min(self.seen.len());
        if self.durable.len() < end {
            self.durable.resize(end, 0);
        }
        self.durable[from..end].copy_from_slice(&self.seen[from..end]);
    }
}
