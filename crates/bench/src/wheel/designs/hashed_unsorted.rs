//! The hashed wheel with unsorted slots: a tick walks past everything in its slot that is due in a later turn.

use punctual_core::Timestamp;

use super::Timers;
use super::chains::{Chains, END};
use crate::wheel::load::Load;

/// Eight times what Netty's `HashedWheelTimer` takes unless told otherwise.
pub const SLOTS: usize = 4096;

pub fn slot_of(tick: u64) -> usize {
    tick as usize % SLOTS
}

pub struct HashedUnsorted {
    chains: Chains,
    tick: u64,
}

impl Timers for HashedUnsorted {
    type Key = u32;
    const NAME: &'static str = "hashed wheel, unsorted (4096 slots)";
    const WEAKNESS: &'static str = "O(n) tick";

    fn new(_now: Timestamp, _horizon_ticks: u64) -> Self {
        HashedUnsorted { chains: Chains::new(SLOTS), tick: 0 }
    }

    fn start(&mut self, at: Timestamp, item: u32) -> u32 {
        let tick = Load::tick_not_before(at);
        self.chains.insert(slot_of(tick), END, tick, item)
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

impl HashedUnsorted {
    fn fire(&mut self, due: &mut Vec<u32>) {
        let slot = slot_of(self.tick);
        let mut index = self.chains.first(slot);
        while index != END {
            let link = self.chains.link(index);
            if link.tick <= self.tick {
                due.push(link.item);
                self.chains.remove(slot, index);
            }
            index = link.next;
        }
    }
}
