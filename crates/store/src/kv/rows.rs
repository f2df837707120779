//! How rows look at rest: one byte of format version, then postcard of a mirror of the domain's type.
//!
//! The mirrors are frozen: a field that is added goes to a new version with a mirror of its own, so that a
//! store written by an older Punctual stays readable. The domain's types know nothing of this.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use bytes::{BufMut, Bytes};
use punctual_core::{
    End, EndState, EndedTask, Fence, LaneId, Obstacle, Place, Priority, QueueId, RowKey, Seq, Task, TaskId,
    Timestamp, WaitState, WindowId,
};
use serde::{Deserialize, Serialize};

use super::raw;
use crate::StoreError;

mod task;

#[cfg(feature = "embedded")]
pub(crate) use self::task::{read_beginning, read_end, write_beginning, write_end};

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
pub(crate) fn encode_into<R: Row>(bytes: &mut impl BufMut, row: &R) {
    bytes.put_u8(FORMAT);
    write_plain(bytes, &row.mirror());
}

/// Appends plain data to bytes.
pub(super) fn write_plain(bytes: &mut impl BufMut, plain: &impl Serialize) {
    let written = postcard::serialize_with_flavor(plain, Appended(bytes));
    written.expect("rows are plain data, and a vector takes any length");
}

/// Bytes that grow.
struct Appended<'a, B>(&'a mut B);

impl<B: BufMut> postcard::ser_flavors::Flavor for Appended<'_, B> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.put_u8(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.put_slice(bytes);
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

/// What is known of a bucket of the history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct BucketRow {
    pub hour: u32,
    pub newest_finished: Option<i64>,
    pub newest_dead: Option<i64>,
    /// How many bytes lie in it. It came later: a row that was written before it ends here, and counts from 0 on.
    /// Whoever does not know it stops reading before it.
    #[serde(deserialize_with = "number_or_end")]
    pub bytes: u64,
}

fn number_or_end<'de, D: serde::Deserializer<'de>>(row: D) -> Result<u64, D::Error> {
    Ok(u64::deserialize(row).unwrap_or(0))
}

impl Row for BucketRow {
    type Mirror<'a> = Cow<'a, BucketRow>;

    fn mirror(&self) -> Cow<'_, BucketRow> {
        Cow::Borrowed(self)
    }

    fn restore(mirror: Cow<'_, BucketRow>) -> Option<BucketRow> {
        Some(mirror.into_owned())
    }
}

impl BucketRow {
    /// What one end says about the bucket of that hour.
    pub fn noting(hour: u32, task: &Task, end: &End) -> BucketRow {
        let at = Some(end.at.as_micros());
        let (newest_finished, newest_dead) =
            if end.state == EndState::Dead { (None, at) } else { (at, None) };
        BucketRow { hour, newest_finished, newest_dead, bytes: EndedTask::kept_bytes(task, end) }
    }

    /// What two say together about one bucket.
    pub fn and(&self, other: &BucketRow) -> BucketRow {
        BucketRow {
            hour: self.hour,
            newest_finished: self.newest_finished.max(other.newest_finished),
            newest_dead: self.newest_dead.max(other.newest_dead),
            bytes: self.bytes.saturating_add(other.bytes),
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

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;
