//! How often a key may ask: tokens that come back evenly, up to a burst.

use std::sync::Mutex;

use punctual_core::BootTime;

/// The tokens of one key.
#[derive(Default)]
pub struct Bucket(Mutex<Option<Tokens>>);

struct Tokens {
    left: f64,
    at: BootTime,
}

impl Bucket {
    /// Takes a token, if there is one.
    pub fn take(&self, now: BootTime, per_second: u32, burst: u32) -> bool {
        let mut tokens = self.0.lock().expect("nothing panics while it is held");
        let (per_second, burst) = (f64::from(per_second), f64::from(burst.max(1)));
        let tokens = tokens.get_or_insert(Tokens { left: burst, at: now });
        let passed = now.since(tokens.at).as_secs_f64();
        tokens.left = (tokens.left + passed * per_second).min(burst);
        tokens.at = tokens.at.max(now);
        if tokens.left < 1.0 {
            return false;
        }
        tokens.left -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bucket: &Bucket, at_ms: u64) -> usize {
        let now = BootTime::from_micros(at_ms * 1_000);
        (0..100).filter(|_| bucket.take(now, 10, 5)).count()
    }

    #[test]
    fn tokens_come_back_evenly_and_no_more_than_the_burst() {
        let bucket = Bucket::default();
        assert_eq!(taken(&bucket, 0), 5, "the burst");
        assert_eq!(taken(&bucket, 99), 0);
        assert_eq!(taken(&bucket, 100), 1, "ten a second");
        assert_eq!(taken(&bucket, 400), 3);
        assert_eq!(taken(&bucket, 3_600_000), 5, "a long rest is worth no more");
    }
}
