//! Where a row lies when no index says otherwise: computed from the task's id alone.

use std::time::Duration;

use punctual_core::{Place, QueueId, Retention, RowKey, TaskId, Timestamp, WindowId};

const HOUR_MICROS: i64 = 3_600_000_000;

/// Where a task is filed at birth. A task that lies elsewhere has an entry in the `moved` index.
pub(crate) fn birth_place(id: &TaskId) -> Place {
    Place::Window(WindowId { queue: id.queue, priority: id.priority }, birth_key(id))
}

/// The order of a task among those that ended.
pub(crate) fn birth_key(id: &TaskId) -> RowKey {
    RowKey { wake_at: id.birth, seq: id.seq }
}

/// History that is dropped as a whole: what was born in one hour of one queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct BucketId {
    pub queue: QueueId,
    /// Hours since 1970.
    pub hour: u32,
}

impl BucketId {
    pub fn of(id: &TaskId) -> BucketId {
        BucketId { queue: id.queue, hour: hour_of(id.birth) }
    }
}

/// Years before 1970 do not occur, and the year 9999 fits.
pub(crate) fn hour_of(at: Timestamp) -> u32 {
    u32::try_from(at.as_micros().div_euclid(HOUR_MICROS)).unwrap_or(0)
}

/// How far a retention must move on until a bucket with these newest ends is past; zero when it is.
pub(crate) fn past_in(
    finished: Option<Timestamp>,
    dead: Option<Timestamp>,
    retention: Retention,
) -> Duration {
    // A task that ended at the very limit is kept: one microsecond later it is past.
    let tick = Duration::from_micros(1);
    let finished = finished.map_or(Duration::ZERO, |at| (at + tick).since(retention.finished_before));
    let dead = dead.map_or(Duration::ZERO, |at| (at + tick).since(retention.dead_before));
    finished.max(dead)
}

/// How far a retention must move on until identities of tasks that ended in that hour are forgotten.
pub(crate) fn forgotten_in(hour: u32, retention: Retention) -> Duration {
    let end = Timestamp::from_micros((i64::from(hour) + 1) * HOUR_MICROS);
    end.since(retention.identity_before)
}
