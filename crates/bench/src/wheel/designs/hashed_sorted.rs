//! The hashed wheel with sorted slots: a start walks past everything in its slot that is due before.

use punctual_core::Timestamp;

use super::Timers;
use super::chains::{Chains, END};
use super::hashed_unsorted::{SLOTS, slot_of};
use crate::wheel::load::Load;

pub struct HashedSorted {
    chains: Chains,
    tick: u64,
}

impl Timers for HashedSorted {
    type Key = u32;
    const NAME: &'static str = "hashed wheel, sorted (4096 slots)";
    const WEAKNESS: &'static str = "O(n) start";

    fn new(_now: Timestamp, _horizon_ticks: u64) -> Self {
        HashedSorted { chains: Chains::new(SLOTS), tick: 0 }
    }

    fn start(&mut self, at: Timestamp, item: u32) -> u32 {
        let tick = Load::tick_not_before(at);
        let prev = self.last_before(tick);
        self.chains.insert(slot_of(tick), prev, tick, item)
    }

    fn stop(&mut self, key: u32) {
        let slot = slot_of(self.chains.link(key).tick);
        self.chains.remove(slot, key);
    }

    fn advance(&mut self, now: Timestamp, due: &mut Vec<u32>) {
        while self.tick < Load::tick_not_before(now) {
            self.tick += 1;
            self.fire(due);
        }
    }
}

impl HashedSorted {
    fn last_before(&self, tick: u64) -> u32 {
        let mut prev = END;
        let mut index = self.chains.first(slot_of(tick));
        while index != END {
            let link = self.chains.link(index);
            if link.tick >= tick {
                break;
            }
            prev = index;
            index = link.next;
        }
        prev
    }

    fn fire(&mut self, due: &mut Vec<u32>) {
        let slot = slot_of(self.tick);
        loop {
            let index = self.chains.first(slot);
            if index == END || self.chains.link(index).tick > self.tick {
                return;
            }
            due.push(self.chains.link(index).item);
            self.chains.remove(slot, index);
        }
    }
}
