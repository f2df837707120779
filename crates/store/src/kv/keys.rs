//! Keys whose byte order is the order of what they stand for: big-endian numbers, a table's byte in front.

use bytes::Bytes;
use punctual_core::{
    Identity, Obstacle, PartitionId, Place, QueueId, RowKey, Seq, TaskId, Timestamp, WindowId,
};

use crate::StoreError;
use crate::place::{BucketId, birth_key};

/// What the store is: one row.
pub(super) const META: Bytes = Bytes::from_static(&[0]);
/// The version of the latest entry of the coordination map: one row.
pub(super) const MAP_VERSION: Bytes = Bytes::from_static(&[1]);
const OWNERSHIP: u8 = 2;
const MAP: u8 = 3;
const MAP_EXPIRY: u8 = 4;
const PARTITION: u8 = 5;

/// All keys lie before this. What lies behind belongs to the driver.
pub(super) const ROWS_END: Bytes = Bytes::from_static(&[u8::MAX]);

/// The tables of a partition, in the order they lie in. Numbers are never used for anything else again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Table {
    Windows = 0,
    Parked = 1,
    ParkedOrder = 2,
    Moved = 3,
    Leased = 4,
    Ended = 5,
    Buckets = 6,
    Identities = 7,
    EndedIdentities = 8,
    Held = 9,
    LowWater = 10,
    Schedules = 11,
}

impl Table {
    const ALL: [Table; 12] = [
        Table::Windows,
        Table::Parked,
        Table::ParkedOrder,
        Table::Moved,
        Table::Leased,
        Table::Ended,
        Table::Buckets,
        Table::Identities,
        Table::EndedIdentities,
        Table::Held,
        Table::LowWater,
        Table::Schedules,
    ];
}

/// What a key stands for.
pub(super) enum Kind<'a> {
    Meta,
    MapVersion,
    Ownership,
    Map(&'a str),
    MapExpiry(&'a str),
    Table(PartitionId, Table),
    Unknown,
}

/// What a key stands for, by how it begins.
pub(super) fn kind_of(key: &[u8]) -> Kind<'_> {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let known = match key {
        [0] => Some(Kind::Meta),
        [1] => Some(Kind::MapVersion),
        [OWNERSHIP, _, _] => Some(Kind::Ownership),
        [MAP, name @ ..] => text(name).map(Kind::Map),
        [MAP_EXPIRY, rest @ ..] => rest.get(8..).and_then(text).map(Kind::MapExpiry),
        [PARTITION, high, low, table, ..] => Table::ALL
            .get(usize::from(*table))
            .map(|table| Kind::Table(PartitionId(u16::from_be_bytes([*high, *low])), *table)),
        _ => None,
    };
    known.unwrap_or(Kind::Unknown)
}

/// Keys of tables fit into so many bytes, unless a name is in them.
const KEY_BYTES: usize = 32;

/// A key in the making.
#[derive(Clone)]
pub(super) struct Key(Vec<u8>);

impl Key {
    pub fn table(partition: PartitionId, table: Table) -> Key {
        let mut key = Vec::with_capacity(KEY_BYTES);
        key.push(PARTITION);
        Key(key).bytes(&partition.0.to_be_bytes()).bytes(&[table as u8])
    }

    fn bytes(mut self, bytes: &[u8]) -> Key {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn queue(self, queue: QueueId) -> Key {
        self.bytes(&queue.0.to_be_bytes())
    }

    pub fn hour(self, hour: u32) -> Key {
        self.bytes(&hour.to_be_bytes())
    }

    /// The sign is turned over, so that earlier sorts before later on both sides of 1970.
    fn time(self, at: Timestamp) -> Key {
        self.bytes(&(at.as_micros() as u64 ^ (1 << 63)).to_be_bytes())
    }

    pub fn row(self, key: RowKey) -> Key {
        self.time(key.wake_at).bytes(&key.seq.0.to_be_bytes())
    }

    fn obstacle(self, obstacle: Obstacle) -> Key {
        let (kind, number) = match obstacle {
            Obstacle::Lane(lane) => (0, lane.0),
            Obstacle::Handler(hash) => (1, hash),
            Obstacle::Destination(hash) => (2, hash),
        };
        self.bytes(&[kind]).bytes(&number.to_be_bytes())
    }

    pub fn done(self) -> Bytes {
        Bytes::from(self.0)
    }

    /// The first key after all that begin with this one.
    pub fn end(self) -> Bytes {
        after_prefix(&self.0)
    }
}

impl From<&Bytes> for Key {
    fn from(prefix: &Bytes) -> Key {
        Key(prefix.to_vec())
    }
}

/// The first key after all that begin with `prefix`.
pub(super) fn after_prefix(prefix: &[u8]) -> Bytes {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX).map_or(0, |last| last + 1);
    let mut end = prefix[..kept].to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    Bytes::from(end)
}

/// The key just after this one.
pub(super) fn just_after(key: &[u8]) -> Bytes {
    Key(key.to_vec()).bytes(&[0]).done()
}

pub(crate) fn ownership(partition: PartitionId) -> Bytes {
    Key(vec![OWNERSHIP]).bytes(&partition.0.to_be_bytes()).done()
}

/// Whether it is the key of an owner's row.
#[cfg(feature = "embedded")]
pub(crate) fn is_ownership(key: &[u8]) -> bool {
    key.first() == Some(&OWNERSHIP)
}

/// The partition that a key belongs to. One cut short belongs to the first that it may begin; one behind all
/// partitions to the last there can be.
#[cfg(feature = "embedded")]
pub(crate) fn partition_of(key: &[u8]) -> Option<PartitionId> {
    match key {
        [PARTITION, high, low, ..] => Some(PartitionId(u16::from_be_bytes([*high, *low]))),
        [PARTITION, high] => Some(PartitionId(u16::from_be_bytes([*high, 0]))),
        [PARTITION] => Some(PartitionId(0)),
        [kind, ..] if *kind > PARTITION => Some(PartitionId(u16::MAX)),
        _ => None,
    }
}

/// The partition and the number of the task whose row lies under this key, waiting or ended.
#[cfg(feature = "embedded")]
pub(crate) fn seq_of_row(key: &[u8]) -> Option<(PartitionId, Seq)> {
    let [PARTITION, high, low, table, ..] = key else { return None };
    let is_row = [Table::Windows, Table::Parked, Table::Ended].iter().any(|rows| *rows as u8 == *table);
    let seq = key.last_chunk().filter(|_| is_row)?;
    Some((PartitionId(u16::from_be_bytes([*high, *low])), Seq(u64::from_be_bytes(*seq))))
}

/// Whether it is the key of a task that waits for its time.
#[cfg(feature = "embedded")]
pub(crate) fn is_in_window(key: &[u8]) -> bool {
    matches!(key, [PARTITION, _, _, table, ..] if *table == Table::Windows as u8)
}

pub(super) fn window(partition: PartitionId, window: WindowId) -> Key {
    Key::table(partition, Table::Windows).queue(window.queue).bytes(&[window.priority.level()])
}

/// How long the part of a window row's key is that names the window, and of an ended row's the queue.
pub(super) const WINDOW_PREFIX: usize = 4 + 4 + 1;
pub(super) const QUEUE_PREFIX: usize = 4 + 4;

/// The queue of a prefix that names a window or a queue.
pub(super) fn queue_of(prefix: &[u8]) -> QueueId {
    let bytes = prefix.get(4..QUEUE_PREFIX).and_then(|bytes| bytes.try_into().ok());
    QueueId(u32::from_be_bytes(bytes.expect("the prefix names a queue")))
}

pub(super) fn parked(partition: PartitionId, obstacle: Obstacle) -> Key {
    Key::table(partition, Table::Parked).obstacle(obstacle)
}

pub(crate) fn place(partition: PartitionId, place: Place) -> Bytes {
    match place {
        Place::Window(id, key) => window(partition, id).row(key).done(),
        Place::Parked(obstacle, key) => parked(partition, obstacle).row(key).done(),
    }
}

pub(super) fn parked_order(partition: PartitionId, obstacle: Obstacle, key: RowKey) -> Bytes {
    Key::table(partition, Table::ParkedOrder).row(key).obstacle(obstacle).done()
}

pub(super) fn moved(partition: PartitionId, seq: Seq) -> Bytes {
    Key::table(partition, Table::Moved).bytes(&seq.0.to_be_bytes()).done()
}

pub(crate) fn leased(partition: PartitionId, seq: Seq) -> Bytes {
    Key::table(partition, Table::Leased).bytes(&seq.0.to_be_bytes()).done()
}

/// All rows of a bucket begin with this.
pub(super) fn bucket_rows(partition: PartitionId, bucket: BucketId) -> Key {
    Key::table(partition, Table::Ended).queue(bucket.queue).hour(bucket.hour)
}

pub(crate) fn ended(partition: PartitionId, id: &TaskId) -> Bytes {
    bucket_rows(partition, BucketId::of(id)).row(birth_key(id)).done()
}

pub(crate) fn bucket(partition: PartitionId, bucket: BucketId) -> Bytes {
    Key::table(partition, Table::Buckets).queue(bucket.queue).hour(bucket.hour).done()
}

pub(super) fn identity(partition: PartitionId, identity: Identity) -> Bytes {
    Key::table(partition, Table::Identities).bytes(&identity.0.to_be_bytes()).done()
}

/// Identities of a queue whose tasks ended in that hour begin with this.
pub(super) fn ended_identities(partition: PartitionId, queue: QueueId, hour: u32) -> Key {
    Key::table(partition, Table::EndedIdentities).queue(queue).hour(hour)
}

pub(super) fn ended_identity(partition: PartitionId, queue: QueueId, hour: u32, identity: Identity) -> Bytes {
    ended_identities(partition, queue, hour).bytes(&identity.0.to_be_bytes()).done()
}

/// The hour in a key of [`ended_identity`].
pub(super) fn hour_of_ended_identity(key: &[u8]) -> Result<u32, StoreError> {
    let before = key.len().checked_sub(size_of::<u128>()).map(|end| &key[..end]);
    let hour = before.and_then(|key| key.last_chunk()).map(|hour| u32::from_be_bytes(*hour));
    hour.ok_or_else(|| StoreError::Corrupt("the key of an ended identity is too short".into()))
}

pub(super) fn held(partition: PartitionId, obstacle: Obstacle) -> Bytes {
    Key::table(partition, Table::Held).obstacle(obstacle).done()
}

pub(super) fn low_water(partition: PartitionId, window: WindowId) -> Bytes {
    Key::table(partition, Table::LowWater).queue(window.queue).bytes(&[window.priority.level()]).done()
}

pub(super) fn schedule(partition: PartitionId, name: &str) -> Bytes {
    Key::table(partition, Table::Schedules).bytes(name.as_bytes()).done()
}

pub(super) fn map(key: &str) -> Key {
    Key(vec![MAP]).bytes(key.as_bytes())
}

/// Expired entries lie before live ones.
pub(super) fn map_expiry(at: Timestamp, key: &str) -> Bytes {
    Key(vec![MAP_EXPIRY]).time(at).bytes(key.as_bytes()).done()
}

pub(super) fn map_expiries(before: Timestamp) -> (Bytes, Bytes) {
    (Key(vec![MAP_EXPIRY]).done(), Key(vec![MAP_EXPIRY]).time(before).done())
}

/// The name at the end of a schedule's key.
pub(super) fn schedule_name(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.get(4..)?).ok()
}

/// The key at the end of a map entry's key.
pub(super) fn map_key(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.get(1..)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use punctual_core::{LaneId, Priority};

    use super::*;

    const P: PartitionId = PartitionId(3);

    fn any_row_key() -> impl Strategy<Value = RowKey> {
        let near = prop_oneof![any::<i64>(), -2i64..3, 250i64..260];
        (near, prop_oneof![any::<u64>(), 0u64..3])
            .prop_map(|(at, seq)| RowKey { wake_at: Timestamp::from_micros(at), seq: Seq(seq) })
    }

    fn any_obstacle() -> impl Strategy<Value = Obstacle> {
        prop_oneof![
            any::<u64>().prop_map(|lane| Obstacle::Lane(LaneId(lane))),
            any::<u64>().prop_map(Obstacle::Handler),
            any::<u64>().prop_map(Obstacle::Destination),
        ]
    }

    fn any_place() -> impl Strategy<Value = Place> {
        let window = (prop_oneof![any::<u32>(), 254u32..258], 0u8..=9).prop_map(|(queue, level)| WindowId {
            queue: QueueId(queue),
            priority: Priority::new(level).unwrap_or_default(),
        });
        prop_oneof![
            (window, any_row_key()).prop_map(|(window, key)| Place::Window(window, key)),
            (any_obstacle(), any_row_key()).prop_map(|(obstacle, key)| Place::Parked(obstacle, key)),
        ]
    }

    proptest! {
        #[test]
        fn places_sort_like_their_keys(one in any_place(), other in any_place()) {
            prop_assert_eq!(one.cmp(&other), place(P, one).cmp(&place(P, other)));
        }

        #[test]
        fn obstacles_sort_like_their_keys(one in any_obstacle(), other in any_obstacle()) {
            prop_assert_eq!(one.cmp(&other), held(P, one).cmp(&held(P, other)));
        }

        #[test]
        fn names_sort_like_their_keys_and_come_back(one: String, other: String) {
            prop_assert_eq!(one.cmp(&other), schedule(P, &one).cmp(&schedule(P, &other)));
            let (scheduled, mapped) = (schedule(P, &one), map(&one).done());
            prop_assert_eq!(schedule_name(&scheduled), Some(&*one));
            prop_assert_eq!(map_key(&mapped), Some(&*one));
        }

        #[test]
        fn partitions_do_not_overlap(one: u16, other: u16, a in any_place(), b in any_place()) {
            prop_assume!(one < other);
            prop_assert!(place(PartitionId(one), a) < place(PartitionId(other), b));
        }

        #[test]
        fn nothing_with_the_prefix_lies_at_or_after_its_end(prefix: Vec<u8>, rest: Vec<u8>) {
            prop_assume!(prefix.iter().any(|byte| *byte < u8::MAX));
            let end = after_prefix(&prefix);
            prop_assert!([prefix.clone(), rest].concat() < end);
            prop_assert!(!end.starts_with(&prefix));
        }
    }
}
