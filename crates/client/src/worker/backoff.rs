//! How long to leave a server alone that does not answer: longer and longer, and never quite the same.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);
/// No server may send a worker away for longer.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Backoff {
    failures: u32,
    random: u64,
}

impl Backoff {
    /// Workers of one name wait alike, if they also lie at the same place in memory.
    pub fn new(name: &str) -> Backoff {
        // Where the system puts things differs from process to process, and that is all the chance that is needed.
        let place = std::ptr::from_ref(name).addr() as u64;
        let random = name.bytes().fold(place, |sum, byte| sum.rotate_left(5) ^ u64::from(byte));
        Backoff { failures: 0, random }
    }

    /// The server has answered.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The server has not answered. Wait that long.
    pub fn next(&mut self, retry_after: Option<Duration>) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures += 1;
        let half = whole / 2;
        let spread = half.mul_f64(self.fraction());
        retry_after.map_or(half, |after| after.min(RETRY_AFTER_MAX)).max(half) + spread
    }

    /// From 0 to 1, as chance will have it (splitmix64).
    fn fraction(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f64::from((bits >> 32) as u32) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_limit_and_begin_again() {
        let mut backoff = Backoff::new("test");
        let waits: Vec<Duration> = (0..100).map(|_| backoff.next(None)).collect();
        assert!(waits[0] >= FIRST / 2 && waits[0] <= FIRST, "{waits:?}");
        assert!(waits[99] >= LONGEST / 2 && waits[99] <= LONGEST, "{waits:?}");
        backoff.reset();
        assert!(backoff.next(None) <= FIRST);
    }

    #[test]
    fn the_server_is_obeyed_within_reason() {
        let mut backoff = Backoff::new("test");
        assert!(backoff.next(Some(Duration::from_secs(7))) >= Duration::from_secs(7));
        assert!(backoff.next(Some(Duration::from_secs(86_400))) <= RETRY_AFTER_MAX + LONGEST);
    }
}
