//! How a queue's settings look at rest. The first byte is the version of this format; older ones stay readable.

use std::time::Duration;

use bytes::Bytes;
use punctual_core::{OnExhausted, Past, Priority, QueueId, QueueSettings, Rate, RetryPolicy, Waits};
use punctual_store::Cause;
use serde::{Deserialize, Serialize};

/// Since 2 it also says how long identities are kept; since 3 how many bytes of history, and what whoever delivers its
/// tasks wrote down.
const VERSION: u8 = 3;

/// All there was in version 1, and the beginning of those after it.
#[derive(Serialize, Deserialize)]
struct Stored {
    id: u32,
    retry: StoredRetry,
    dead_letter: bool,
    priority: u8,
    running_max: Option<u32>,
    rate: Option<(u32, Duration, u32)>,
    paused: bool,
    timeout: Duration,
    pinned: bool,
    exclusive: bool,
    run_past: bool,
    keep_succeeded: Duration,
    keep_dead: Duration,
}

#[derive(Serialize, Deserialize)]
struct StoredRetry {
    growing: Option<(Duration, Duration, u32, u32)>,
    listed: Vec<Duration>,
    attempts_max: u32,
    age_max: Option<Duration>,
}

/// The bytes of a queue.
pub(crate) fn encode(id: QueueId, settings: &QueueSettings, extras: &Bytes) -> Bytes {
    let stored = Stored {
        id: id.0,
        retry: stored_retry(&settings.retry),
        dead_letter: settings.on_exhausted == OnExhausted::DeadLetter,
        priority: settings.priority.level(),
        running_max: settings.running_max,
        rate: settings.rate.map(|rate| (rate.starts, rate.per, rate.burst)),
        paused: settings.paused,
        timeout: settings.timeout,
        pinned: settings.pinned,
        exclusive: settings.exclusive,
        run_past: settings.past == Past::RunNow,
        keep_succeeded: settings.keep_succeeded,
        keep_dead: settings.keep_dead,
    };
    let added = (settings.keep_identities, settings.keep_bytes, &extras[..]);
    postcard::to_extend(&(stored, added), vec![VERSION]).expect("plain fields can always be written").into()
}

/// The queue behind bytes.
pub(crate) fn decode(bytes: &[u8]) -> Result<(QueueId, QueueSettings, Bytes), Cause> {
    let QueueSettings { keep_identities, keep_bytes, .. } = QueueSettings::default();
    let (stored, (keep_identities, keep_bytes, extras)): (Stored, (_, _, &[u8])) = match bytes.split_first() {
        Some((1, rest)) => (postcard::from_bytes(rest)?, (keep_identities, keep_bytes, &[])),
        Some((2, rest)) => {
            let (stored, keep_identities) = postcard::from_bytes(rest)?;
            (stored, (keep_identities, keep_bytes, &[]))
        }
        Some((&VERSION, rest)) => postcard::from_bytes(rest)?,
        _ => return Err("a queue's settings are of a version this program does not know".into()),
    };
    let settings = QueueSettings {
        retry: retry(stored.retry)?,
        on_exhausted: if stored.dead_letter { OnExhausted::DeadLetter } else { OnExhausted::Block },
        priority: Priority::new(stored.priority).ok_or("a queue's priority is not 0 to 9")?,
        running_max: stored.running_max,
        rate: stored.rate.map(|(starts, per, burst)| Rate { starts, per, burst }),
        paused: stored.paused,
        timeout: stored.timeout,
        pinned: stored.pinned,
        exclusive: stored.exclusive,
        past: if stored.run_past { Past::RunNow } else { Past::Reject },
        keep_succeeded: stored.keep_succeeded,
        keep_dead: stored.keep_dead,
        keep_identities,
        keep_bytes,
    };
    punctual_core::check::queue(&settings)?;
    Ok((QueueId(stored.id), settings, Bytes::copy_from_slice(extras)))
}

fn stored_retry(policy: &RetryPolicy) -> StoredRetry {
    let (growing, listed) = match &policy.waits {
        Waits::Growing { min, max, factor_percent, jitter_percent } => {
            (Some((*min, *max, *factor_percent, *jitter_percent)), Vec::new())
        }
        Waits::Listed(waits) => (None, waits.to_vec()),
    };
    StoredRetry { growing, listed, attempts_max: policy.attempts_max, age_max: policy.age_max }
}

fn retry(stored: StoredRetry) -> Result<RetryPolicy, Cause> {
    let waits = match stored.growing {
        Some((min, max, factor_percent, jitter_percent)) => {
            Waits::Growing { min, max, factor_percent, jitter_percent }
        }
        None => Waits::Listed(stored.listed.into()),
    };
    let policy = RetryPolicy { waits, attempts_max: stored.attempts_max, age_max: stored.age_max };
    punctual_core::check::retry(&policy)?;
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_being_stored() {
        let odd = QueueSettings {
            retry: RetryPolicy::WEBHOOKS,
            on_exhausted: OnExhausted::DeadLetter,
            priority: Priority::LAST,
            running_max: Some(3),
            rate: Some(Rate { starts: 5, per: Duration::from_secs(1), burst: 2 }),
            paused: true,
            pinned: true,
            exclusive: true,
            past: Past::RunNow,
            keep_identities: Duration::from_secs(1),
            keep_bytes: None,
            ..QueueSettings::default()
        };
        for settings in [QueueSettings::default(), odd] {
            let extras = Bytes::from_static(b"more");
            let read = decode(&encode(QueueId(7), &settings, &extras)).expect("what was written can be read");
            assert_eq!(read, (QueueId(7), settings, extras));
        }
    }

    #[test]
    fn settings_of_older_versions_are_read() {
        let QueueSettings { keep_identities, keep_bytes, .. } = QueueSettings::default();
        let [bytes, identities] = [postcard::to_stdvec(&keep_bytes), postcard::to_stdvec(&keep_identities)]
            .map(|added| added.expect("plain fields can always be written").len());
        let mut old = encode(QueueId(7), &QueueSettings::default(), &Bytes::new()).to_vec();
        // No extras are one byte: how many there are.
        for (version, added) in [(2, bytes + 1), (1, identities)] {
            old.truncate(old.len() - added);
            old[0] = version;
            let read = decode(&old).expect("it was written by an older Punctual");
            assert_eq!(read, (QueueId(7), QueueSettings::default(), Bytes::new()), "version {version}");
        }
    }

    #[test]
    fn a_newer_version_or_damage_is_refused() {
        assert!(decode(&[]).is_err());
        assert!(decode(&[4, 0, 0]).is_err());
        let whole = encode(QueueId(7), &QueueSettings::default(), &Bytes::new());
        for cut in 1..whole.len() {
            assert!(decode(&whole[..cut]).is_err(), "cut at {cut}");
        }
    }
}
