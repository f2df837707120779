//! Who a task is and where it lies: fixed at birth, readable from its id without an index.

use std::fmt;
use std::str::FromStr;

use crate::time::Timestamp;

/// A queue's number, given once per (namespace, queue name): purge, pause and list are ranges of rows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct QueueId(pub u32);

/// A fixed slice of lanes, owned by one node at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PartitionId(pub u16);

/// The order of acceptance within a partition. Given once by the owner (with a log in front: the offset).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// How many tasks one ownership can number: a trillion. The epoch fills the bits above.
    const PER_EPOCH_BITS: u32 = 40;

    /// The first number of an ownership. Numbers of later epochs are higher, so that no counter
    /// needs to be stored, and none is given twice.
    pub fn first_of(epoch: Epoch) -> Seq {
        Seq(epoch.0 << Self::PER_EPOCH_BITS)
    }

    /// The number after this one.
    pub fn next(self) -> Seq {
        Seq(self.0 + 1)
    }
}

/// Which ownership of a partition this is. It rises with each claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

/// Under whose authority a write is made. A store never acknowledges one under an old epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Fence {
    /// The partition written to.
    pub partition: PartitionId,
    /// The ownership the writer believes in.
    pub epoch: Epoch,
}

/// 0 goes first, 9 last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Priority(u8);

impl Priority {
    /// The least urgent.
    pub const LAST: Priority = Priority(9);

    /// `None` unless it is 0 to 9.
    pub fn new(level: u8) -> Option<Priority> {
        (level <= Self::LAST.0).then_some(Priority(level))
    }

    /// 0 to 9.
    pub fn level(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Priority(5)
    }
}

/// A hash that decides the partition: the same as Kafka's own partitioner makes of the routing key,
/// so that foreign producers agree with us.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Route(u32);

impl Route {
    /// The route of a lane, a unique key, a name or a pinned queue.
    pub fn of(key: &str) -> Route {
        Route(murmur2(key.as_bytes()) & 0x7fff_ffff)
    }

    /// A route for a task that may lie anywhere, from random bits of the caller's.
    pub fn anywhere(random: u32) -> Route {
        Route(random & 0x7fff_ffff)
    }

    /// The partition among `partitions`, which is fixed when a store is made.
    pub fn partition(self, partitions: u16) -> PartitionId {
        PartitionId((self.0 % u32::from(partitions)) as u16)
    }
}

/// A task's id: everything that is needed to find its row again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// Decides the partition.
    pub route: Route,
    /// The queue it was created in.
    pub queue: QueueId,
    /// The priority it was created with.
    pub priority: Priority,
    /// The time it was first filed under.
    pub birth: Timestamp,
    /// Its number within the partition.
    pub seq: Seq,
}

/// The text is not a task id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotATaskId;

impl fmt::Display for NotATaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a task id is 40 letters and digits, as returned when the task was created")
    }
}

impl std::error::Error for NotATaskId {}

const ID_BYTES: usize = 25;
const ID_CHARS: usize = 40;
/// Crockford's alphabet in small letters: no i, l, o or u to misread.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl TaskId {
    /// The 25 bytes behind the text, in an order that sorts like the rows.
    pub fn to_bytes(self) -> [u8; ID_BYTES] {
        let mut bytes = [0; ID_BYTES];
        bytes[0..4].copy_from_slice(&self.route.0.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.queue.0.to_be_bytes());
        bytes[8] = self.priority.0;
        bytes[9..17].copy_from_slice(&self.birth.as_micros().to_be_bytes());
        bytes[17..25].copy_from_slice(&self.seq.0.to_be_bytes());
        bytes
    }

    /// The id behind 25 bytes, if they are one.
    pub fn from_bytes(bytes: &[u8; ID_BYTES]) -> Result<TaskId, NotATaskId> {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| (u64::from(word(at)) << 32) | u64::from(word(at + 4));
        let birth = Timestamp::from_micros(long(9) as i64);
        if word(0) > 0x7fff_ffff || birth < Timestamp::MIN || birth > Timestamp::MAX {
            return Err(NotATaskId);
        }
        Ok(TaskId {
            route: Route(word(0)),
            queue: QueueId(word(4)),
            priority: Priority::new(bytes[8]).ok_or(NotATaskId)?,
            birth,
            seq: Seq(long(17)),
        })
    }

    /// The partition this task lies in.
    pub fn partition(self, partitions: u16) -> PartitionId {
        self.route.partition(partitions)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; ID_CHARS];
        for (chunk, out) in self.to_bytes().chunks_exact(5).zip(text.chunks_exact_mut(8)) {
            let bits = chunk.iter().fold(0u64, |bits, &byte| (bits << 8) | u64::from(byte));
            for (place, letter) in out.iter_mut().enumerate() {
                *letter = ALPHABET[(bits >> (35 - 5 * place) & 31) as usize];
            }
        }
        f.pad(std::str::from_utf8(&text).expect("the alphabet is ASCII"))
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for TaskId {
    type Err = NotATaskId;

    fn from_str(text: &str) -> Result<TaskId, NotATaskId> {
        let text: &[u8; ID_CHARS] = text.as_bytes().try_into().map_err(|_| NotATaskId)?;
        let mut bytes = [0; ID_BYTES];
        for (chunk, out) in text.chunks_exact(8).zip(bytes.chunks_exact_mut(5)) {
            let mut bits = 0u64;
            for letter in chunk {
                let value = ALPHABET.iter().position(|known| known == letter).ok_or(NotATaskId)?;
                bits = (bits << 5) | value as u64;
            }
            out.copy_from_slice(&bits.to_be_bytes()[3..]);
        }
        TaskId::from_bytes(&bytes)
    }
}

/// Murmur2 as Kafka's clients compute it. Twenty lines, frozen by Kafka's own test vectors.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    let rest = words.remainder();
    for (place, &byte) in rest.iter().enumerate() {
        hash ^= u32::from(byte) << (8 * place);
    }
    if !rest.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn routing_agrees_with_kafkas_own_partitioner() {
        // The vectors of Kafka's own `UtilsTest.testMurmur2`.
        let vectors: [(&str, i32); 6] = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ];
        for (key, expected) in vectors {
            assert_eq!(murmur2(key.as_bytes()) as i32, expected, "{key}");
        }
    }

    #[test]
    fn numbers_of_a_later_ownership_are_higher() {
        assert!(Seq::first_of(Epoch(2)) > Seq(Seq::first_of(Epoch(1)).0 + 1_000_000_000));
    }

    #[test]
    fn text_that_is_no_id_is_refused() {
        for text in ["", "abc", &"0".repeat(41), &"u".repeat(40), &"z".repeat(40), &"é".repeat(20)] {
            assert_eq!(text.parse::<TaskId>(), Err(NotATaskId), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_id_survives_its_own_text(
            route: u32, queue: u32, level in 0u8..=9, micros in 0..=Timestamp::MAX.as_micros(), seq: u64,
        ) {
            let id = TaskId {
                route: Route::anywhere(route),
                queue: QueueId(queue),
                priority: Priority::new(level).unwrap_or_default(),
                birth: Timestamp::from_micros(micros),
                seq: Seq(seq),
            };
            prop_assert_eq!(id.to_string().parse::<TaskId>(), Ok(id));
        }

        #[test]
        fn any_forty_characters_are_an_id_or_refused(text in "[0-9a-z]{40}") {
            if let Ok(id) = text.parse::<TaskId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
