//! Faults happen as the seed says, leave the store whole, and stop when told to.

use std::sync::Arc;
use std::time::Duration;

use punctual_core::{
    Change, Epoch, Fence, PartitionId, Priority, QueueId, Route, RowKey, Seq, Spec, Target, Task, TaskId,
    Timestamp, WindowId,
};
use punctual_store::faulty::{FaultCounts, FaultRates, Faults, Faulty, SeededFaults};
use punctual_store::{MemoryStore, Recorded, Store, StoreError, conformance};

const FENCE: Fence = Fence { partition: PartitionId(0), epoch: Epoch(1) };
const OFTEN: FaultRates = FaultRates {
    delay_per_mille: 300,
    delay_max: Duration::from_secs(60),
    request_lost_per_mille: 200,
    answer_lost_per_mille: 200,
    torn_per_mille: 300,
};

#[expect(clippy::disallowed_methods, reason = "the clock of these tests is paused, so nothing waits")]
fn faulty(seed: u64, rates: FaultRates) -> Faulty<MemoryStore, impl Faults> {
    Faulty::new(MemoryStore::new(4), SeededFaults::new(seed, rates, tokio::time::sleep))
}

fn accepted(seq: u64) -> Change {
    let id = TaskId {
        route: Route::anywhere(0),
        queue: QueueId(1),
        priority: Priority::LAST,
        birth: Timestamp::from_secs(seq as i64),
        seq: Seq(seq),
    };
    Change::Accepted(Task::born(id, Arc::new(Spec::new(Target::Worker, id.birth))))
}

/// Writes a hundred tasks, and tells what was answered, what is there, and what went wrong.
async fn run(seed: u64) -> (Vec<Recorded>, Vec<u64>, FaultCounts) {
    let store = faulty(seed, OFTEN);
    store.inner().claim(FENCE.partition, Epoch(0), "me").await.expect("claimed");
    let mut answers = Vec::new();
    for seq in 1..=100 {
        answers.extend(store.record(&[(FENCE, vec![accepted(2 * seq), accepted(2 * seq + 1)])]).await);
    }
    let counts = store.counts();
    store.calm();
    let window = WindowId { queue: QueueId(1), priority: Priority::LAST };
    let loaded = store.load(FENCE.partition, window, RowKey::FIRST, Timestamp::MAX, 1_000).await;
    let seqs = loaded.expect("it is calm").tasks.iter().map(|task| task.id.seq.0).collect();
    assert_eq!(store.counts(), counts, "nothing goes wrong while it is calm");
    (answers, seqs, counts)
}

#[tokio::test(start_paused = true)]
async fn a_seed_repeats_its_faults_and_another_has_others() {
    let (first, again, other) = (run(7).await, run(7).await, run(8).await);
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_is_there_and_what_was_not_may_be() {
    let (answers, seqs, counts) = run(1).await;
    let there = |n: u64| [2 * n, 2 * n + 1].into_iter().filter(|seq| seqs.contains(seq)).count();
    let mut unknown = [0; 3];
    for (n, answer) in (1..).zip(&answers) {
        match answer {
            Recorded::Done => assert_eq!(there(n), 2, "all of {n}"),
            Recorded::Unknown => unknown[there(n)] += 1,
            Recorded::Fenced | Recorded::Full => panic!("nobody else claimed it"),
        }
    }
    assert!(unknown.iter().all(|times| *times > 0), "none, some and all of it happened: {unknown:?}");
    let FaultCounts { delays, requests_lost, answers_lost, torn } = counts;
    assert!([delays, requests_lost, answers_lost, torn].iter().all(|times| *times > 0), "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_claim_is_unavailable_before_and_unknown_after_it_happened() {
    let store = faulty(3, OFTEN);
    let mut seen = [0; 2];
    for _ in 0..100 {
        let epoch = async || store.inner().ownerships().await.expect("memory answers")[0].epoch;
        let before = epoch().await;
        let answer = store.claim(FENCE.partition, before, "me").await;
        match answer {
            Ok(_) => assert_eq!(epoch().await, Epoch(before.0 + 1)),
            Err(StoreError::Unavailable(_)) => {
                seen[0] += 1;
                assert_eq!(epoch().await, before, "nothing was changed");
            }
            Err(StoreError::Unknown(_)) => seen[1] += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_only_slow_conforms() {
    let slow = FaultRates { request_lost_per_mille: 0, answer_lost_per_mille: 0, torn_per_mille: 0, ..OFTEN };
    conformance::run(async || faulty(5, slow)).await;
}
