//! What a run's nodes and queues are set to: small limits, so that every bound is met in a short run.

use std::time::Duration;

use punctual_core::{Limits, OnExhausted, QueueId, QueueSettings, Queues, Rate, RetryPolicy, Waits};

use crate::dice::Dice;
use crate::history::Keeps;

/// Lanes that block when their head runs out of attempts.
pub const BLOCKING: QueueId = QueueId(1);
/// Lanes that go on.
pub const FLOWING: QueueId = QueueId(2);
/// A queue with a rate and a limit.
pub const LIMITED: QueueId = QueueId(3);
/// A queue whose starts are recorded first.
pub const EXCLUSIVE: QueueId = QueueId(4);
/// A queue for workers in processes of their own.
pub const PULLED: QueueId = QueueId(5);

pub fn limits() -> Limits {
    Limits {
        running_max: 6,
        window_max: 16,
        loaded_max: 24,
        look_ahead: Duration::from_secs(8),
        behind_max: 2,
        parked_page: 3,
        destination_waiting_max: 2,
        destination_first_max: 4,
        half_batch_min: 2,
        destination_running_max: 2,
        breaker_failures: 3,
        breaker_rest: Duration::from_secs(2),
        crashes_max: 6,
        left_per_mark: 12,
        prune_buckets_max: 1,
        prune_spread: Duration::from_secs(2),
        ..Limits::default()
    }
}

pub fn keeps(dice: &mut Dice) -> Keeps {
    let succeeded = Duration::from_secs(*dice.pick(&[2, 4, 8, 20]));
    Keeps { succeeded, dead: 4 * succeeded, identities: 5 * succeeded }
}

pub fn queues(dice: &mut Dice, keeps: Keeps) -> Queues {
    let plain = QueueSettings {
        retry: growing_waits(dice),
        timeout: Duration::from_secs(5),
        keep_succeeded: keeps.succeeded,
        keep_dead: keeps.dead,
        keep_identities: keeps.identities,
        ..QueueSettings::default()
    };
    let running_max = Some(*dice.pick(&[1, 2, 4, 8]));
    let rate = Some(rate(dice));
    let mut queues = Queues::default();
    queues.set(BLOCKING, plain.clone());
    let (on_exhausted, retry) = (OnExhausted::DeadLetter, listed_waits(dice));
    queues.set(FLOWING, QueueSettings { on_exhausted, retry, ..plain.clone() });
    queues.set(LIMITED, QueueSettings { running_max, rate, ..plain.clone() });
    queues.set(EXCLUSIVE, QueueSettings { exclusive: true, ..plain.clone() });
    let on_exhausted = *dice.pick(&[OnExhausted::Block, OnExhausted::DeadLetter]);
    let running_max = *dice.pick(&[None, None, Some(2), Some(6)]);
    queues.set(PULLED, QueueSettings { on_exhausted, running_max, ..plain });
    queues
}

fn growing_waits(dice: &mut Dice) -> RetryPolicy {
    let waits = Waits::Growing {
        min: Duration::from_millis(500),
        max: Duration::from_secs(12),
        factor_percent: 200,
        jitter_percent: *dice.pick(&[0, 50, 100]),
    };
    RetryPolicy { waits, attempts_max: *dice.pick(&[2, 5]), age_max: None }
}

/// Growing, so that more failures never mean a shorter wait.
fn listed_waits(dice: &mut Dice) -> RetryPolicy {
    let waits = [300, 1_000, 3_000].map(Duration::from_millis).to_vec();
    let age_max = dice.chance(50).then_some(Duration::from_secs(5));
    RetryPolicy { waits: Waits::Listed(waits.into()), attempts_max: *dice.pick(&[3, 5]), age_max }
}

/// What some tasks have instead of their queue's.
pub fn waits_of_its_own() -> RetryPolicy {
    let waits = Waits::Listed([Duration::from_millis(700)].to_vec().into());
    RetryPolicy { waits, attempts_max: 3, age_max: None }
}

fn rate(dice: &mut Dice) -> Rate {
    let (starts, secs, burst) = *dice.pick(&[(20, 1, 3), (4, 1, 1), (5, 2, 2)]);
    Rate { starts, per: Duration::from_secs(secs), burst }
}
