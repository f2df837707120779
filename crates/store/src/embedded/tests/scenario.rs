//! A life of a store, step by step, and every state that it goes through, as a store in memory has it.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use punctual_core::{Change, Epoch, Fence, PartitionId, QueueId, Timestamp};

use super::machine::{PARTITIONS, Rows};
use crate::conformance::History;
use crate::kv::{Guard, KvStore, MemoryKv, OrderedKv, Write};
use crate::{Recorded, Retention, Store, StoreError, Swap};

const FENCES: [Fence; 2] = [
    Fence { partition: PartitionId(1), epoch: Epoch(1) },
    Fence { partition: PartitionId(2), epoch: Epoch(1) },
];
/// History goes whenever somebody looks, and some identities with it.
const EVERYTHING: Retention = Retention {
    finished_before: Timestamp::MAX,
    dead_before: Timestamp::MAX,
    identity_before: Timestamp::from_secs(7_200),
    bytes_max: None,
};

/// Something that is asked of a store.
#[derive(Clone, Debug)]
pub enum Step {
    Claim(PartitionId),
    Record(Vec<(Fence, Vec<Change>)>),
    Prune(Fence, QueueId),
    Set(u64),
}

/// How it went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Went {
    Done,
    Full,
    Failed,
}

/// Steps, and the states between them.
pub struct Scenario {
    pub steps: Vec<Step>,
    /// Every state that the rows went through.
    states: Vec<Rows>,
    /// By step: which state was the last one after it.
    after: Vec<usize>,
}

impl Scenario {
    pub async fn new(seed: u64) -> Scenario {
        let steps = steps(seed);
        let kv = Watched::default();
        let states = kv.states.clone();
        states.lock().expect("unharmed").push(Rows::new());
        let store = KvStore::open(kv, PARTITIONS).await.expect("memory does not fail");
        let mut after = Vec::new();
        for step in &steps {
            assert_eq!(step.take(&store).await, Went::Done);
            after.push(states.lock().expect("unharmed").len() - 1);
        }
        let states = states.lock().expect("unharmed").clone();
        Scenario { steps, states, after }
    }

    /// What may be there when the step of this number was under way, and all before it were answered.
    pub fn states_at(&self, step: usize) -> &[Rows] {
        let first = step.checked_sub(1).map_or(0, |before| self.after[before]);
        let last = self.after.get(step).copied().unwrap_or(self.states.len() - 1);
        let range: RangeInclusive<usize> = first..=last;
        &self.states[range]
    }

    /// A state, and so many before it as they were written.
    pub fn states_before(&self, rows: &Rows, count: usize) -> Vec<&Rows> {
        let is = self.states.iter().rposition(|state| state == rows).expect("it is one of them");
        self.states[is.saturating_sub(count)..=is].iter().collect()
    }

    pub fn last_state(&self) -> &Rows {
        &self.states[self.states.len() - 1]
    }

    /// Takes the steps from this one on. Stops at the first that is not answered, and says which.
    pub async fn go_on(&self, store: &impl Store, from: usize) -> Result<(), (usize, Went)> {
        for (number, step) in self.steps.iter().enumerate().skip(from) {
            match step.take(store).await {
                Went::Done => {}
                went => return Err((number, went)),
            }
        }
        Ok(())
    }
}

impl Step {
    pub async fn take(&self, store: &impl Store) -> Went {
        match self {
            Step::Claim(partition) => went(store.claim(*partition, Epoch(0), "owner").await),
            Step::Prune(fence, queue) => went(store.prune(*fence, *queue, EVERYTHING, 1_000).await),
            Step::Set(number) => {
                let (key, value) = (format!("entry {}", number % 2), Bytes::from(number.to_string()));
                let set = |expected| {
                    store.compare_and_set(Timestamp::MIN, &key, expected, Some(value.clone()), None)
                };
                match set(None).await {
                    Ok(Swap::Conflict(Some(entry))) if entry.value != value => {
                        went(set(Some(entry.version)).await)
                    }
                    answer => went(answer),
                }
            }
            Step::Record(batch) => {
                let answers = store.record(batch).await;
                let is = |wanted: Recorded| answers.contains(&wanted);
                assert!(!is(Recorded::Fenced), "nobody else claims anything");
                assert!(!is(Recorded::Unknown) || answers.iter().all(|answer| *answer == Recorded::Unknown));
                match answers[0] {
                    Recorded::Unknown => Went::Failed,
                    // What ends tasks is taken beside something new that is not.
                    _ if is(Recorded::Full) => Went::Full,
                    _ => Went::Done,
                }
            }
        }
    }
}

fn went<T>(answer: Result<T, StoreError>) -> Went {
    match answer {
        Ok(_) => Went::Done,
        Err(StoreError::Full) => Went::Full,
        Err(_) => Went::Failed,
    }
}

fn steps(seed: u64) -> Vec<Step> {
    let mut histories =
        FENCES.map(|fence| History::new(seed + u64::from(fence.partition.0), fence.partition));
    let mut steps: Vec<Step> = FENCES.iter().map(|fence| Step::Claim(fence.partition)).collect();
    for number in 0..48_u64 {
        let one = (number % 2) as usize;
        steps.push(match number % 8 {
            3 => Step::Prune(FENCES[one], QueueId(1 + (number / 8 % 3) as u32)),
            6 => Step::Set(number),
            // Both in one frame, or one alone.
            0 | 4 => {
                let batch = FENCES.iter().zip(&mut histories);
                Step::Record(batch.map(|(fence, history)| (*fence, history.batch())).collect())
            }
            _ => Step::Record(vec![(FENCES[one], histories[one].batch())]),
        });
    }
    steps
}

/// A map in memory that remembers every state it was in.
#[derive(Clone, Default)]
struct Watched {
    kv: MemoryKv,
    states: Arc<Mutex<Vec<Rows>>>,
}

impl OrderedKv for Watched {
    fn write_max(&self) -> usize {
        self.kv.write_max()
    }

    async fn get(&self, key: &Bytes) -> Result<Option<Bytes>, StoreError> {
        self.kv.get(key).await
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.kv.get_many(keys).await
    }

    async fn scan(&self, from: &Bytes, until: &Bytes, limit: usize) -> Result<Rows, StoreError> {
        self.kv.scan(from, until, limit).await
    }

    async fn write(&self, guards: &[Guard], writes: Vec<Write>) -> Result<bool, StoreError> {
        let is_written = self.kv.write(guards, writes).await?;
        let rows = self.kv.scan(&Bytes::new(), &Bytes::from_static(&[255]), usize::MAX).await?;
        self.states.lock().expect("unharmed").push(rows);
        Ok(is_written)
    }
}
