//! The standard library's heap. It cannot remove from the middle, so a stopped timer stays until its time comes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use punctual_core::Timestamp;

use super::Timers;

#[derive(Default)]
pub struct Heap {
    entries: BinaryHeap<Reverse<(Timestamp, u32, u32)>>,
    /// Whether the timer of each key is still wanted.
    wanted: Vec<bool>,
    /// Keys whose entry has left the heap.
    free: Vec<u32>,
}

impl Timers for Heap {
    type Key = u32;
    const NAME: &'static str = "std BinaryHeap (lazy stop)";
    const WEAKNESS: &'static str = "O(log n) tick";

    fn new(_now: Timestamp, _horizon_ticks: u64) -> Self {
        Heap::default()
    }

    fn start(&mut self, at: Timestamp, item: u32) -> u32 {
        let key = self.free.pop().unwrap_or_else(|| {
            self.wanted.push(true);
            self.wanted.len() as u32 - 1
        });
        self.wanted[key as usize] = true;
        self.entries.push(Reverse((at, key, item)));
        key
    }

    fn stop(&mut self, key: u32) {
        self.wanted[key as usize] = false;
    }

    fn advance(&mut self, now: Timestamp, due: &mut Vec<u32>) {
        while let Some(&Reverse((at, key, item))) = self.entries.peek()
            && at <= now
        {
            self.entries.pop();
            self.free.push(key);
            if self.wanted[key as usize] {
                due.push(item);
            }
        }
    }
}
