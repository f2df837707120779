//! How long to wait before the next attempt, and when to stop trying.

use std::borrow::Cow;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use crate::id::TaskId;

/// How a failed task is tried again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryPolicy {
    /// The waits.
    pub waits: Waits,
    /// How many attempts in all, the first one included.
    pub attempts_max: u32,
    /// Give up when the task has been due for so long.
    pub age_max: Option<Duration>,
}

/// The wait after the first, second, third … failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Waits {
    /// Growing by a factor up to a limit, spread by a share of the wait (0 to 100 %) so that
    /// what failed together does not come back together.
    Growing {
        /// The first wait.
        min: Duration,
        /// The longest wait.
        max: Duration,
        /// What each wait is multiplied with, in percent: 200 doubles.
        factor_percent: u32,
        /// How much of the wait is left to chance: 100 is "full jitter", 0 none.
        jitter_percent: u32,
    },
    /// One by one; the last one repeats. Never empty.
    Listed(Cow<'static, [Duration]>),
}

const fn minutes(n: u64) -> Duration {
    Duration::from_secs(60 * n)
}

/// Longer than any time a task can be due at: a wait can be multiplied without harm.
const WAIT_MAX: Duration = Duration::from_secs(10_000 * 366 * 24 * 3600);

const fn hours(n: u64) -> Duration {
    minutes(60 * n)
}

impl RetryPolicy {
    /// 25 attempts, 1 s growing to 1 h, full jitter.
    pub const DEFAULT: RetryPolicy = RetryPolicy {
        waits: Waits::Growing {
            min: Duration::from_secs(1),
            max: hours(1),
            factor_percent: 200,
            jitter_percent: 100,
        },
        attempts_max: 25,
        age_max: None,
    };

    /// 100 retries, 20 s growing to 120 s, half jitter: what PagerDuty's scheduler does.
    pub const PAGERDUTY: RetryPolicy = RetryPolicy {
        waits: Waits::Growing {
            min: Duration::from_secs(20),
            max: Duration::from_secs(120),
            factor_percent: 200,
            jitter_percent: 50,
        },
        attempts_max: 101,
        age_max: None,
    };

    /// The Standard Webhooks schedule: at once, then 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h.
    pub const WEBHOOKS: RetryPolicy = RetryPolicy {
        waits: Waits::Listed(Cow::Borrowed(&[
            Duration::from_secs(5),
            minutes(5),
            minutes(30),
            hours(2),
            hours(5),
            hours(10),
            hours(14),
            hours(20),
            hours(24),
        ])),
        attempts_max: 10,
        age_max: None,
    };

    /// 5 min, 1 h, then every 4 h, for ever: runs of recurring schedules.
    pub const SCHEDULE: RetryPolicy = RetryPolicy {
        waits: Waits::Listed(Cow::Borrowed(&[minutes(5), hours(1), hours(4)])),
        attempts_max: u32::MAX,
        age_max: None,
    };

    /// One attempt, no retry.
    pub const NEVER: RetryPolicy = RetryPolicy {
        waits: Waits::Listed(Cow::Borrowed(&[Duration::ZERO])),
        attempts_max: 1,
        age_max: None,
    };

    /// The preset of that name.
    pub fn preset(name: &str) -> Option<RetryPolicy> {
        match name {
            "default" => Some(Self::DEFAULT),
            "pagerduty" => Some(Self::PAGERDUTY),
            "webhooks" => Some(Self::WEBHOOKS),
            "schedule" => Some(Self::SCHEDULE),
            "never" => Some(Self::NEVER),
            _ => None,
        }
    }

    /// How long to wait after failed attempt number `attempt` (from 1), or `None` to give up.
    /// The jitter is a hash of id and attempt, so that a decision can be made again and come out the same.
    pub fn wait_after(&self, id: TaskId, attempt: u32, age: Duration) -> Option<Duration> {
        if attempt >= self.attempts_max || self.age_max.is_some_and(|max| age >= max) {
            return None;
        }
        let wait = match &self.waits {
            Waits::Listed(waits) => waits[(attempt.max(1) as usize - 1).min(waits.len() - 1)],
            Waits::Growing { min, max, factor_percent, jitter_percent } => {
                let wait = grown(*min, *max, *factor_percent, attempt).min(WAIT_MAX);
                spread(wait, (*jitter_percent).min(100), id, attempt).max(*min / 2)
            }
        };
        Some(wait.min(WAIT_MAX))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

fn grown(min: Duration, max: Duration, factor_percent: u32, attempt: u32) -> Duration {
    let factor = f64::from(factor_percent.max(100)) / 100.0;
    let times = factor.powi(attempt.saturating_sub(1).min(1_000) as i32);
    Duration::try_from_secs_f64(min.as_secs_f64() * times).map_or(max, |wait| wait.min(max))
}

fn spread(wait: Duration, jitter_percent: u32, id: TaskId, attempt: u32) -> Duration {
    let mut seed = [0u8; 29];
    seed[..25].copy_from_slice(&id.to_bytes());
    seed[25..].copy_from_slice(&attempt.to_be_bytes());
    let chance = (xxh3_64(&seed) >> 32) as u32;
    let loose = wait * jitter_percent / 100;
    wait - loose + loose.mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Priority, QueueId, Route, Seq};
    use crate::time::Timestamp;

    fn id(seq: u64) -> TaskId {
        TaskId {
            route: Route::anywhere(1),
            queue: QueueId(1),
            priority: Priority::default(),
            birth: Timestamp::from_secs(1),
            seq: Seq(seq),
        }
    }

    #[test]
    fn waits_grow_to_the_limit_and_then_stop_growing() {
        let policy = RetryPolicy::PAGERDUTY;
        for attempt in 1..=100 {
            let wait = policy.wait_after(id(7), attempt, Duration::ZERO).expect("not yet exhausted");
            assert!(
                (Duration::from_secs(10)..=Duration::from_secs(120)).contains(&wait),
                "{attempt}: {wait:?}"
            );
        }
        assert_eq!(policy.wait_after(id(7), 101, Duration::ZERO), None);
    }

    #[test]
    fn the_webhook_schedule_is_the_published_one() {
        let waits: Vec<u64> = (1..=9)
            .map(|n| RetryPolicy::WEBHOOKS.wait_after(id(1), n, Duration::ZERO).map_or(0, |w| w.as_secs()))
            .collect();
        assert_eq!(waits, [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]);
        assert_eq!(RetryPolicy::WEBHOOKS.wait_after(id(1), 10, Duration::ZERO), None);
    }

    #[test]
    fn the_same_attempt_waits_equally_long_and_different_tasks_do_not() {
        let wait = |seq| RetryPolicy::DEFAULT.wait_after(id(seq), 9, Duration::ZERO);
        assert_eq!(wait(1), wait(1));
        assert_ne!(wait(1), wait(2));
    }

    #[test]
    fn a_task_too_old_is_given_up_whatever_its_attempts() {
        let policy = RetryPolicy { age_max: Some(hours(1)), ..RetryPolicy::DEFAULT };
        assert!(policy.wait_after(id(1), 1, minutes(59)).is_some());
        assert_eq!(policy.wait_after(id(1), 1, hours(1)), None);
    }

    #[test]
    fn every_preset_has_a_name() {
        for name in ["default", "pagerduty", "webhooks", "schedule", "never"] {
            assert!(RetryPolicy::preset(name).is_some(), "{name}");
        }
        assert_eq!(RetryPolicy::preset("fast"), None);
    }
}
