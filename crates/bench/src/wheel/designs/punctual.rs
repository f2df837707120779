//! Ours: the hierarchical wheel of `punctual-core`.

use punctual_core::Timestamp;
use punctual_core::wheel::{TimerKey, Wheel};

use super::Timers;

pub struct Punctual(Wheel<u32>);

impl Timers for Punctual {
    type Key = TimerKey;
    const NAME: &'static str = "Punctual (hierarchical wheel)";
    const WEAKNESS: &'static str = "refiling";

    fn new(now: Timestamp, _horizon_ticks: u64) -> Self {
        Punctual(Wheel::new(now))
    }

    fn start(&mut self, at: Timestamp, item: u32) -> TimerKey {
        self.0.start(at, item)
    }

    fn stop(&mut self, key: TimerKey) {
        self.0.stop(key);
    }

    fn advance(&mut self, now: Timestamp, due: &mut Vec<u32>) {
        self.0.advance(now, due);
    }
}
