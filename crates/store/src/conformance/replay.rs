//! C5: facts may be written twice, and late ones do no harm.

use futures_util::future::join_all;
use punctual_core::{Begun, Change, EndState, Epoch, LaneId, Obstacle, PartitionId, Task, WaitState};

use super::model::{History, View};
use super::owner::{Owner, WINDOW, end, ended, lease, moved, parked, with_key};
use crate::{Found, Recorded, Store};

const OBSTACLE: Obstacle = Obstacle::Lane(LaneId(5));

pub async fn every_change_can_be_written_twice<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let task = with_key(owner.task(1, 100), "key");
    let (later, postponed) = moved(&task, 200);
    let (stuck, stuck_change) = parked(&later, OBSTACLE);
    let begun = Begun { epoch: Epoch(1), lease: None };
    let began = Change::Began { id: task.id, place: stuck.place(), attempts: 1, crashes: 0, begun };
    let running = Task { attempts: 1, begun: Some(begun), ..stuck };
    let dead = end(EndState::Dead, 300);
    let revived = Task { revision: running.revision + 1, parked: None, begun: None, ..running.clone() };
    let steps: Vec<(Change, Option<Found>)> = vec![
        (Change::Accepted(task.clone()), Some(Found::Live(task.clone()))),
        (postponed, Some(Found::Live(later.clone()))),
        (stuck_change, None),
        (began, Some(Found::Live(running.clone()))),
        (ended(&running, &dead), None),
        (Change::Revived(revived.clone()), Some(Found::Live(revived))),
    ];
    for (change, expected) in steps {
        owner.record(vec![change.clone()]).await;
        let once = owner.find_id(&task).await;
        assert!(expected.is_none() || once == expected, "{change:?} made {once:?}");
        owner.record(vec![change.clone(), change.clone()]).await;
        assert_eq!(owner.find_id(&task).await, once, "twice more: {change:?}");
        assert_eq!(owner.find_identity(&task).await, once, "by identity: {change:?}");
    }
    assert_eq!(owner.loaded(WINDOW).await, [1]);
}

pub async fn stale_changes_change_nothing<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let first = owner.task(1, 100);
    let (second, to_second) = moved(&first, 200);
    let (third, to_third) = moved(&second, 300);
    owner.record(vec![Change::Accepted(first.clone()), to_second.clone(), to_third]).await;
    owner.record(vec![Change::Accepted(first.clone()), to_second.clone()]).await;
    assert_eq!(owner.find_id(&first).await, Some(Found::Live(third.clone())));
    assert_eq!(owner.loaded(WINDOW).await, [1], "one row, not two");
    owner.end(&third, EndState::Succeeded, 400).await;
    let begun = lease(Epoch(1));
    let began = Change::Began { id: third.id, place: third.place(), attempts: 1, crashes: 0, begun };
    owner.record(vec![Change::Accepted(first.clone()), to_second, began]).await;
    assert!(matches!(owner.find_id(&first).await, Some(Found::Ended(_))), "what has ended stays so");
    assert_eq!(owner.loaded(WINDOW).await, [0; 0]);
    let standing = store.standing(owner.fence.partition).await.expect("the standing is read");
    assert!(standing.leased.is_empty(), "what has ended has no lease: {standing:?}");
}

/// What an engine writes when an attempt fails in its place: the row stays, and nothing runs any more.
pub async fn an_attempt_that_ended_does_not_begin_again<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let task = owner.task(1, 100);
    let began =
        Change::Began { id: task.id, place: task.place(), attempts: 1, crashes: 0, begun: lease(Epoch(1)) };
    let blocked = Task { attempts: 1, revision: 2, state: WaitState::Blocked, ..task.clone() };
    let failed = Change::Refiled { from: task.place(), was: task.state, task: blocked.clone() };
    for _ in 0..2 {
        owner.record(vec![Change::Accepted(task.clone()), began.clone(), failed.clone()]).await;
        assert_eq!(owner.find_id(&task).await, Some(Found::Live(blocked.clone())));
        let standing = store.standing(owner.fence.partition).await.expect("the standing is read");
        assert!(standing.leased.is_empty(), "nothing runs: {standing:?}");
    }
}

pub async fn records_of_one_owner_at_once_all_count<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let tasks: Vec<Task> = (1..=8).map(|seq| with_key(owner.task(seq, 100), &format!("key {seq}"))).collect();
    let accepts = tasks.iter().map(|task| owner.try_record(vec![Change::Accepted(task.clone())]));
    assert!(join_all(accepts).await.iter().all(|answer| *answer == Recorded::Done));
    assert_eq!(owner.loaded(WINDOW).await, (1..=8).collect::<Vec<u64>>());
    let over = end(EndState::Succeeded, 200);
    let ends = tasks.iter().map(|task| owner.try_record(vec![ended(task, &over)]));
    assert!(join_all(ends).await.iter().all(|answer| *answer == Recorded::Done));
    assert_eq!(owner.loaded(WINDOW).await, [0; 0]);
    for task in &tasks {
        assert!(matches!(owner.find_identity(task).await, Some(Found::Ended(_))), "{:?}", task.id.seq);
    }
}

pub async fn random_histories_read_like_a_naive_model<S: Store>(store: &S) {
    for (seed, partition) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
        let owner = Owner::claim(store, PartitionId(partition)).await;
        let mut history = History::new(seed, PartitionId(partition));
        for _ in 0..15 {
            let batch = history.batch();
            owner.record(batch.clone()).await;
            owner.record(batch).await;
        }
        let expected = history.view();
        View::read(&owner, &history).await.expect_equal(&expected);
        for changes in history.written.chunks(5) {
            owner.record(changes.to_vec()).await;
        }
        View::read(&owner, &history).await.expect_equal(&expected);
    }
}
