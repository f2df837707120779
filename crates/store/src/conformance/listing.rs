//! C7 for people: pages across windows, obstacles and partitions, in one order.

use std::sync::Arc;

use punctual_core::{Change, EndState, LaneId, Obstacle, PartitionId, QueueId, Spec, Task, Timestamp};

use super::owner::{Owner, listed_seqs, moved, parked, task_in};
use crate::{Filter, Listed, Store};

fn ended() -> Filter {
    Filter { ended: true, ..Filter::default() }
}

pub async fn live_tasks_are_listed_by_time_across_windows_and_partitions<S: Store>(store: &S) {
    let here = Owner::claim(store, PartitionId(1)).await;
    let there = Owner::claim(store, PartitionId(3)).await;
    here.accept(&[here.task(1, 100), here.task_of(2, 2, 50), here.task(3, 300), here.task(5, 100)]).await;
    there.accept(&[there.task(1, 100), there.task_of(2, 4, 200)]).await;
    let (_, change) = parked(&here.task(3, 300), Obstacle::Lane(LaneId(1)));
    let (_, moved) = moved(&here.task(5, 100), 150);
    here.record(vec![change, moved]).await;
    for limit in [1, 2, 100] {
        let listed = here.list_all(&Filter::default(), limit).await;
        assert_eq!(listed_seqs(&listed), [2, 1, 1, 5, 4, 3], "in pages of {limit}");
        let partitions = [1, 1, 3, 1, 3, 1];
        for (listed, partition) in listed.iter().zip(partitions) {
            let Listed::Live(task) = listed else { panic!("{listed:?} is not live") };
            assert_eq!(task.id.partition(here.partitions), PartitionId(partition));
        }
    }
}

pub async fn ended_tasks_are_listed_by_birth<S: Store>(store: &S) {
    let here = Owner::claim(store, PartitionId(1)).await;
    let there = Owner::claim(store, PartitionId(2)).await;
    // Hours apart, in two queues, ended in another order than born.
    let mine = [here.task(1, 9_000), here.task_of(2, 2, 100), here.task(3, 50_000)];
    here.accept(&mine).await;
    here.accept(&[here.task(9, 10)]).await;
    there.accept(&[there.task(1, 9_000)]).await;
    there.end(&there.task(1, 9_000), EndState::Dead, 60_000).await;
    for task in mine.iter().rev() {
        here.end(task, EndState::Succeeded, 60_001).await;
    }
    for limit in [1, 3, 100] {
        let listed = here.list_all(&ended(), limit).await;
        assert_eq!(listed_seqs(&listed), [2, 1, 1, 3], "in pages of {limit}");
        assert!(listed.iter().all(|listed| matches!(listed, Listed::Ended(_))));
    }
}

pub async fn a_filter_leaves_out_what_does_not_match<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let named = |seq: u64, lane: &str, name: &str| -> Task {
        task_in(
            owner.fence.partition,
            seq as u32 % 3,
            seq,
            Timestamp::from_secs(seq as i64),
            |spec: &mut Spec| {
                (spec.lane, spec.name) = (Some(lane.into()), Some(name.into()));
            },
        )
    };
    let tasks: Vec<Task> = (1..=12)
        .map(|seq| named(seq, if seq % 2 == 0 { "ana" } else { "bo" }, &format!("n{}", seq % 4)))
        .collect();
    owner.accept(&tasks).await;
    for task in &tasks[6..] {
        let state = if task.id.seq.0 < 10 { EndState::Succeeded } else { EndState::Dead };
        owner.end(task, state, 100).await;
    }
    let list = async |filter: Filter| listed_seqs(&owner.list_all(&filter, 2).await);
    let secs = |secs| Some(Timestamp::from_secs(secs));
    let all = Filter::default();
    assert_eq!(list(Filter { queue: Some(QueueId(1)), ..all.clone() }).await, [1, 4]);
    let among = |queues: &[u32]| Some(queues.iter().copied().map(QueueId).collect());
    assert_eq!(list(Filter { queues: among(&[0, 2]), ..all.clone() }).await, [2, 3, 5, 6]);
    assert_eq!(list(Filter { queues: among(&[]), ..all.clone() }).await, [0; 0]);
    assert_eq!(list(Filter { queues: among(&[1, 2]), ..ended() }).await, [7, 8, 10, 11]);
    let page = owner.list(&Filter { queues: among(&[1]), ..all.clone() }, None, 2).await;
    assert_eq!((listed_seqs(&page.tasks), page.next), (vec![1, 4], None), "others do not make a next page");
    assert_eq!(list(Filter { lane: Some("ana".into()), ..all.clone() }).await, [2, 4, 6]);
    assert_eq!(list(Filter { name: Some("n1".into()), ..all.clone() }).await, [1, 5]);
    assert_eq!(list(Filter { from: secs(2), until: secs(5), ..all }).await, [2, 3, 4]);
    assert_eq!(list(Filter { queue: Some(QueueId(0)), ..ended() }).await, [9, 12]);
    assert_eq!(list(Filter { lane: Some("bo".into()), ..ended() }).await, [7, 9, 11]);
    assert_eq!(list(Filter { state: Some(EndState::Dead), ..ended() }).await, [10, 11, 12]);
    assert_eq!(list(Filter { from: secs(8), until: secs(11), ..ended() }).await, [8, 9, 10]);
}

pub async fn pages_are_stable_while_tasks_come_and_go<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let tasks: Vec<Task> = (1..=12).map(|seq| owner.task_of(seq as u32 % 3, seq, 100 + seq as i64)).collect();
    owner.accept(&tasks).await;
    let (mut read, mut from) = (Vec::new(), None);
    for round in 0.. {
        let page = owner.list(&Filter::default(), from, 2).await;
        read.extend(listed_seqs(&page.tasks));
        from = page.next;
        if from.is_none() {
            break;
        }
        if round < 5 {
            owner.accept(&[owner.task(100 + round, 1)]).await;
            owner.end(&tasks[round as usize], EndState::Succeeded, 500).await;
        }
    }
    assert_eq!(read, (1..=12).collect::<Vec<u64>>(), "each once, in order");
}

pub async fn a_needle_is_found_in_a_haystack<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let spec = Arc::new(Spec { name: Some("hay".into()), ..(*owner.task(1, 1).spec).clone() });
    for chunk in 0..7 {
        let straw = |n: u64| Task { spec: spec.clone(), ..owner.task(1 + chunk * 1_500 + n, 100) };
        owner.record((0..1_500).map(|n| Change::Accepted(straw(n))).collect()).await;
    }
    let needle = task_in(owner.fence.partition, 1, 20_000, Timestamp::from_secs(100), |spec| {
        spec.name = Some("needle".into());
    });
    owner.accept(&[needle]).await;
    let filter = Filter { name: Some("needle".into()), ..Filter::default() };
    assert_eq!(listed_seqs(&owner.list_all(&filter, 10).await), [20_000]);
}
