//! Chance that a seed repeats (splitmix64).

use std::time::Duration;

/// A sequence of numbers that depends on its seed alone.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The sequence of that seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A sequence of its own, so that what one part draws does not change what another gets.
    pub fn fork(&mut self) -> Dice {
        Dice(self.roll())
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..count`.
    pub fn below(&mut self, count: u64) -> u64 {
        self.roll() % count.max(1)
    }

    /// True so often in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// Up to that long, but not nothing.
    pub fn up_to(&mut self, max: Duration) -> Duration {
        Duration::from_micros(1 + self.below(max.as_micros() as u64))
    }
}
