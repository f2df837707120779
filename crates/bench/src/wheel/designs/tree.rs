//! The standard library's ordered map, by time and a number that makes keys unique.

use std::collections::BTreeMap;

use punctual_core::Timestamp;

use super::Timers;

#[derive(Default)]
pub struct Tree {
    entries: BTreeMap<(Timestamp, u64), u32>,
    started: u64,
}

impl Timers for Tree {
    type Key = (Timestamp, u64);
    const NAME: &'static str = "std BTreeMap";
    const WEAKNESS: &'static str = "O(log n) everything";

    fn new(_now: Timestamp, _horizon_ticks: u64) -> Self {
        Tree::default()
    }

    fn start(&mut self, at: Timestamp, item: u32) -> Self::Key {
        let key = (at, self.started);
        self.started += 1;
        self.entries.insert(key, item);
        key
    }

    fn stop(&mut self, key: Self::Key) {
        self.entries.remove(&key);
    }

    fn advance(&mut self, now: Timestamp, due: &mut Vec<u32>) {
        while let Some(first) = self.entries.first_entry()
            && first.key().0 <= now
        {
            due.push(first.remove());
        }
    }
}
