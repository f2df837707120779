//! The work that every design is given.

use std::time::Duration;

use punctual_core::Timestamp;

use crate::random::Random;

/// Microseconds in a tick, for all designs.
pub const TICK_MICROS: u64 = 1024;
/// When the work begins, some day in 2026.
const BEGIN: Timestamp = Timestamp::from_secs(1_794_000_000);
/// More churn than this tells nothing new.
const CHURN_MAX: usize = 500_000;

pub struct Load {
    /// When the timers that are waiting from the beginning are due.
    pub due_at: Vec<Timestamp>,
    /// Which of them are stopped, in this order.
    pub stopped: Vec<u32>,
    /// When the timers that are started in their place are due.
    pub started_at: Vec<Timestamp>,
    /// How many are stopped in a row, and then started in a row.
    pub batch: usize,
    /// How many ticks it takes until all have fired.
    pub ticks: u64,
}

impl Load {
    pub fn new(timers: u32, horizon_secs: u32, batch: usize) -> Self {
        let mut random = Random::new(7);
        let horizon_micros = u64::from(horizon_secs) * 1_000_000;
        let churn = (timers as usize / 2).min(CHURN_MAX);
        Load {
            due_at: times(&mut random, timers as usize, horizon_micros),
            stopped: random.sample(churn, timers),
            started_at: times(&mut random, churn, horizon_micros),
            batch,
            ticks: horizon_micros / TICK_MICROS + 1,
        }
    }

    /// When a tick begins; the work begins with tick 0.
    pub fn tick_at(tick: u64) -> Timestamp {
        Timestamp::from_micros(BEGIN.as_micros() + (tick * TICK_MICROS) as i64)
    }

    /// The first tick that begins at this time or later. No design may fire a timer before it.
    pub fn tick_not_before(at: Timestamp) -> u64 {
        ((at.as_micros() - BEGIN.as_micros()) as u64).div_ceil(TICK_MICROS)
    }
}

fn times(random: &mut Random, count: usize, horizon_micros: u64) -> Vec<Timestamp> {
    (0..count).map(|_| BEGIN + Duration::from_micros(1 + random.below(horizon_micros))).collect()
}
