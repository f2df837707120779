//! How quickly a destination takes what it is sent.

use std::time::Duration;

use crate::time::{BootTime, Now};

/// What went well in the present stretch of time, and in the one before.
pub struct Pace {
    since: BootTime,
    good: usize,
    good_before: usize,
    /// Until then too little is known of it.
    pub unknown_until: BootTime,
}

impl Pace {
    /// How long a stretch is.
    pub const STRETCH: Duration = Duration::from_millis(50);
    /// So long it may take until a node that was idle, or is busy with others, has found its pace.
    const UNKNOWN: Duration = Duration::from_secs(1);

    /// Nothing is known yet.
    pub fn begun(now: Now) -> Pace {
        Pace { since: now.boot, good: 0, good_before: 0, unknown_until: now.boot + Pace::UNKNOWN }
    }

    /// An attempt went well.
    pub fn went_well(&mut self, now: Now) {
        self.go_on(now);
        self.good += 1;
    }

    fn go_on(&mut self, now: Now) {
        if self.since + Self::STRETCH <= now.boot {
            let was_just_before = now.boot < self.since + 2 * Self::STRETCH;
            self.good_before = if was_just_before { self.good } else { 0 };
            (self.since, self.good) = (now.boot, 0);
        }
    }

    /// How many it takes in that time, if it goes on so.
    pub fn takes_in(&mut self, now: Now, time: Duration) -> usize {
        self.go_on(now);
        let stretches = (time.as_micros() / Self::STRETCH.as_micros()) as usize;
        self.good.max(self.good_before) * stretches
    }
}
