//! The simple wheel: a slot for every tick up to the horizon. Nothing beyond the horizon can be started.

use punctual_core::Timestamp;

use super::Timers;
use super::chains::{Chains, END};
use crate::wheel::load::Load;

pub struct SimpleWheel {
    chains: Chains,
    slots: u64,
    tick: u64,
}

impl Timers for SimpleWheel {
    type Key = u32;
    const NAME: &'static str = "simple wheel";
    const WEAKNESS: &'static str = "a slot per tick";

    fn new(_now: Timestamp, horizon_ticks: u64) -> Self {
        let slots = horizon_ticks + 1;
        SimpleWheel { chains: Chains::new(slots as usize), slots, tick: 0 }
    }

    fn start(&mut self, at: Timestamp, item: u32) -> u32 {
        let tick = Load::tick_not_before(at);
        assert!(tick - self.tick < self.slots, "{at:?} is beyond the horizon");
        self.chains.insert((tick % self.slots) as usize, END, tick, item)
    }

    fn stop(&mut self, key: u32) {
        let slot = self.chains.link(key).tick % self.slots;
        self.chains.remove(slot as usize, key);
    }

    fn advance(&mut self, now: Timestamp, due: &mut Vec<u32>) {
        while self.tick < Load::tick_not_before(now) {
            self.tick += 1;
            self.fire((self.tick % self.slots) as usize, due);
        }
    }
}

impl SimpleWheel {
    fn fire(&mut self, slot: usize, due: &mut Vec<u32>) {
        let mut index = self.chains.first(slot);
        while index != END {
            let link = self.chains.link(index);
            due.push(link.item);
            self.chains.remove(slot, index);
            index = link.next;
        }
    }
}
