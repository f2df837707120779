//! How rows look at rest: one byte of format version, then postcard of a mirror of the domain's type.
//!
//! The mirrors are frozen: a field that is added goes to a new version with a mirror of its own, so that a
//! store written by an older Punctual stays readable. The domain's types know nothing of this.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{
    Begun, End, EndState, EndedTask, Epoch, Fence, LaneId, Obstacle, Place, Priority, QueueId, RetryPolicy,
    RowKey, Seq, Spec, Target, Task, TaskId, Timestamp, WaitState, Waits, WindowId,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::raw;
use crate::StoreError;

/// The newest format this code writes and reads.
pub(super) const FORMAT: u8 = 1;

/// Something that is kept as a row.
pub(crate) trait Row: Sized {
    /// How it looks at rest.
    type Mirror: Serialize + DeserializeOwned;

    fn mirror(&self) -> Self::Mirror;

    /// `None` when it is nothing that could have been written.
    fn restore(mirror: Self::Mirror) -> Option<Self>;
}

pub(crate) fn encode<R: Row>(row: &R) -> Bytes {
    let encoded = postcard::to_extend(&row.mirror(), vec![FORMAT]);
    Bytes::from(encoded.expect("rows are plain data, and a vector takes any length"))
}

pub(super) fn decode<R: Row>(bytes: &[u8]) -> Result<R, StoreError> {
    let unreadable = |why| StoreError::Corrupt(Box::new(Unreadable { row: std::any::type_name::<R>(), why }));
    let (version, row) = bytes.split_first().ok_or_else(|| unreadable(Why::Empty))?;
    if *version != FORMAT {
        return Err(unreadable(Why::Version(*version)));
    }
    let mirror = postcard::from_bytes(row).map_err(|error| unreadable(Why::Damaged(error)))?;
    R::restore(mirror).ok_or_else(|| unreadable(Why::Impossible))
}

/// A row that cannot be read.
#[derive(Debug)]
struct Unreadable {
    row: &'static str,
    why: Why,
}

#[derive(Debug)]
enum Why {
    Empty,
    Version(u8),
    Damaged(postcard::Error),
    Impossible,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reading a row of type {}: ", self.row)?;
        match self.why {
            Why::Empty => f.write_str("it is empty"),
            Why::Version(version) => write!(f, "its format is {version}, this program reads {FORMAT}"),
            Why::Damaged(_) => f.write_str("it is damaged"),
            Why::Impossible => f.write_str("it says what cannot be"),
        }
    }
}

impl Error for Unreadable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.why {
            Why::Damaged(error) => Some(error),
            _ => None,
        }
    }
}

/// Rows that are their own mirror: numbers and text that nothing else uses.
macro_rules! plain_row {
    ($row:ident { $($field:ident: $kind:ty),* $(,)? }) => {
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub(super) struct $row {
            $(pub $field: $kind,)*
        }

        impl Row for $row {
            type Mirror = $row;

            fn mirror(&self) -> $row {
                self.clone()
            }

            fn restore(mirror: $row) -> Option<$row> {
                Some(mirror)
            }
        }
    };
}

plain_row!(MetaRow { partitions: u16, format: u32 });
plain_row!(OwnerRow { epoch: u64, owner: Option<Box<str>> });

impl OwnerRow {
    /// Whether writes under this fence count. Nobody has won epoch 0: it is what a partition has before its first claim.
    pub fn admits(&self, fence: Fence) -> bool {
        self.epoch == fence.epoch.0 && self.epoch != 0
    }
}

plain_row!(BucketRow { hour: u32, newest_finished: Option<i64>, newest_dead: Option<i64> });
plain_row!(VersionRow { version: u64 });

/// An entry of the coordination map.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct MapRow {
    #[serde(with = "raw")]
    pub value: Bytes,
    pub version: u64,
    pub expires_at: Option<i64>,
}

impl Row for MapRow {
    type Mirror = MapRow;

    fn mirror(&self) -> MapRow {
        self.clone()
    }

    fn restore(mirror: MapRow) -> Option<MapRow> {
        Some(mirror)
    }
}

/// Who carries an identity, and how it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct IdentityRow {
    pub id: TaskId,
    pub ended: Option<(EndState, Timestamp)>,
}

impl Row for IdentityRow {
    type Mirror = (IdMirror, Option<(EndStateMirror, i64)>);

    fn mirror(&self) -> Self::Mirror {
        (self.id.to_bytes(), self.ended.map(|(state, at)| (state.into(), at.as_micros())))
    }

    fn restore((id, ended): Self::Mirror) -> Option<Self> {
        let ended = ended.map(|(state, at)| (state.into(), Timestamp::from_micros(at)));
        Some(IdentityRow { id: id_from(&id)?, ended })
    }
}

impl Row for TaskId {
    type Mirror = IdMirror;

    fn mirror(&self) -> IdMirror {
        self.to_bytes()
    }

    fn restore(mirror: IdMirror) -> Option<TaskId> {
        id_from(&mirror)
    }
}

impl Row for crate::Held {
    type Mirror = (ObstacleMirror, Option<IdMirror>);

    fn mirror(&self) -> Self::Mirror {
        (self.obstacle.into(), self.holder.map(TaskId::to_bytes))
    }

    fn restore((obstacle, holder): Self::Mirror) -> Option<Self> {
        let holder = match holder {
            Some(id) => Some(id_from(&id)?),
            None => None,
        };
        Some(crate::Held { obstacle: obstacle.into(), holder })
    }
}

impl Row for (WindowId, Timestamp) {
    type Mirror = (u32, u8, i64);

    fn mirror(&self) -> Self::Mirror {
        (self.0.queue.0, self.0.priority.level(), self.1.as_micros())
    }

    fn restore((queue, level, at): Self::Mirror) -> Option<Self> {
        Some((window_from(queue, level)?, Timestamp::from_micros(at)))
    }
}

impl Row for Place {
    type Mirror = PlaceMirror;

    fn mirror(&self) -> PlaceMirror {
        let key = |key: RowKey| (key.wake_at.as_micros(), key.seq.0);
        match *self {
            Place::Window(id, row) => PlaceMirror::Window(id.queue.0, id.priority.level(), key(row)),
            Place::Parked(obstacle, row) => PlaceMirror::Parked(obstacle.into(), key(row)),
        }
    }

    fn restore(mirror: PlaceMirror) -> Option<Place> {
        let key = |(at, seq)| RowKey { wake_at: Timestamp::from_micros(at), seq: Seq(seq) };
        Some(match mirror {
            PlaceMirror::Window(queue, level, row) => Place::Window(window_from(queue, level)?, key(row)),
            PlaceMirror::Parked(obstacle, row) => Place::Parked(obstacle.into(), key(row)),
        })
    }
}

impl Row for Task {
    type Mirror = TaskMirror;

    fn mirror(&self) -> TaskMirror {
        TaskMirror {
            id: self.id.to_bytes(),
            spec: spec_mirror(&self.spec),
            revision: self.revision,
            wake_at: self.wake_at.as_micros(),
            parked: self.parked.map(Into::into),
            state: self.state.into(),
            attempts: self.attempts,
            forgiven: self.forgiven,
            crashes: self.crashes,
            begun: self.begun.map(|begun| (begun.epoch.0, begun.lease)),
            last_error: self.last_error.as_deref().map(Into::into),
        }
    }

    fn restore(mirror: TaskMirror) -> Option<Task> {
        Some(Task {
            id: id_from(&mirror.id)?,
            spec: Arc::new(spec_from(mirror.spec)?),
            revision: mirror.revision,
            wake_at: Timestamp::from_micros(mirror.wake_at),
            parked: mirror.parked.map(Into::into),
            state: mirror.state.into(),
            attempts: mirror.attempts,
            forgiven: mirror.forgiven,
            crashes: mirror.crashes,
            begun: mirror.begun.map(|(epoch, lease)| Begun { epoch: Epoch(epoch), lease }),
            last_error: mirror.last_error.map(Into::into),
        })
    }
}

impl Row for EndedTask {
    type Mirror = (TaskMirror, EndMirror);

    fn mirror(&self) -> Self::Mirror {
        let end = EndMirror {
            state: self.end.state.into(),
            at: self.end.at.as_micros(),
            result: self.end.result.clone(),
            error: self.end.error.as_deref().map(Into::into),
        };
        (self.task.mirror(), end)
    }

    fn restore((task, end): Self::Mirror) -> Option<Self> {
        let end = End {
            state: end.state.into(),
            at: Timestamp::from_micros(end.at),
            result: end.result,
            error: end.error.map(Into::into),
        };
        Some(EndedTask { task: Task::restore(task)?, end })
    }
}

type IdMirror = [u8; 25];

fn id_from(mirror: &IdMirror) -> Option<TaskId> {
    TaskId::from_bytes(mirror).ok()
}

fn window_from(queue: u32, level: u8) -> Option<WindowId> {
    Some(WindowId { queue: QueueId(queue), priority: Priority::new(level)? })
}

#[derive(Serialize, Deserialize)]
pub(crate) enum PlaceMirror {
    Window(u32, u8, (i64, u64)),
    Parked(ObstacleMirror, (i64, u64)),
}

/// An enum of the domain and its mirror, converted both ways.
macro_rules! mirror_enum {
    ($domain:ident, $mirror:ident { $($variant:ident),* $(,)? }) => {
        #[derive(Clone, Copy, Serialize, Deserialize)]
        pub(crate) enum $mirror {
            $($variant,)*
        }

        impl From<$domain> for $mirror {
            fn from(value: $domain) -> Self {
                match value {
                    $($domain::$variant => $mirror::$variant,)*
                }
            }
        }

        impl From<$mirror> for $domain {
            fn from(value: $mirror) -> Self {
                match value {
                    $($mirror::$variant => $domain::$variant,)*
                }
            }
        }
    };
}

mirror_enum!(EndState, EndStateMirror { Succeeded, Dead, Cancelled, Expired });
mirror_enum!(WaitState, WaitStateMirror { Scheduled, Retrying, Blocked });

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) enum ObstacleMirror {
    Lane(u64),
    Handler(u64),
    Destination(u64),
}

impl From<Obstacle> for ObstacleMirror {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Lane(lane) => ObstacleMirror::Lane(lane.0),
            Obstacle::Handler(hash) => ObstacleMirror::Handler(hash),
            Obstacle::Destination(hash) => ObstacleMirror::Destination(hash),
        }
    }
}

impl From<ObstacleMirror> for Obstacle {
    fn from(mirror: ObstacleMirror) -> Self {
        match mirror {
            ObstacleMirror::Lane(lane) => Obstacle::Lane(LaneId(lane)),
            ObstacleMirror::Handler(hash) => Obstacle::Handler(hash),
            ObstacleMirror::Destination(hash) => Obstacle::Destination(hash),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct TaskMirror {
    id: IdMirror,
    spec: SpecMirror,
    revision: u32,
    wake_at: i64,
    parked: Option<ObstacleMirror>,
    state: WaitStateMirror,
    attempts: u32,
    forgiven: u32,
    crashes: u16,
    begun: Option<(u64, Option<Duration>)>,
    last_error: Option<Box<str>>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct EndMirror {
    state: EndStateMirror,
    at: i64,
    #[serde(with = "raw")]
    result: Bytes,
    error: Option<Box<str>>,
}

#[derive(Serialize, Deserialize)]
struct SpecMirror {
    at: i64,
    first_at: Option<i64>,
    lane: Option<Box<str>>,
    unique_key: Option<Box<str>>,
    name: Option<Box<str>>,
    target: TargetMirror,
    #[serde(with = "raw")]
    payload: Bytes,
    retry: Option<RetryMirror>,
    start_by: Option<i64>,
    expires_at: Option<i64>,
    timeout: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
enum TargetMirror {
    Handler(Box<str>),
    Destination(Box<str>),
    Worker,
}

#[derive(Serialize, Deserialize)]
struct RetryMirror {
    waits: WaitsMirror,
    attempts_max: u32,
    age_max: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
enum WaitsMirror {
    Growing { min: Duration, max: Duration, factor_percent: u32, jitter_percent: u32 },
    Listed(Vec<Duration>),
}

fn spec_mirror(spec: &Spec) -> SpecMirror {
    SpecMirror {
        at: spec.at.as_micros(),
        first_at: spec.first_at.map(Timestamp::as_micros),
        lane: spec.lane.clone(),
        unique_key: spec.unique_key.clone(),
        name: spec.name.clone(),
        target: match &spec.target {
            Target::Handler(name) => TargetMirror::Handler((**name).into()),
            Target::Destination(name) => TargetMirror::Destination((**name).into()),
            Target::Worker => TargetMirror::Worker,
        },
        payload: spec.payload.clone(),
        retry: spec.retry.as_ref().map(retry_mirror),
        start_by: spec.start_by.map(Timestamp::as_micros),
        expires_at: spec.expires_at.map(Timestamp::as_micros),
        timeout: spec.timeout,
    }
}

fn spec_from(mirror: SpecMirror) -> Option<Spec> {
    let retry = match mirror.retry {
        Some(retry) => Some(retry_from(retry)?),
        None => None,
    };
    Some(Spec {
        at: Timestamp::from_micros(mirror.at),
        first_at: mirror.first_at.map(Timestamp::from_micros),
        lane: mirror.lane,
        unique_key: mirror.unique_key,
        name: mirror.name,
        target: match mirror.target {
            TargetMirror::Handler(name) => Target::Handler(name.into()),
            TargetMirror::Destination(name) => Target::Destination(name.into()),
            TargetMirror::Worker => Target::Worker,
        },
        payload: mirror.payload,
        retry,
        start_by: mirror.start_by.map(Timestamp::from_micros),
        expires_at: mirror.expires_at.map(Timestamp::from_micros),
        timeout: mirror.timeout,
    })
}

fn retry_mirror(retry: &RetryPolicy) -> RetryMirror {
    let waits = match &retry.waits {
        Waits::Growing { min, max, factor_percent, jitter_percent } => WaitsMirror::Growing {
            min: *min,
            max: *max,
            factor_percent: *factor_percent,
            jitter_percent: *jitter_percent,
        },
        Waits::Listed(waits) => WaitsMirror::Listed(waits.to_vec()),
    };
    RetryMirror { waits, attempts_max: retry.attempts_max, age_max: retry.age_max }
}

fn retry_from(mirror: RetryMirror) -> Option<RetryPolicy> {
    let waits = match mirror.waits {
        WaitsMirror::Growing { min, max, factor_percent, jitter_percent } => {
            Waits::Growing { min, max, factor_percent, jitter_percent }
        }
        WaitsMirror::Listed(waits) if waits.is_empty() => return None,
        WaitsMirror::Listed(waits) => Waits::Listed(Cow::Owned(waits)),
    };
    Some(RetryPolicy { waits, attempts_max: mirror.attempts_max, age_max: mirror.age_max })
}

#[cfg(test)]
mod tests;
