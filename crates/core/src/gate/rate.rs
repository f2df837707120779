//! A queue's rate, exact to the microsecond and one number in memory (the generic cell rate algorithm).

use std::time::Duration;

use crate::queue::Rate;
use crate::time::BootTime;

/// When the starts so far would be over if they had come evenly.
#[derive(Default)]
pub struct Meter {
    even_until: BootTime,
}

impl Meter {
    pub fn allows(&self, now: BootTime, rate: Rate) -> bool {
        self.free_at(rate).is_none_or(|at| at <= now)
    }

    pub fn start(&mut self, now: BootTime, rate: Option<Rate>) {
        if let Some(rate) = rate {
            self.even_until = self.even_until.max(now) + interval(rate);
        }
    }

    /// When the next start is allowed; `None` when it always was.
    pub fn free_at(&self, rate: Rate) -> Option<BootTime> {
        let saved_up = u64::try_from(saved_up(rate).as_micros()).unwrap_or(u64::MAX);
        let at = (self.even_until + interval(rate)).as_micros();
        at.checked_sub(saved_up).map(BootTime::from_micros)
    }

    /// Another rate applies: starts under a slower one hold nothing back for longer than this one could.
    pub fn forgive(&mut self, now: BootTime, rate: Rate) {
        self.even_until = self.even_until.min(now + saved_up(rate));
    }
}

fn saved_up(rate: Rate) -> Duration {
    interval(rate).saturating_mul(rate.burst)
}

fn interval(rate: Rate) -> Duration {
    (rate.per / rate.starts.max(1)).max(Duration::from_micros(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_period_has_more_starts_than_the_rate_and_the_burst(
            starts in 1u32..50, burst in 1u32..20, steps in prop::collection::vec(0u64..50_000, 1..500),
        ) {
            let rate = Rate { starts, per: Duration::from_secs(1), burst };
            let (mut meter, mut now, mut started) = (Meter::default(), BootTime::from_micros(5_000_000), Vec::new());
            for step in steps {
                now = now + Duration::from_micros(step);
                if meter.allows(now, rate) {
                    meter.start(now, Some(rate));
                    started.push(now);
                }
            }
            for (first, at) in started.iter().enumerate() {
                let in_second = started[first..].iter().filter(|other| other.since(*at) < rate.per).count();
                prop_assert!(in_second <= (starts + burst) as usize, "{in_second} starts in a second");
            }
        }
    }

    #[test]
    fn a_rate_gives_what_it_promises() {
        let rate = Rate { starts: 10, per: Duration::from_secs(1), burst: 1 };
        let mut meter = Meter::default();
        let starts = (0..10_000_000u64).step_by(1_000).filter(|&at| {
            let now = BootTime::from_micros(1_000_000_000 + at);
            let allowed = meter.allows(now, rate);
            if allowed {
                meter.start(now, Some(rate));
            }
            allowed
        });
        assert_eq!(starts.count(), 100);
    }
}
