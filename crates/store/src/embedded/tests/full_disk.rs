//! A full disk refuses what is new, takes what ends tasks, and goes on by itself when space returns.

use punctual_core::{Change, EndState, PartitionId, Task};

use super::machine::{Machine, SEGMENT_BYTES, Simulated, rows_of};
use crate::conformance::Owner;
use crate::embedded::Hands;
use crate::{Found, Recorded};

const MANY: u64 = 100_000;

/// Accepts tasks until there is no room, and hands out those that were accepted.
async fn fill(owner: &Owner<'_, Simulated>, first: u64) -> Vec<Task> {
    let mut accepted = Vec::new();
    for seq in first..first + MANY {
        let task = owner.task(seq, 1_000 + seq as i64);
        match owner.try_record(vec![Change::Accepted(task.clone())]).await {
            Recorded::Done => accepted.push(task),
            answer => {
                assert_eq!(answer, Recorded::Full);
                return accepted;
            }
        }
    }
    panic!("the disk is never full");
}

/// Asks until there is room: whoever makes it takes a moment.
async fn accept_at_last(owner: &Owner<'_, Simulated>, seq: u64) -> Task {
    let task = owner.task(seq, 1_000);
    while owner.try_record(vec![Change::Accepted(task.clone())]).await != Recorded::Done {
        tokio::task::yield_now().await;
    }
    task
}

async fn is_live(owner: &Owner<'_, Simulated>, task: &Task) -> bool {
    matches!(owner.find_id(task).await, Some(Found::Live(_)))
}

/// What is full is made so, and has room again.
async fn full_and_not(hands: Hands, machine: &Machine, set_full: impl Fn(&Machine, bool)) {
    let partition = PartitionId(1);
    let store = machine.open_with(hands).await.expect("it opens");
    let owner = Owner::claim(&store, partition).await;
    set_full(machine, true);
    let accepted = fill(&owner, 1).await;
    assert!(accepted.len() > 10, "{} tasks", accepted.len());
    for task in accepted.iter().take(8) {
        // It begins and ends as if nothing were wrong, and beside something new that is refused.
        owner.end(task, EndState::Succeeded, 2_000).await;
        let more = owner.task(MANY + 1, 1_000);
        assert_eq!(owner.try_record(vec![Change::Accepted(more)]).await, Recorded::Full);
    }
    set_full(machine, false);
    let next = accept_at_last(&owner, 2 * MANY).await;
    let more = owner.task(2 * MANY + 1, 1_000);
    owner.accept(std::slice::from_ref(&more)).await;
    let rows = rows_of(&store).await;
    drop(store);
    machine.disk.crash();
    let store = machine.open_with(hands).await.expect("it opens");
    assert!(rows_of(&store).await == rows, "what was there before is there");
    let owner = Owner::claim(&store, partition).await;
    for (number, task) in accepted.iter().chain([&next, &more]).enumerate() {
        assert_eq!(is_live(&owner, task).await, number >= 8, "task {number}");
    }
}

#[tokio::test]
async fn a_disk_without_room_for_segments() {
    for hands in [Hands::Inline, Hands::Threads] {
        let machine = Machine::new(1);
        full_and_not(hands, &machine, |machine, is_full| {
            machine.disk.set_capacity(if is_full { 4 * SEGMENT_BYTES } else { u64::MAX });
            // The journal cannot forget what the tables do not take.
            machine.cold.set_full(is_full);
        })
        .await;
    }
}

#[tokio::test]
async fn tables_without_room_for_a_layer() {
    // The store failed for good when a checkpoint found no room.
    for hands in [Hands::Inline, Hands::Threads] {
        let machine = Machine::new(2);
        full_and_not(hands, &machine, |machine, is_full| machine.cold.set_full(is_full)).await;
    }
}

#[tokio::test]
async fn a_store_that_waits_for_room_can_be_closed() {
    let machine = Machine::new(3);
    let store = machine.open_with(Hands::Threads).await.expect("it opens");
    machine.cold.set_full(true);
    let accepted = fill(&Owner::claim(&store, PartitionId(1)).await, 1).await;
    drop(store);
    machine.cold.set_full(false);
    let store = machine.open_with(Hands::Threads).await.expect("it opens");
    let owner = Owner::claim(&store, PartitionId(1)).await;
    for task in accepted {
        assert!(is_live(&owner, &task).await);
    }
}
