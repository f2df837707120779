//! Times as programs have them, and times as Punctual keeps them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use punctual_core::Timestamp;

/// Whatever says when: a [`Timestamp`], or the standard library's [`SystemTime`].
pub trait IntoTimestamp {
    /// The same instant, to the microsecond. One that no task can have is refused when the task is scheduled.
    fn into_timestamp(self) -> Timestamp;
}

impl IntoTimestamp for Timestamp {
    fn into_timestamp(self) -> Timestamp {
        self
    }
}

impl IntoTimestamp for SystemTime {
    fn into_timestamp(self) -> Timestamp {
        let micros = |by: Duration| i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(match self.duration_since(UNIX_EPOCH) {
            Ok(after) => micros(after),
            Err(before) => -micros(before.duration()),
        })
    }
}

/// The same instant as the standard library writes it.
pub fn system_time(at: Timestamp) -> SystemTime {
    let by = Duration::from_micros(at.as_micros().unsigned_abs());
    if at.as_micros() < 0 { UNIX_EPOCH - by } else { UNIX_EPOCH + by }
}

/// `delay` after `now`; unlike `now + delay` it goes past the end of time, so that it can be refused.
pub(crate) fn after(now: Timestamp, delay: Duration) -> Timestamp {
    let delay = i64::try_from(delay.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_add(delay))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_survives_the_way_to_the_standard_library_and_back() {
        for micros in [-1_000_001, -1, 0, 1, 1_700_000_000_123_456, Timestamp::MAX.as_micros()] {
            let at = Timestamp::from_micros(micros);
            assert_eq!(system_time(at).into_timestamp(), at);
        }
    }
}
