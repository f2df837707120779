//! What each task is, by its number alone: so that the process and its checker agree without a word.

use std::time::Duration;

use punctual::{NewTask, OnConflict, Timestamp};

use super::dice::Dice;

/// Each producer schedules batches of one size, one after the other, and has lanes of its own.
pub const BATCHES: [u64; 4] = [1, 16, 256, 2048];
const PER_PRODUCER: u64 = 1_000_000;
const PER_LIFE: u64 = PER_PRODUCER * BATCHES.len() as u64;
const LANES: u64 = 3;
const FAR: Duration = Duration::from_secs(3_600);

/// The number of the first task of a producer in a life.
pub fn first(life: u64, producer: usize) -> u64 {
    life * PER_LIFE + producer as u64 * PER_PRODUCER
}

/// What a task carries: its number, its time in microseconds, and something that must come back whole.
pub type Payload = (u64, i64, String);

/// A task as it was planned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    pub n: u64,
    pub at: Timestamp,
    pub lane: Option<String>,
    pub unique_key: Option<String>,
    /// Somebody tries to cancel it after it was acknowledged.
    pub is_cancelled: bool,
    /// Somebody waits for its result.
    pub is_awaited: bool,
    filler: usize,
}

impl Plan {
    /// The task of this number, in a batch that was sent at that time.
    pub fn of(n: u64, sent_at: Timestamp) -> Plan {
        let dice = &mut Dice::new(n);
        let producer = n % PER_LIFE / PER_PRODUCER;
        let lane = (dice.below(3) == 0).then(|| format!("lane {producer}.{}", dice.below(LANES)));
        let later = match dice.below(10) {
            0 if lane.is_none() => FAR,
            0..3 => Duration::from_millis(dice.below(400)),
            _ => Duration::ZERO,
        };
        Plan {
            n,
            at: sent_at + later,
            lane,
            unique_key: (dice.below(4) == 0).then(|| format!("key {n}")),
            is_cancelled: dice.below(6) == 0,
            is_awaited: dice.below(8) == 0,
            filler: dice.below(300) as usize,
        }
    }

    /// Whether nobody waits for it to run by itself.
    pub fn is_far(&self, now: Timestamp) -> bool {
        self.at > now + FAR / 10
    }

    pub fn payload(&self) -> Payload {
        (self.n, self.at.as_micros(), "x".repeat(self.filler))
    }

    pub fn task(&self) -> NewTask {
        let task = NewTask::new("work").payload(&self.payload()).expect("numbers and text are JSON");
        let task = task.at(self.at).on_conflict(OnConflict::Keep);
        let task = self.lane.iter().fold(task, |task, lane| task.lane(lane));
        self.unique_key.iter().fold(task, |task, key| task.unique_key(key))
    }
}
