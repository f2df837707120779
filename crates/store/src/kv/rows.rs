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
use serde::{Deserialize, Serialize};

use super::raw;
use crate::StoreError;

/// The newest format this code writes and reads.
pub(super) const FORMAT: u8 = 1;

/// Most rows fit into so many bytes.
const ROW_BYTES: usize = 256;

/// Something that is kept as a row.
pub(crate) trait Row: Sized {
    /// How it looks at rest.
    type Mirror<'a>: Serialize + Deserialize<'a>
    where
        Self: 'a;

    fn mirror(&self) -> Self::Mirror<'_>;

    /// `None` when it is nothing that could have been written.
    fn restore(mirror: Self::Mirror<'_>) -> Option<Self>;
}

pub(crate) fn encode<R: Row>(row: &R) -> Bytes {
    let mut encoded = Vec::with_capacity(ROW_BYTES);
    encode_into(&mut encoded, row);
    Bytes::from(encoded)
}

/// Appends a row to bytes.
pub(crate) fn encode_into<R: Row>(bytes: &mut Vec<u8>, row: &R) {
    bytes.push(FORMAT);
    write_plain(bytes, &row.mirror());
}

/// Appends plain data to bytes.
pub(super) fn write_plain(bytes: &mut Vec<u8>, plain: &impl Serialize) {
    let written = postcard::serialize_with_flavor(plain, Appended(bytes));
    written.expect("rows are plain data, and a vector takes any length");
}

/// Bytes that grow.
struct Appended<'a>(&'a mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Appended<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

pub(crate) fn decode<R: Row>(bytes: &[u8]) -> Result<R, StoreError> {
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
        pub(crate) struct $row {
            $(pub $field: $kind,)*
        }

        impl Row for $row {
            type Mirror<'a> = Cow<'a, $row>;

            fn mirror(&self) -> Cow<'_, $row> {
                Cow::Borrowed(self)
            }

            fn restore(mirror: Cow<'_, $row>) -> Option<$row> {
                Some(mirror.into_owned())
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

impl BucketRow {
    /// The later of what two say about one bucket.
    pub fn or_newer(&self, other: &BucketRow) -> BucketRow {
        BucketRow {
            hour: self.hour,
            newest_finished: self.newest_finished.max(other.newest_finished),
            newest_dead: self.newest_dead.max(other.newest_dead),
        }
    }
}

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
    type Mirror<'a> = Cow<'a, MapRow>;

    fn mirror(&self) -> Cow<'_, MapRow> {
        Cow::Borrowed(self)
    }

    fn restore(mirror: Cow<'_, MapRow>) -> Option<MapRow> {
        Some(mirror.into_owned())
    }
}

/// Who carries an identity, and how it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct IdentityRow {
    pub id: TaskId,
    pub ended: Option<(EndState, Timestamp)>,
}

impl Row for IdentityRow {
    type Mirror<'a> = (IdMirror, Option<(EndStateMirror, i64)>);

    fn mirror(&self) -> Self::Mirror<'_> {
        (self.id.into(), self.ended.map(|(state, at)| (state.into(), at.as_micros())))
    }

    fn restore((id, ended): Self::Mirror<'_>) -> Option<Self> {
        let ended = ended.map(|(state, at)| (state.into(), Timestamp::from_micros(at)));
        Some(IdentityRow { id: id.restore()?, ended })
    }
}

impl Row for TaskId {
    type Mirror<'a> = IdMirror;

    fn mirror(&self) -> IdMirror {
        (*self).into()
    }

    fn restore(mirror: IdMirror) -> Option<TaskId> {
        mirror.restore()
    }
}

impl Row for crate::Held {
    type Mirror<'a> = (ObstacleMirror, Option<IdMirror>);

    fn mirror(&self) -> Self::Mirror<'_> {
        (self.obstacle.into(), self.holder.map(IdMirror::from))
    }

    fn restore((obstacle, holder): Self::Mirror<'_>) -> Option<Self> {
        let holder = match holder {
            Some(id) => Some(id.restore()?),
            None => None,
        };
        Some(crate::Held { obstacle: obstacle.into(), holder })
    }
}

impl Row for (WindowId, Timestamp) {
    type Mirror<'a> = (u32, u8, i64);

    fn mirror(&self) -> Self::Mirror<'_> {
        (self.0.queue.0, self.0.priority.level(), self.1.as_micros())
    }

    fn restore((queue, level, at): Self::Mirror<'_>) -> Option<Self> {
        Some((window_from(queue, level)?, Timestamp::from_micros(at)))
    }
}

impl Row for Place {
    type Mirror<'a> = PlaceMirror;

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
    type Mirror<'a> = TaskMirror<'a>;

    fn mirror(&self) -> TaskMirror<'_> {
        TaskMirror { id: self.id.into(), spec: spec_mirror(&self.spec), progress: self.progress() }
    }

    fn restore(mirror: TaskMirror<'_>) -> Option<Task> {
        let (id, spec) = (mirror.id.restore()?, Arc::new(spec_from(mirror.spec)?));
        Some(mirror.progress.of(id, spec))
    }
}

/// How far a task has come: everything but what was asked for.
trait Progress {
    fn progress(&self) -> ProgressMirror<'_>;
}

impl Progress for Task {
    fn progress(&self) -> ProgressMirror<'_> {
        ProgressMirror {
            revision: self.revision,
            wake_at: self.wake_at.as_micros(),
            parked: self.parked.map(Into::into),
            state: self.state.into(),
            attempts: self.attempts,
            forgiven: self.forgiven,
            crashes: self.crashes,
            begun: self.begun.map(|begun| (begun.epoch.0, begun.lease)),
            last_error: self.last_error.as_deref(),
        }
    }
}

impl ProgressMirror<'_> {
    fn of(self, id: TaskId, spec: Arc<Spec>) -> Task {
        Task {
            id,
            spec,
            revision: self.revision,
            wake_at: Timestamp::from_micros(self.wake_at),
            parked: self.parked.map(Into::into),
            state: self.state.into(),
            attempts: self.attempts,
            forgiven: self.forgiven,
            crashes: self.crashes,
            begun: self.begun.map(|(epoch, lease)| Begun { epoch: Epoch(epoch), lease }),
            last_error: self.last_error.map(Into::into),
        }
    }
}

impl Row for EndedTask {
    type Mirror<'a> = (TaskMirror<'a>, EndMirror<'a>);

    fn mirror(&self) -> Self::Mirror<'_> {
        (self.task.mirror(), end_mirror(&self.end))
    }

    fn restore((task, end): Self::Mirror<'_>) -> Option<Self> {
        Some(EndedTask { task: Task::restore(task)?, end: end_from(end) })
    }
}

fn end_mirror(end: &End) -> EndMirror<'_> {
    EndMirror {
        state: end.state.into(),
        at: end.at.as_micros(),
        result: end.result.clone(),
        error: end.error.as_deref(),
    }
}

fn end_from(end: EndMirror<'_>) -> End {
    End {
        state: end.state.into(),
        at: Timestamp::from_micros(end.at),
        result: end.result,
        error: end.error.map(Into::into),
    }
}

/// An end, written by what differs from the task's row.
#[cfg(feature = "embedded")]
pub(crate) fn write_end(bytes: &mut Vec<u8>, task: &Task, end: &End) {
    write_plain(bytes, &(task.progress(), end_mirror(end)));
}

/// The end of the task with that row. `None`: nothing that could have been written.
#[cfg(feature = "embedded")]
pub(crate) fn read_end(bytes: &[u8], row: &Task) -> Option<EndedTask> {
    let (progress, end): (ProgressMirror<'_>, EndMirror<'_>) = postcard::from_bytes(bytes).ok()?;
    Some(EndedTask { task: progress.of(row.id, row.spec.clone()), end: end_from(end) })
}

/// That an attempt has begun, as the task's row is to know it.
#[cfg(feature = "embedded")]
pub(crate) fn write_beginning(bytes: &mut Vec<u8>, task: &Task) {
    let begun = task.begun.map(|begun| (begun.epoch.0, begun.lease));
    write_plain(bytes, &(task.attempts, task.crashes, begun));
}

/// The row of a task whose attempt has begun.
#[cfg(feature = "embedded")]
pub(crate) fn read_beginning(bytes: &[u8], row: Task) -> Option<Task> {
    let (attempts, crashes, begun): (_, _, Option<(u64, _)>) = postcard::from_bytes(bytes).ok()?;
    let begun = begun.map(|(epoch, lease)| Begun { epoch: Epoch(epoch), lease });
    Some(Task { attempts, crashes, begun, ..row })
}

/// A task's id as one piece of bytes.
#[derive(Clone, Copy)]
pub(crate) struct IdMirror([u8; 25]);

impl From<TaskId> for IdMirror {
    fn from(id: TaskId) -> IdMirror {
        IdMirror(id.to_bytes())
    }
}

impl IdMirror {
    fn restore(&self) -> Option<TaskId> {
        TaskId::from_bytes(&self.0).ok()
    }
}

impl Serialize for IdMirror {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for IdMirror {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        let id = bytes.try_into().map_err(|_| serde::de::Error::invalid_length(bytes.len(), &"25 bytes"))?;
        Ok(IdMirror(id))
    }
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
pub(crate) struct TaskMirror<'a> {
    id: IdMirror,
    #[serde(borrow)]
    spec: SpecMirror<'a>,
    progress: ProgressMirror<'a>,
}

#[derive(Serialize, Deserialize)]
struct ProgressMirror<'a> {
    revision: u32,
    wake_at: i64,
    parked: Option<ObstacleMirror>,
    state: WaitStateMirror,
    attempts: u32,
    forgiven: u32,
    crashes: u16,
    begun: Option<(u64, Option<Duration>)>,
    last_error: Option<&'a str>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct EndMirror<'a> {
    state: EndStateMirror,
    at: i64,
    #[serde(with = "raw")]
    result: Bytes,
    error: Option<&'a str>,
}

#[derive(Serialize, Deserialize)]
struct SpecMirror<'a> {
    at: i64,
    first_at: Option<i64>,
    lane: Option<&'a str>,
    unique_key: Option<&'a str>,
    name: Option<&'a str>,
    #[serde(borrow)]
    target: TargetMirror<'a>,
    #[serde(with = "raw")]
    payload: Bytes,
    retry: Option<RetryMirror>,
    start_by: Option<i64>,
    expires_at: Option<i64>,
    timeout: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
enum TargetMirror<'a> {
    Handler(&'a str),
    Destination(&'a str),
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

fn spec_mirror(spec: &Spec) -> SpecMirror<'_> {
    SpecMirror {
        at: spec.at.as_micros(),
        first_at: spec.first_at.map(Timestamp::as_micros),
        lane: spec.lane.as_deref(),
        unique_key: spec.unique_key.as_deref(),
        name: spec.name.as_deref(),
        target: match &spec.target {
            Target::Handler(name) => TargetMirror::Handler(name),
            Target::Destination(name) => TargetMirror::Destination(name),
            Target::Worker => TargetMirror::Worker,
        },
        payload: spec.payload.clone(),
        retry: spec.retry.as_ref().map(retry_mirror),
        start_by: spec.start_by.map(Timestamp::as_micros),
        expires_at: spec.expires_at.map(Timestamp::as_micros),
        timeout: spec.timeout,
    }
}

fn spec_from(mirror: SpecMirror<'_>) -> Option<Spec> {
    let retry = match mirror.retry {
        Some(retry) => Some(retry_from(retry)?),
        None => None,
    };
    Some(Spec {
        at: Timestamp::from_micros(mirror.at),
        first_at: mirror.first_at.map(Timestamp::from_micros),
        lane: mirror.lane.map(Into::into),
        unique_key: mirror.unique_key.map(Into::into),
        name: mirror.name.map(Into::into),
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
