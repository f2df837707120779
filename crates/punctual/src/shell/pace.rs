//! How often the store is asked to record: often enough for one caller, and not more often than pays for many.
//!
//! Every record costs a sync and a few changes of threads, whatever is in it. Of many callers who wait for their answers
//! some are answered, and ask again a moment later. If the next batch is cut before that, it is small, and so is the one
//! after it: most of the processor's time goes into syncs. So after a crowd was answered, the next batch waits until as
//! many have asked again, but not for long. One caller, or a few, never wait.

use std::time::Duration;

use punctual_core::BootTime;

/// So many callers who are answered together are a crowd.
const CROWD_MIN: usize = 8;
/// A batch with so many changes has been worth its sync, and the next one will be.
const LARGE_BATCH: usize = 256;
/// The longest that a batch waits.
const WAIT_MAX: Duration = Duration::from_micros(300);

#[derive(Default)]
pub(super) struct Pace {
    /// How many were answered since the last batch was on record.
    answered: usize,
    /// How many have asked since the last batch was cut.
    asked: usize,
    /// Until when the next batch may wait.
    until: BootTime,
}

impl Pace {
    pub fn asked(&mut self) {
        self.asked += 1;
    }

    pub fn answered(&mut self) {
        self.answered += 1;
    }

    /// A batch of so many changes is on record, and those who waited for it are answered next.
    pub fn recorded(&mut self, now: BootTime, changes: usize) {
        let wait_max = if changes < LARGE_BATCH { WAIT_MAX } else { Duration::ZERO };
        (self.answered, self.until) = (0, now + wait_max);
    }

    /// A batch was cut.
    pub fn cut(&mut self) {
        self.asked = 0;
    }

    /// Until when the next batch waits, if it does.
    pub fn waits_until(&self, now: BootTime) -> Option<BootTime> {
        let crowd_returns = self.answered >= CROWD_MIN && self.asked < self.answered;
        (crowd_returns && now < self.until).then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_waits_for_a_crowd_that_was_answered_and_for_nobody_else() {
        let at = |micros| BootTime::from_micros(micros);
        let mut pace = Pace::default();
        pace.recorded(at(1_000), 1);
        (1..CROWD_MIN).for_each(|_| pace.answered());
        assert_eq!(pace.waits_until(at(1_000)), None, "they are few");
        pace.answered();
        assert_eq!(pace.waits_until(at(1_000)), Some(at(1_300)));
        assert_eq!(pace.waits_until(at(1_300)), None, "it has waited long enough");
        (0..CROWD_MIN).for_each(|_| pace.asked());
        assert_eq!(pace.waits_until(at(1_000)), None, "they have asked again");
        pace.cut();
        assert_eq!(pace.waits_until(at(1_000)), Some(at(1_300)));
        pace.recorded(at(1_000), LARGE_BATCH);
        (0..CROWD_MIN).for_each(|_| pace.answered());
        assert_eq!(pace.waits_until(at(1_000)), None, "there is enough to record");
    }
}
