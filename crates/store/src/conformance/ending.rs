//! C6 and C8: what has ended is not live, can be looked up, can be revived, and goes by whole buckets.

use std::time::Duration;

use bytes::Bytes;
use punctual_core::{
    Change, EndState, EndedTask, LaneId, Obstacle, PartitionId, QueueId, QueueSettings, RowKey, Task,
    Timestamp,
};

use super::owner::{Owner, WINDOW, end, ended, lease, listed_seqs, moved, parked, with_key};
use crate::{Filter, Found, Pruned, Retention, Store};

const OBSTACLE: Obstacle = Obstacle::Lane(LaneId(5));
const HOUR: i64 = 3_600;

pub async fn what_has_ended_is_never_live<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let tasks: Vec<Task> = (1..=6).map(|seq| owner.task(seq, 100)).collect();
    owner.accept(&tasks).await;
    let (postponed, postpone) = moved(&tasks[1], 500);
    let (stuck, park) = parked(&tasks[2], OBSTACLE);
    let leased = Task { begun: Some(lease(owner.fence.epoch)), attempts: 1, revision: 2, ..tasks[3].clone() };
    let lease = Change::Refiled { from: tasks[3].place(), was: tasks[3].state, task: leased.clone() };
    owner.record(vec![postpone, park, lease]).await;
    for task in [&tasks[0], &postponed, &stuck, &leased] {
        owner.end(task, EndState::Succeeded, 600).await;
    }
    // An end that names an old place, or comes with the task's birth, is an end all the same.
    let (far, away) = moved(&tasks[4], 700);
    let end = end(EndState::Cancelled, 600);
    let late = Change::Ended { from: tasks[4].place(), task: far, end: end.clone() };
    owner
        .record(vec![away, late, Change::Accepted(owner.task(7, 90)), ended(&owner.task(7, 90), &end)])
        .await;
    assert_eq!(owner.loaded(WINDOW).await, [6]);
    assert!(owner.parked(OBSTACLE, RowKey::FIRST, 10).await.is_empty());
    let standing = store.standing(owner.fence.partition).await.expect("the standing is read");
    assert!(standing.leased.is_empty(), "{standing:?}");
    assert_eq!(listed_seqs(&owner.list_all(&Filter::default(), 10).await), [6]);
    for task in tasks[..5].iter().chain([&owner.task(7, 90)]) {
        assert!(matches!(owner.find_id(task).await, Some(Found::Ended(_))), "{:?}", task.id.seq);
    }
}

pub async fn an_end_is_found_by_id_with_its_result<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let states = [EndState::Succeeded, EndState::Dead, EndState::Cancelled, EndState::Expired];
    for (seq, state) in (1..).zip(states) {
        let task = Task { attempts: 3, last_error: Some("before".into()), ..owner.task(seq, 100) };
        owner.accept(std::slice::from_ref(&task)).await;
        let end = owner.end(&task, state, 200).await;
        assert_eq!(end.result, Bytes::from_static(b"result"));
        assert_eq!(owner.find_id(&task).await, Some(Found::Ended(EndedTask { task, end })));
    }
}

pub async fn a_dead_task_can_be_revived_and_end_again<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let (task, change) = moved(&owner.task(1, 100), 200);
    owner.accept(&[owner.task(1, 100)]).await;
    owner.record(vec![change]).await;
    let first_end = owner.end(&task, EndState::Dead, 300).await;
    let revived = Task { revision: task.revision + 1, wake_at: Timestamp::from_secs(400), ..task.clone() };
    owner.record(vec![Change::Revived(revived.clone())]).await;
    assert_eq!(owner.find_id(&task).await, Some(Found::Live(revived.clone())));
    assert_eq!(owner.loaded(WINDOW).await, [1]);
    let ended_filter = Filter { ended: true, ..Filter::default() };
    assert!(owner.list_all(&ended_filter, 10).await.is_empty(), "its end is taken back");
    owner.record(vec![ended(&task, &first_end)]).await;
    assert_eq!(owner.loaded(WINDOW).await, [1], "the old end again does not undo it");
    owner.end(&revived, EndState::Succeeded, 500).await;
    owner.record(vec![Change::Revived(revived.clone())]).await;
    assert_eq!(owner.loaded(WINDOW).await, [0; 0], "the old revival again does not undo the end");
    assert!(
        matches!(owner.find_id(&task).await, Some(Found::Ended(it)) if it.end.state == EndState::Succeeded)
    );
}

/// Nothing finished or dead before these seconds is kept.
fn retention(finished_secs: i64, dead_secs: i64) -> Retention {
    Retention {
        finished_before: Timestamp::from_secs(finished_secs),
        dead_before: Timestamp::from_secs(dead_secs),
        identity_before: Timestamp::MIN,
        bytes_max: None,
    }
}

async fn prune<S: Store>(owner: &Owner<'_, S>, queue: u32, retention: Retention, max: usize) -> Pruned {
    owner.store.prune(owner.fence, QueueId(queue), retention, max).await.expect("history is pruned")
}

fn counts(pruned: Pruned) -> (usize, bool) {
    (pruned.buckets, pruned.more)
}

pub async fn a_bucket_goes_when_its_newest_end_is_past<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let tasks = [owner.task(1, 10 * HOUR), owner.task(2, 10 * HOUR + 1), owner.task(3, 11 * HOUR)];
    owner.accept(&tasks).await;
    owner.end(&tasks[0], EndState::Succeeded, 1_000_000).await;
    owner.end(&tasks[1], EndState::Dead, 1_000_100).await;
    owner.end(&tasks[2], EndState::Expired, 1_000_000).await;
    // The last to be written is not the newest.
    owner.accept(&[owner.task(4, 11 * HOUR)]).await;
    owner.end(&owner.task(4, 11 * HOUR), EndState::Expired, 999_000).await;
    let early = prune(&owner, 1, retention(1_000_000, 1_000_000), 10).await;
    assert_eq!(counts(early), (0, false), "nothing ended before its own end");
    let finished = prune(&owner, 1, retention(2_000_000, 1_000_100), 10).await;
    assert_eq!(counts(finished), (1, false), "a dead task keeps its whole bucket");
    assert!(owner.find_id(&tasks[0]).await.is_some());
    assert_eq!(owner.find_id(&tasks[2]).await, None);
    let all = prune(&owner, 1, retention(2_000_000, 1_000_101), 10).await;
    assert_eq!(counts(all), (1, false));
    let ended_filter = Filter { ended: true, ..Filter::default() };
    assert!(owner.list_all(&ended_filter, 10).await.is_empty());
    assert_eq!(owner.loaded(WINDOW).await, [0; 0], "forgotten is not live");
}

pub async fn buckets_go_a_few_at_a_time<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    for seq in 1..=5 {
        let task = owner.task(seq, 10 * HOUR * seq as i64);
        owner.accept(std::slice::from_ref(&task)).await;
        owner.end(&task, EndState::Succeeded, 1_000_000).await;
    }
    let everything = retention(2_000_000, 2_000_000);
    assert_eq!(counts(prune(&owner, 1, everything, 2).await), (2, true));
    assert_eq!(counts(prune(&owner, 1, everything, 2).await), (2, true));
    assert_eq!(counts(prune(&owner, 1, everything, 2).await), (1, false));
    assert_eq!(counts(prune(&owner, 1, everything, 2).await), (0, false));
}

/// What an owner needs that does not look again and again: the very moment.
pub async fn pruning_says_when_more_can_go<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let tasks =
        [owner.task(1, 10 * HOUR), owner.task(2, 20 * HOUR), with_key(owner.task(3, 30 * HOUR), "key")];
    owner.accept(&tasks).await;
    owner.end(&tasks[0], EndState::Succeeded, 40 * HOUR).await;
    owner.end(&tasks[1], EndState::Dead, 40 * HOUR).await;
    owner.end(&tasks[2], EndState::Succeeded, 60 * HOUR).await;
    let days = |days: u64| Duration::from_secs(24 * 3_600 * days);
    let settings = QueueSettings {
        keep_succeeded: days(1),
        keep_dead: days(3),
        keep_identities: days(7),
        ..QueueSettings::default()
    };
    let (mut now, mut gone) = (Timestamp::from_secs(50 * HOUR), Vec::new());
    loop {
        let early = settings.retention(now - Duration::from_micros(1));
        assert_eq!(prune(&owner, 1, early, 10).await.buckets, 0, "a moment before {now:?}");
        let pruned = prune(&owner, 1, settings.retention(now), 10).await;
        gone.push((now.as_micros() / 1_000_000 / HOUR, pruned.buckets));
        let Some(next_in) = pruned.next_in else { break };
        assert!(!next_in.is_zero(), "or it would be asked again at once");
        now = now + next_in;
    }
    assert_eq!(gone, [(50, 0), (64, 1), (84, 1), (112, 1), (229, 0)]);
    assert_eq!(owner.find_identity(&tasks[2]).await, None, "the last to go is the identity");
    assert_eq!(prune(&owner, 2, settings.retention(now), 10).await.next_in, None, "a queue without history");
}

/// Nothing is too old, and so many bytes are kept.
fn budget(bytes_max: u64) -> Retention {
    Retention { bytes_max: Some(bytes_max), ..retention(0, 0) }
}

/// What is left of these, by number.
async fn kept<S: Store>(owner: &Owner<'_, S>, tasks: &[Task]) -> Vec<u64> {
    let mut kept = Vec::new();
    for task in tasks {
        if owner.find_id(task).await.is_some() {
            kept.push(task.id.seq.0);
        }
    }
    kept
}

pub async fn a_budget_of_bytes_drops_the_oldest_first<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    // Two in the first hour, four in the second; they end in the other order.
    let tasks: Vec<Task> =
        (1..=6).map(|seq| owner.task(seq, (10 + seq as i64 / 3) * HOUR + seq as i64)).collect();
    owner.accept(&tasks).await;
    for task in tasks.iter().rev() {
        owner.end(task, EndState::Succeeded, 1_000_000).await;
    }
    let all = prune(&owner, 1, retention(0, 0), 10).await;
    assert!(all.bytes > 0, "what is kept is counted");
    let each = all.bytes / 6;
    let enough = prune(&owner, 1, budget(6 * each), 10).await;
    assert_eq!((counts(enough), enough.bytes), ((0, false), all.bytes));
    let first_hour = prune(&owner, 1, budget(4 * each), 10).await;
    assert_eq!((counts(first_hour), first_hour.bytes), ((1, false), 4 * each));
    assert_eq!(kept(&owner, &tasks).await, [3, 4, 5, 6]);
    let cut = prune(&owner, 1, budget(3 * each - 1), 10).await;
    assert_eq!((cut.buckets, cut.more, cut.bytes), (1, false, 2 * each), "an hour that is too large is cut");
    assert_eq!(kept(&owner, &tasks).await, [5, 6]);
    let wait = Duration::from_secs(1_000_000) + Duration::from_micros(1);
    assert_eq!(cut.next_in, Some(wait), "the rest goes in its time");
    let none = prune(&owner, 1, budget(0), 10).await;
    assert_eq!((none.more, none.bytes), (false, 0));
    assert!(kept(&owner, &tasks).await.is_empty());
    assert_eq!(owner.loaded(WINDOW).await, [0; 0], "forgotten is not live");
}

/// More than a store reads at once lies in the first hour: the second was begun before the first was done with.
pub async fn the_oldest_goes_to_its_end_before_the_next<S: Store>(store: &S) {
    const MANY: u64 = 2_500;
    let owner = Owner::new(store).await;
    let old: Vec<Task> = (1..=MANY).map(|seq| owner.task(seq, 10 * HOUR)).collect();
    let young: Vec<Task> = (1..=5).map(|seq| owner.task(MANY + seq, 11 * HOUR)).collect();
    let end = end(EndState::Succeeded, 1_000_000);
    for tasks in old.chunks(500).chain([&young[..]]) {
        owner.accept(tasks).await;
        owner.record(tasks.iter().map(|task| ended(task, &end)).collect()).await;
    }
    let each = prune(&owner, 1, retention(0, 0), 10).await.bytes / (MANY + 5);
    loop {
        let pruned = prune(&owner, 1, budget(100 * each), 10).await;
        assert_eq!(kept(&owner, &young).await.len(), 5, "{pruned:?}");
        if !pruned.more {
            assert!((90 * each..=100 * each).contains(&pruned.bytes), "{pruned:?}");
            break;
        }
    }
    let old = kept(&owner, &old).await;
    assert!((80..100).contains(&old.len()) && old[0] == MANY + 1 - old.len() as u64, "{old:?}");
}

pub async fn bytes_are_counted_once_and_taken_back<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let task = owner.task(1, 10 * HOUR);
    owner.accept(std::slice::from_ref(&task)).await;
    owner.end(&task, EndState::Dead, 1_000_000).await;
    let bytes = async || prune(&owner, 1, retention(0, 0), 10).await.bytes;
    let one = bytes().await;
    assert!(one > 0);
    owner.end(&task, EndState::Dead, 1_000_000).await;
    assert_eq!(bytes().await, one, "the same end again");
    let revived = Task { revision: 2, ..task.clone() };
    owner.record(vec![Change::Revived(revived.clone())]).await;
    assert_eq!(bytes().await, 0, "it waits again");
    owner.end(&revived, EndState::Dead, 1_000_001).await;
    assert_eq!(bytes().await, one);
    let again = Task { revision: 3, ..task.clone() };
    owner.record(vec![Change::Revived(again.clone())]).await;
    owner.end(&again, EndState::Succeeded, 1_000_002).await;
    assert_eq!(prune(&owner, 1, retention(2_000_000, 2_000_000), 10).await.bytes, 0, "it was dropped");
}

pub async fn pruning_touches_one_queue_of_one_partition<S: Store>(store: &S) {
    let here = Owner::claim(store, PartitionId(1)).await;
    let there = Owner::claim(store, PartitionId(2)).await;
    let (gone, other_queue, elsewhere) = (here.task(1, 100), here.task_of(2, 2, 100), there.task(1, 100));
    here.accept(&[gone.clone(), other_queue.clone(), here.task(3, 100)]).await;
    there.accept(std::slice::from_ref(&elsewhere)).await;
    here.end(&gone, EndState::Succeeded, 200).await;
    here.end(&other_queue, EndState::Succeeded, 200).await;
    there.end(&elsewhere, EndState::Succeeded, 200).await;
    assert_eq!(prune(&here, 1, retention(1_000, 1_000), 10).await.buckets, 1);
    assert_eq!(here.find_id(&gone).await, None);
    assert!(here.find_id(&other_queue).await.is_some(), "another queue's history stays");
    assert!(there.find_id(&elsewhere).await.is_some(), "another partition's history stays");
    assert_eq!(here.loaded(WINDOW).await, [3], "live tasks of the same hour stay");
}
