//! What is compared: one file per design, all behind one trait.

pub mod chains;
pub mod delay_queue;
pub mod hashed_sorted;
pub mod hashed_unsorted;
pub mod heap;
pub mod punctual;
pub mod simple;
pub mod tree;

use punctual_core::Timestamp;

/// Something that keeps timers.
pub trait Timers {
    type Key: Copy;
    const NAME: &'static str;
    /// What takes long, when it takes too long.
    const WEAKNESS: &'static str;
    /// Whether it asks a clock that must be moved for it.
    const NEEDS_CLOCK: bool = false;

    fn new(now: Timestamp, horizon_ticks: u64) -> Self;
    fn start(&mut self, at: Timestamp, item: u32) -> Self::Key;
    fn stop(&mut self, key: Self::Key);
    /// Appends everything due by `now`, the beginning of a tick.
    fn advance(&mut self, now: Timestamp, due: &mut Vec<u32>);
    fn move_clock(&mut self, _now: Timestamp) {}
}
