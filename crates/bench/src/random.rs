//! Random numbers that are the same in every run (splitmix64), so that two runs measure the same work.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must be small beside 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// `count` different numbers below `bound`, in random order.
    pub fn sample(&mut self, count: usize, bound: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (0..bound).collect();
        for taken in 0..count {
            let other = taken + self.below(u64::from(bound) - taken as u64) as usize;
            all.swap(taken, other);
        }
        all.truncate(count);
        all
    }
}
