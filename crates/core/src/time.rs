//! Two clocks, two types: wall time for what is promised, boot time for how long something took.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// An instant of wall time in microseconds since 1970, UTC. Due times are of this kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest time a row can be filed under.
    pub const MIN: Timestamp = Timestamp(0);
    /// The last microsecond of the year 9999: nothing can be due after it.
    pub const MAX: Timestamp = Timestamp(253_402_300_799_999_999);

    /// The instant this many microseconds after 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Timestamp(micros)
    }

    /// The instant this many seconds after 1970.
    pub const fn from_secs(secs: i64) -> Self {
        Timestamp(secs * 1_000_000)
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    /// Stops at [`Timestamp::MAX`], so that an absurd delay cannot wrap round into the past.
    fn add(self, by: Duration) -> Timestamp {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_add(by)).min(Timestamp::MAX)
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;

    fn sub(self, by: Duration) -> Timestamp {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_sub(by))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}.{:06}", self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000))
    }
}

/// A reading of the boot-time clock in microseconds: it never steps, and goes on while the machine sleeps.
/// Leases, rates and breakers are measured on it, so that a stepped wall clock cannot end or prolong them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct BootTime(u64);

impl BootTime {
    /// The reading this many microseconds after the clock began.
    pub const fn from_micros(micros: u64) -> Self {
        BootTime(micros)
    }

    /// Microseconds since the clock began.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not.
    pub fn since(self, earlier: BootTime) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for BootTime {
    type Output = BootTime;

    fn add(self, by: Duration) -> BootTime {
        BootTime(self.0.saturating_add(u64::try_from(by.as_micros()).unwrap_or(u64::MAX)))
    }
}

/// Both clocks, read together, handed to everything that decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// What users' due times are compared with.
    pub wall: Timestamp,
    /// What leases, rates and breakers are measured with.
    pub boot: BootTime,
}

/// When something next wants to be called: whichever of the two comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wake {
    /// A due time.
    pub wall: Option<Timestamp>,
    /// The end of a lease, a rate's next token, a breaker's next probe.
    pub boot: Option<BootTime>,
}

impl Wake {
    /// The earlier of the two on each clock.
    pub fn or(self, other: Wake) -> Wake {
        Wake { wall: earlier(self.wall, other.wall), boot: earlier(self.boot, other.boot) }
    }

    /// Whether the moment has come.
    pub fn is_due(self, now: Now) -> bool {
        self.wall.is_some_and(|at| at <= now.wall) || self.boot.is_some_and(|at| at <= now.boot)
    }

    /// How long until the moment comes, if the clocks run evenly; `None` when nothing is waited for.
    pub fn delay(self, now: Now) -> Option<Duration> {
        let wall = self.wall.map(|at| at.since(now.wall));
        let boot = self.boot.map(|at| at.since(now.boot));
        earlier(wall, boot)
    }
}

fn earlier<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_an_absurd_delay_stops_at_the_end_of_time() {
        assert_eq!(Timestamp::from_secs(1) + Duration::MAX, Timestamp::MAX);
    }

    #[test]
    fn a_wake_is_due_by_either_clock() {
        let wake = Wake { wall: Some(Timestamp::from_secs(5)), boot: Some(BootTime::from_micros(7)) };
        let early = Now { wall: Timestamp::from_secs(4), boot: BootTime::from_micros(6) };
        assert!(!wake.is_due(early));
        assert!(wake.is_due(Now { boot: BootTime::from_micros(7), ..early }));
        assert!(wake.is_due(Now { wall: Timestamp::from_secs(5), ..early }));
        assert_eq!(wake.delay(early), Some(Duration::from_micros(1)));
    }
}
