//! A full disk refuses what is new, takes what ends tasks, and goes on by itself when space returns.

use punctual_core::{Change, EndState, PartitionId, Task};

use bytes::Bytes;
use futures_util::FutureExt;
use punctual_core::Timestamp;

use super::machine::{Machine, SEGMENT_BYTES, Simulated, rows_of};
use crate::conformance::Owner;
use crate::embedded::Hands;
use crate::embedded::disk::simulated::Fault;
use crate::{Found, Recorded, Store, Swap};

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
        // It begins and ends as if nothing were wrong, and beside something new that is refused. A schedule that says
        // how far it has come was taken for new, and held up the ends beside it.
        let end = crate::conformance::end(EndState::Succeeded, 2_000);
        let schedule = Change::Schedule("daily".into(), Some(Bytes::from_static(b"row")));
        owner.record(vec![schedule, crate::conformance::ended(task, &end)]).await;
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

/// The disk says at last, when a frame is written, that it has no room for it: the store failed until it was opened
/// again. Now it is as if nothing had been asked for, whatever part of the frame was written.
#[tokio::test]
async fn a_frame_that_finds_no_room_is_taken_back() {
    let mut refused = 0;
    for seed in 0..60 {
        let machine = Machine::new(seed);
        let store = machine.open().await.expect("it opens");
        let owner = Owner::claim(&store, PartitionId(1)).await;
        let tasks: Vec<Task> = (1..=40).map(|seq| owner.task(seq, 1_000)).collect();
        owner.accept(&tasks[..2]).await;
        let before = rows_of(&store).await;
        machine.disk.fail_at(1, Fault::NoSpace);
        let end = crate::conformance::end(EndState::Succeeded, 2_000);
        // More than a page, so that seldom only the zeros behind it find no room.
        let changes = || {
            let new = tasks[2..39].iter().cloned().map(Change::Accepted);
            std::iter::once(crate::conformance::ended(&tasks[0], &end)).chain(new).collect()
        };
        let answer = owner.try_record(changes()).await;
        assert!(!store.has_failed(), "seed {seed}");
        if answer == Recorded::Full {
            refused += 1;
            assert!(rows_of(&store).await == before, "seed {seed}: something was done");
            machine.disk.fail_at(1, Fault::NoSpace);
            let swap = store.compare_and_set(Timestamp::MIN, "a", None, Some(Bytes::new()), None).await;
            assert!(swap.is_err() || matches!(swap, Ok(Swap::Done(_))), "seed {seed}");
        } else {
            assert_eq!(answer, Recorded::Done, "seed {seed}");
        }
        if seed.is_multiple_of(2) {
            // What was refused does not come back.
            let rows = rows_of(&store).await;
            drop(store);
            machine.die(seed / 2);
            let store = machine.open().await.expect("it opens");
            assert!(rows_of(&store).await == rows, "seed {seed}: after a crash something else is there");
        } else {
            owner.record(changes()).await;
            owner.accept(&tasks[39..]).await;
            assert!(!is_live(&owner, &tasks[0]).await && is_live(&owner, &tasks[2]).await);
            let rows = rows_of(&store).await;
            machine.disk.crash();
            drop(store);
            let store = machine.open().await.expect("it opens");
            assert!(rows_of(&store).await == rows, "seed {seed}: it does not last");
        }
    }
    assert!(refused > 20, "{refused} of 60 were refused");
}

/// Two frames are on their way, and the first finds no room: the second, which was made on top of it, is not written either.
/// What was answered is what is there, and what is there after a crash.
#[tokio::test]
async fn a_frame_behind_one_that_finds_no_room_is_taken_back_with_it() {
    let mut both_refused = 0;
    // Often the journal is quicker than the second caller.
    for seed in 0..20_000 {
        if both_refused == 3 {
            return;
        }
        let machine = Machine::new(seed);
        let store = machine.open_with(Hands::Threads).await.expect("it opens");
        let (one, other) =
            (Owner::claim(&store, PartitionId(1)).await, Owner::claim(&store, PartitionId(2)).await);
        // Room is made: neither need wait for it.
        one.accept(&[one.task(1, 1_000)]).await;
        machine.disk.fail_at(1, Fault::NoSpace);
        let tasks = [one.task(2, 1_000), other.task(3, 1_000), one.task(4, 1_000)];
        let accept = |owner: &Owner<'_, Simulated>, task: &Task| {
            let (store, batch) = (store.clone(), [(owner.fence, vec![Change::Accepted(task.clone())])]);
            async move { store.record(&batch).await[0] }
        };
        let (first, second) =
            futures_util::future::join(accept(&one, &tasks[0]), accept(&other, &tasks[1])).await;
        assert!(!store.has_failed(), "seed {seed}");
        both_refused += usize::from([first, second] == [Recorded::Full; 2]);
        let third = accept(&one, &tasks[2]).await;
        assert_eq!(third, Recorded::Done, "seed {seed}: it goes on");
        let rows = rows_of(&store).await;
        drop(store);
        machine.die(seed);
        let store = machine.open().await.expect("it opens");
        assert!(rows_of(&store).await == rows, "seed {seed}: after a crash something else is there");
        let (one, other) =
            (Owner::claim(&store, PartitionId(1)).await, Owner::claim(&store, PartitionId(2)).await);
        for (owner, task, answer) in [(&one, 0, first), (&other, 1, second), (&one, 2, third)] {
            assert_eq!(is_live(owner, &tasks[task]).await, answer == Recorded::Done, "seed {seed}: {task}");
        }
    }
    panic!("only {both_refused} times both were on their way");
}

/// Whoever gave up waiting for a frame that made a layer large left the layer behind: nobody took it down, and the
/// store took nothing more for ever.
#[tokio::test]
async fn callers_who_give_up_leave_nothing_undone() {
    let machine = Machine::new(5);
    let store = machine.open_with(Hands::Threads).await.expect("it opens");
    let owner = Owner::claim(&store, PartitionId(1)).await;
    for seq in 1..500 {
        let task = owner.task(seq, 1_000);
        let _ = owner.try_record(vec![Change::Accepted(task)]).now_or_never();
        tokio::task::yield_now().await;
    }
    owner.accept(&[owner.task(1_000, 1_000)]).await;
    rows_of(&store).await;
}
