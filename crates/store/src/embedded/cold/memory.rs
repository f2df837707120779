//! A cold tier that lasts as long as whoever holds it: for simulations, in which the process dies and this does not.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use super::{ColdTier, Entry};
use crate::StoreError;

/// Rows in a tree. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryTier {
    rows: Arc<Mutex<BTreeMap<Bytes, Bytes>>>,
    plan: Arc<Mutex<Plan>>,
}

/// How an ingestion ends when it does not succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TierFault {
    /// The power goes before anything counts.
    CrashBefore,
    /// The power goes when everything counts, and nobody hears of it.
    CrashAfter,
    /// The device says that it could not.
    Io,
    /// There is no room.
    NoSpace,
}

/// How ingestions to come will end.
#[derive(Default)]
struct Plan {
    ingested: u64,
    faults: BTreeMap<u64, TierFault>,
    is_full: bool,
}

/// So many rows are read at once, so that the lock is not held while somebody looks at them.
const PAGE: usize = 256;

impl MemoryTier {
    fn rows(&self) -> MutexGuard<'_, BTreeMap<Bytes, Bytes>> {
        self.rows.lock().expect("nothing panics while it is held")
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().expect("nothing panics while it is held")
    }

    /// Lets the nth ingestion from now (the next one is the first) end this way.
    pub fn fail_at(&self, nth: u64, fault: TierFault) {
        let mut plan = self.plan();
        let nth = plan.ingested + nth;
        plan.faults.insert(nth, fault);
    }

    /// Says from now on that there is no room, or that there is.
    pub fn set_full(&self, is_full: bool) {
        self.plan().is_full = is_full;
    }

    /// How many ingestions were tried.
    pub fn ingestions(&self) -> u64 {
        self.plan().ingested
    }

    /// Counts an ingestion, and says how it is to end.
    fn begin(&self) -> Option<TierFault> {
        let mut plan = self.plan();
        plan.ingested += 1;
        let nth = plan.ingested;
        plan.faults.remove(&nth)
    }

    fn page(&self, from: Bound<&[u8]>, until: &[u8]) -> Vec<(Bytes, Bytes)> {
        let page = |rows: MutexGuard<'_, BTreeMap<Bytes, Bytes>>| {
            let rows = rows.range::<[u8], _>((from, Bound::Excluded(until)));
            rows.take(PAGE).map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        match from {
            Bound::Included(first) | Bound::Excluded(first) if first >= until => Vec::new(),
            _ => page(self.rows()),
        }
    }
}

impl ColdTier for MemoryTier {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.rows().get(key).cloned())
    }

    fn range<'a>(
        &'a self,
        from: &[u8],
        until: &[u8],
    ) -> Box<dyn Iterator<Item = Result<(Bytes, Bytes), StoreError>> + 'a> {
        let until = until.to_vec();
        let first = self.page(Bound::Included(from), &until);
        let pages = std::iter::successors(Some(first), move |page| {
            let last = page.last().filter(|_| page.len() == PAGE)?;
            Some(self.page(Bound::Excluded(&last.0), &until))
        });
        Box::new(pages.flatten().map(Ok))
    }

    fn ingest(&self, entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>) -> Result<(), StoreError> {
        let entries: Vec<Entry> = entries.collect::<Result<_, _>>()?;
        assert!(entries.is_sorted_by(|one, next| one.0 < next.0), "entries come in order, each key once");
        let fault = self.begin();
        if let Some(fault) = fault.filter(|fault| *fault != TierFault::CrashAfter) {
            return Err(fault.error());
        }
        let mut rows = self.rows();
        for (key, value) in entries {
            let key = Bytes::copy_from_slice(key.as_slice());
            match value {
                Some(value) => _ = rows.insert(key, value),
                None => _ = rows.remove(&key),
            }
        }
        fault.map_or(Ok(()), |fault| Err(fault.error()))
    }

    fn has_room(&self, _bytes: u64) -> bool {
        !self.plan().is_full
    }

    fn disk_bytes(&self) -> u64 {
        self.rows().iter().map(|(key, value)| (key.len() + value.len()) as u64).sum()
    }
}

impl TierFault {
    fn error(self) -> StoreError {
        match self {
            TierFault::CrashBefore | TierFault::CrashAfter => {
                StoreError::Unavailable("the power is off".into())
            }
            TierFault::Io => StoreError::Unavailable("the device failed".into()),
            TierFault::NoSpace => StoreError::Full,
        }
    }
}
