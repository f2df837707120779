//! The coordination map: small values with a version and an expiry.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use bytes::Bytes;
use punctual_core::Timestamp;

use crate::expiry::{SWEEP_AFTER, SWEPT_MAX};
use crate::{MapEntry, Swap};

/// The map, and one growing version for all of its keys.
#[derive(Default)]
pub(super) struct CoordinationMap {
    entries: BTreeMap<Box<str>, Entry>,
    expiries: BTreeSet<(Timestamp, Box<str>)>,
    version: u64,
}

struct Entry {
    entry: MapEntry,
    expires_at: Option<Timestamp>,
}

impl Entry {
    fn live(&self, now: Timestamp) -> Option<&MapEntry> {
        self.expires_at.is_none_or(|at| now < at).then_some(&self.entry)
    }
}

impl CoordinationMap {
    pub fn get(&self, now: Timestamp, key: &str) -> Option<MapEntry> {
        self.entries.get(key)?.live(now).cloned()
    }

    pub fn entries(
        &self,
        now: Timestamp,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<(Box<str>, MapEntry)> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        self.entries
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter_map(|(key, entry)| Some((key.clone(), entry.live(now)?.clone())))
            .take(limit)
            .collect()
    }

    pub fn compare_and_set(
        &mut self,
        now: Timestamp,
        key: &str,
        expected: Option<u64>,
        value: Option<Bytes>,
        expires_at: Option<Timestamp>,
    ) -> Swap {
        let present = self.get(now, key);
        if present.as_ref().map(|entry| entry.version) != expected {
            return Swap::Conflict(present);
        }
        self.sweep(now);
        self.remove(key);
        let Some(value) = value else {
            return Swap::Done(None);
        };
        self.version += 1;
        let entry = MapEntry { value, version: self.version };
        if let Some(at) = expires_at {
            self.expiries.insert((at, key.into()));
        }
        self.entries.insert(key.into(), Entry { entry, expires_at });
        Swap::Done(Some(self.version))
    }

    fn remove(&mut self, key: &str) {
        if let Some(Entry { expires_at: Some(at), .. }) = self.entries.remove(key) {
            self.expiries.remove(&(at, key.into()));
        }
    }

    fn sweep(&mut self, now: Timestamp) {
        for _ in 0..SWEPT_MAX {
            let Some((at, _)) = self.expiries.first() else { return };
            if *at + SWEEP_AFTER > now {
                return;
            }
            if let Some((_, key)) = self.expiries.pop_first() {
                self.entries.remove(&key);
            }
        }
    }
}
