//! How full things are, for whoever watches: noted as it changes, so that looking costs nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use super::journal::{Options, Usage};

/// How full a store in a folder is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gauges {
    /// Bytes of journal segments whose rows are not in the tables yet: read again at the next start.
    pub journal_bytes: u64,
    /// Bytes of segments kept back, so that ends can be recorded on a full disk.
    pub reserve_bytes: u64,
    /// What the reserve should be.
    pub reserve_wanted_bytes: u64,
    /// Bytes of rows in memory that are not in the tables yet.
    pub memory_bytes: u64,
    /// Bytes of the tables.
    pub tables_bytes: u64,
}

/// What the journal's writer notes.
pub struct JournalGauges {
    segment_bytes: u64,
    reserved_segments: u64,
    used_bytes: AtomicU64,
    ready_segments: AtomicU64,
}

impl JournalGauges {
    pub fn new(options: &Options) -> JournalGauges {
        JournalGauges {
            segment_bytes: options.segment_bytes,
            reserved_segments: options.reserved_segments as u64,
            used_bytes: AtomicU64::default(),
            ready_segments: AtomicU64::default(),
        }
    }

    pub fn note(&self, usage: Usage) {
        self.used_bytes.store(usage.used_bytes, Ordering::Relaxed);
        self.ready_segments.store(usage.ready_segments as u64, Ordering::Relaxed);
    }

    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// What is kept back, and what should be.
    pub fn reserve_bytes(&self) -> (u64, u64) {
        let ready = self.ready_segments.load(Ordering::Relaxed).min(self.reserved_segments);
        (ready * self.segment_bytes, self.reserved_segments * self.segment_bytes)
    }
}
