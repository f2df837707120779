//! What is refused at the door: each bad input has its own error, and changes nothing.

use std::fmt;
use std::time::Duration;

use crate::limits::Limits;
use crate::queue::{QueueSettings, Rate};
use crate::retry::{RetryPolicy, Waits};
use crate::task::{Spec, Target};
use crate::time::Timestamp;

/// Why something was refused. `code` is stable; the text says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A name is empty.
    Empty(&'static str),
    /// A name is too long.
    TooLong {
        /// Which.
        what: &'static str,
        /// How long it is, in bytes.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// A queue's name has a character that is not allowed.
    BadQueueName(Box<str>),
    /// A namespace has a character that is not allowed.
    BadNamespace(Box<str>),
    /// The payload is too large.
    PayloadTooLarge {
        /// How large it is, in bytes.
        bytes: usize,
        /// How large it may be.
        max: usize,
    },
    /// A time lies before 1970 or after the year 9999.
    TimeOutOfRange(&'static str),
    /// The task would expire before it is due.
    ExpiresBeforeDue,
    /// A task with a lane takes its queue's priority.
    PriorityWithLane,
    /// A setting is zero, or so large that it must be a mistake.
    BadSetting {
        /// Which.
        what: &'static str,
        /// What to do.
        hint: &'static str,
    },
}

impl Refusal {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::Empty(_) => "name_empty",
            Refusal::TooLong { .. } => "name_too_long",
            Refusal::BadQueueName(_) => "queue_name_invalid",
            Refusal::BadNamespace(_) => "namespace_invalid",
            Refusal::PayloadTooLarge { .. } => "payload_too_large",
            Refusal::TimeOutOfRange(_) => "time_out_of_range",
            Refusal::ExpiresBeforeDue => "expires_before_due",
            Refusal::PriorityWithLane => "priority_with_lane",
            Refusal::BadSetting { .. } => "setting_invalid",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Empty(what) if OPTIONAL.contains(what) => {
                write!(f, "{what} is empty: leave it out, or give it at least one character")
            }
            Refusal::Empty(what) => write!(f, "{what} is empty: give it at least one character"),
            Refusal::TooLong { what, bytes, max } => {
                write!(f, "{what} has {bytes} bytes, and {max} is the most: shorten it, or hash it")
            }
            Refusal::BadQueueName(name) => {
                write!(f, "queue name {name:?} may have only letters, digits, `_`, `-` and `.`")
            }
            Refusal::BadNamespace(name) => {
                write!(f, "namespace {name:?} may have only letters, digits, `_`, `-` and `.`")
            }
            Refusal::PayloadTooLarge { bytes, max } => {
                write!(
                    f,
                    "the payload has {bytes} bytes, and {max} is the most: store it elsewhere and send a reference"
                )
            }
            Refusal::TimeOutOfRange(what) => {
                write!(f, "{what} must lie between 1970 and the end of the year 9999")
            }
            Refusal::ExpiresBeforeDue => {
                f.write_str("the task would expire before it is due: set `expires_at` later than `at`")
            }
            Refusal::PriorityWithLane => f.write_str(
                "a task with a lane takes its queue's priority: leave `priority` out, or set the queue's",
            ),
            Refusal::BadSetting { what, hint } => write!(f, "{what} {hint}"),
        }
    }
}

impl std::error::Error for Refusal {}

/// What a task need not have.
const OPTIONAL: [&str; 3] = ["the lane", "the unique key", "the name"];

/// A queue's name: 1 to 100 letters, digits, `_`, `-` and `.`.
pub fn queue_name(name: &str) -> Result<(), Refusal> {
    length("the queue's name", name, Limits::QUEUE_NAME_MAX)?;
    if is_plain(name) { Ok(()) } else { Err(Refusal::BadQueueName(name.into())) }
}

/// A namespace: 1 to 100 letters, digits, `_`, `-` and `.`.
pub fn namespace(name: &str) -> Result<(), Refusal> {
    length("the namespace", name, Limits::QUEUE_NAME_MAX)?;
    if is_plain(name) { Ok(()) } else { Err(Refusal::BadNamespace(name.into())) }
}

fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// What was asked for, before it is routed.
pub fn spec(spec: &Spec, limits: &Limits) -> Result<(), Refusal> {
    for (what, name) in OPTIONAL.into_iter().zip([&spec.lane, &spec.unique_key, &spec.name]) {
        name.as_deref().map_or(Ok(()), |name| length(what, name, Limits::KEY_MAX))?;
    }
    match &spec.target {
        Target::Handler(name) => length("the handler's name", name, Limits::KEY_MAX)?,
        Target::Destination(name) => length("the destination", name, Limits::KEY_MAX)?,
        Target::Worker => {}
    }
    let max = limits.payload_max.min(Limits::PAYLOAD_HARD_MAX);
    if spec.payload.len() > max {
        return Err(Refusal::PayloadTooLarge { bytes: spec.payload.len(), max });
    }
    time("at", Some(spec.at))?;
    time("start_by", spec.start_by)?;
    time("expires_at", spec.expires_at)?;
    if spec.expires_at.is_some_and(|expires_at| expires_at <= spec.at) {
        return Err(Refusal::ExpiresBeforeDue);
    }
    spec.retry.as_ref().map_or(Ok(()), retry)?;
    setting(spec.delivery.len() <= Limits::DELIVERY_MAX, "delivery", "must not have more than 16 KiB")?;
    spec.timeout.map_or(Ok(()), |time| timeout("timeout", time))
}

/// A due time.
pub fn time(what: &'static str, at: Option<Timestamp>) -> Result<(), Refusal> {
    match at {
        Some(at) if at < Timestamp::MIN || at > Timestamp::MAX => Err(Refusal::TimeOutOfRange(what)),
        _ => Ok(()),
    }
}

/// A retry policy.
pub fn retry(policy: &RetryPolicy) -> Result<(), Refusal> {
    setting(policy.attempts_max > 0, "retry.attempts", "must be at least 1")?;
    match &policy.waits {
        Waits::Listed(waits) => setting(!waits.is_empty(), "retry.waits", "must not be empty"),
        Waits::Growing { min, max, factor_percent, jitter_percent } => {
            setting(!min.is_zero(), "retry.min", "must not be zero")?;
            setting(min <= max, "retry.max", "must not be below retry.min")?;
            setting((100..=10_000).contains(factor_percent), "retry.factor", "must be between 1 and 100")?;
            setting(*jitter_percent <= 100, "retry.jitter", "must be between 0 and 100 %")
        }
    }
}

/// The settings of a queue.
pub fn queue(settings: &QueueSettings) -> Result<(), Refusal> {
    retry(&settings.retry)?;
    setting(settings.running_max != Some(0), "running_max", "must not be zero: pause the queue instead")?;
    timeout("timeout", settings.timeout)?;
    settings.rate.map_or(Ok(()), rate)
}

/// Longer than this is a mistake.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long an attempt may take: up to a year.
pub fn timeout(what: &'static str, timeout: Duration) -> Result<(), Refusal> {
    let good = !timeout.is_zero() && timeout <= YEAR;
    setting(good, what, "must be more than nothing and at most a year")
}

fn rate(rate: Rate) -> Result<(), Refusal> {
    setting(rate.starts > 0, "rate.starts", "must not be zero: pause the queue instead")?;
    setting(
        !rate.per.is_zero() && rate.per <= YEAR,
        "rate.per",
        "must be more than nothing and at most a year",
    )?;
    setting(rate.starts <= 1_000_000_000, "rate.starts", "must be at most 1,000,000,000")?;
    setting(rate.burst <= 1_000_000, "rate.burst", "must be at most 1,000,000")?;
    setting(rate.burst > 0, "rate.burst", "must be at least 1")
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The limits of a node.
pub fn limits(limits: &Limits) -> Result<(), Refusal> {
    setting((1..=1_000_000).contains(&limits.running_max), "running_max", "must be between 1 and 1,000,000")?;
    setting((16..=1_000_000).contains(&limits.window_max), "window_max", "must be between 16 and 1,000,000")?;
    setting(limits.loaded_max >= limits.window_max, "loaded_max", "must not be below window_max")?;
    setting(limits.look_ahead.as_millis() >= 10, "look_ahead", "must be at least 10 ms")?;
    setting(limits.behind_max >= 1, "behind_max", "must be at least 1")?;
    setting(limits.parked_page >= 2, "parked_page", "must be at least 2")?;
    setting(limits.destination_running_max >= 1, "destination_running_max", "must be at least 1")?;
    setting(limits.destination_waiting_max >= 1, "destination_waiting_max", "must be at least 1")?;
    setting(limits.breaker_failures >= 1, "breaker_failures", "must be at least 1")?;
    setting(limits.crashes_max >= 1, "crashes_max", "must be at least 1")?;
    setting(limits.left_per_mark >= 1, "left_per_mark", "must be at least 1")?;
    setting(limits.prune_buckets_max >= 1, "prune_buckets_max", "must be at least 1")?;
    setting(limits.prune_spread <= DAY, "prune_spread", "must not be above a day")?;
    setting((1..=1_000_000).contains(&limits.asked_max), "asked_max", "must be between 1 and 1,000,000")?;
    setting(limits.payload_max <= Limits::PAYLOAD_HARD_MAX, "payload_max", "must not be above 1 MiB")
}

fn setting(good: bool, what: &'static str, hint: &'static str) -> Result<(), Refusal> {
    if good { Ok(()) } else { Err(Refusal::BadSetting { what, hint }) }
}

fn length(what: &'static str, text: &str, max: usize) -> Result<(), Refusal> {
    match text.len() {
        0 => Err(Refusal::Empty(what)),
        bytes if bytes > max => Err(Refusal::TooLong { what, bytes, max }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_refused_with_what_can_be_done_about_it() {
        let text = |handler: &str, lane: Option<&str>| {
            let mut bad = Spec::new(Target::Handler(handler.into()), Timestamp::MIN);
            bad.lane = lane.map(Into::into);
            spec(&bad, &Limits::default()).expect_err("it is empty").to_string()
        };
        let lane = "the lane is empty: leave it out, or give it at least one character";
        assert_eq!(text("h", Some("")), lane);
        assert_eq!(text("", None), "the handler's name is empty: give it at least one character");
    }

    #[test]
    fn absurd_settings_are_refused_with_a_hint() {
        let rate = |starts, per, burst| Some(Rate { starts, per, burst });
        let second = Duration::from_secs(1);
        let bad = [
            QueueSettings { rate: rate(0, second, 1), ..QueueSettings::default() },
            QueueSettings { rate: rate(1, Duration::ZERO, 1), ..QueueSettings::default() },
            QueueSettings { rate: rate(1, Duration::MAX, 2), ..QueueSettings::default() },
            QueueSettings { rate: rate(1, second, u32::MAX), ..QueueSettings::default() },
            QueueSettings { timeout: Duration::MAX, ..QueueSettings::default() },
            QueueSettings { timeout: Duration::ZERO, ..QueueSettings::default() },
            QueueSettings { running_max: Some(0), ..QueueSettings::default() },
        ];
        for settings in bad {
            let refusal = queue(&settings).expect_err("it is absurd");
            assert_eq!(refusal.code(), "setting_invalid", "{settings:?}");
        }
        assert_eq!(queue(&QueueSettings::default()), Ok(()));
        assert!(limits(&Limits { asked_max: usize::MAX, ..Limits::default() }).is_err());
        assert_eq!(limits(&Limits::default()), Ok(()));
    }
}
