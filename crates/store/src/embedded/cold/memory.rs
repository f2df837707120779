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
}

/// So many rows are read at once, so that the lock is not held while somebody looks at them.
const PAGE: usize = 256;

impl MemoryTier {
    fn rows(&self) -> MutexGuard<'_, BTreeMap<Bytes, Bytes>> {
        self.rows.lock().expect("nothing panics while it is held")
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
        let mut rows = self.rows();
        for (key, value) in entries {
            let key = Bytes::copy_from_slice(key.as_slice());
            match value {
                Some(value) => _ = rows.insert(key, value),
                None => _ = rows.remove(&key),
            }
        }
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        self.rows().iter().map(|(key, value)| (key.len() + value.len()) as u64).sum()
    }
}
