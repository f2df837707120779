//! C7: windows, obstacles and schedules are read in order, and pages neither repeat nor skip.

use bytes::Bytes;
use punctual_core::{
    Change, EndState, LaneId, Obstacle, Priority, RowKey, Seq, Task, TaskId, Timestamp, WindowId,
};

use super::owner::{Owner, WINDOW, lease, moved, parked, seqs, window};
use crate::{Found, Held, Store};

const OBSTACLE: Obstacle = Obstacle::Lane(LaneId(5));
const ALL: usize = 1_000;

pub async fn a_window_is_read_in_order<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    // Numbers and times on both sides of where a careless encoding would turn over.
    let rows =
        [(5, 300), (1, 300), (256, 300), (2, 1), (3, 256), (4, 65_536), (6, 200_000_000_000), (7, 255)];
    let tasks: Vec<Task> = rows.iter().map(|(seq, at)| owner.task(*seq, *at)).collect();
    owner.accept(&tasks).await;
    assert_eq!(owner.loaded(WINDOW).await, [2, 7, 3, 1, 5, 256, 4, 6]);
    let from = RowKey { wake_at: Timestamp::from_secs(300), seq: Seq(5) };
    let some = owner.load(WINDOW, from, Timestamp::from_secs(65_536), ALL).await;
    assert_eq!(seqs(&some.tasks), [5, 256], "from the first row on, and before the time");
    assert_eq!(some.tasks[0], tasks[0], "whole and unchanged");
}

pub async fn a_window_pages_stably_while_rows_come_and_go<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let tasks: Vec<Task> = (1..=20).map(|seq| owner.task(seq, 100 + seq as i64 / 4)).collect();
    owner.accept(&tasks).await;
    let mut read = Vec::new();
    let mut from = RowKey::FIRST;
    for round in 0..7 {
        let page = owner.load(WINDOW, from, Timestamp::MAX, 3).await.tasks;
        assert!(page.len() <= 3, "a page holds 3 at most: {page:?}");
        let Some(last) = page.last() else { break };
        from = last.key().after();
        read.extend(seqs(&page));
        // Behind the reader and ahead of it: the one is not seen, the other is.
        owner.accept(&[owner.task(100 + round, 1), owner.task(200 + round, 900)]).await;
        owner.end(&page[0], EndState::Succeeded, 100).await;
    }
    assert_eq!(read[..20], (1..=20).collect::<Vec<u64>>(), "each once, in order");
    assert!(read[20..].iter().all(|seq| *seq >= 200), "then what came in ahead: {read:?}");
}

pub async fn a_load_says_what_comes_next<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let load =
        async |until: i64, limit| owner.load(WINDOW, RowKey::FIRST, Timestamp::from_secs(until), limit).await;
    assert_eq!(load(1_000, 10).await.next, None, "nothing comes after nothing");
    owner.accept(&[owner.task(1, 100), owner.task(2, 200), owner.task(3, 300)]).await;
    let full = load(1_000, 2).await;
    assert_eq!(seqs(&full.tasks), [1, 2]);
    is_between(full.next, 200, 300);
    let short = load(250, 10).await;
    assert_eq!(seqs(&short.tasks), [1, 2]);
    is_between(short.next, 200, 300);
    let none = load(50, 10).await;
    assert!(none.tasks.is_empty());
    is_between(none.next, 0, 100);
    assert_eq!(load(1_000, 10).await.next, None, "the last one was returned");
    assert_eq!(load(1_000, 3).await.next, None, "also when the page is just full");
}

/// The answer is a lower bound, but never before what was returned already.
fn is_between(next: Option<Timestamp>, min_secs: i64, max_secs: i64) {
    let range = Timestamp::from_secs(min_secs)..=Timestamp::from_secs(max_secs);
    assert!(next.is_some_and(|next| range.contains(&next)), "{next:?} is not in {range:?}");
}

pub async fn windows_do_not_mix<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let urgent = Priority::new(0).expect("0 is a priority");
    let task = owner.task(1, 100);
    let first = Task::born(TaskId { seq: Seq(2), priority: urgent, ..task.id }, task.spec.clone());
    owner.accept(&[task, first, owner.task_of(2, 3, 100), owner.task_of(256, 4, 100)]).await;
    assert_eq!(owner.loaded(WINDOW).await, [1]);
    assert_eq!(owner.loaded(WindowId { priority: urgent, ..WINDOW }).await, [2]);
    assert_eq!(owner.loaded(window(2)).await, [3]);
    assert_eq!(owner.loaded(window(256)).await, [4]);
    assert_eq!(owner.loaded(window(3)).await, [0; 0]);
    let short = owner.load(WINDOW, RowKey::FIRST, Timestamp::from_secs(50), 10).await;
    is_between(short.next, 0, 100);
    let past = owner.load(WINDOW, RowKey::at(Timestamp::from_secs(101)), Timestamp::MAX, 10).await;
    assert_eq!(past.next, None, "the next window is not this one");
}

pub async fn parked_rows_page_under_their_obstacle_only<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let others = [Obstacle::Lane(LaneId(6)), Obstacle::Handler(5), Obstacle::Destination(5)];
    for seq in 1..=9 {
        let task = owner.task(seq, 100 - seq as i64);
        let obstacle = if seq <= 6 { OBSTACLE } else { others[seq as usize - 7] };
        let (_, change) = parked(&task, obstacle);
        owner.record(vec![Change::Accepted(task), change]).await;
    }
    assert_eq!(owner.loaded(WINDOW).await, [0; 0], "what is parked is out of the way");
    let page = owner.parked(OBSTACLE, RowKey::FIRST, 4).await;
    assert_eq!(seqs(&page), [6, 5, 4, 3]);
    let rest = owner.parked(OBSTACLE, page[3].key().after(), 4).await;
    assert_eq!(seqs(&rest), [2, 1]);
    for (obstacle, seq) in others.into_iter().zip(7..) {
        assert_eq!(seqs(&owner.parked(obstacle, RowKey::FIRST, ALL).await), [seq]);
    }
    owner.end(&page[0], EndState::Cancelled, 100).await;
    assert_eq!(seqs(&owner.parked(OBSTACLE, RowKey::FIRST, 2).await), [5, 4]);
}

pub async fn a_moved_task_is_found_where_it_lies<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let mut task = owner.task(1, 100);
    owner.accept(&[task.clone(), owner.task(2, 150)]).await;
    for wake_secs in [200, 50, 300, 100] {
        let (later, change) = moved(&task, wake_secs);
        owner.record(vec![change]).await;
        assert_eq!(owner.find_id(&task).await, Some(Found::Live(later.clone())), "moved to {wake_secs}");
        let expected = if wake_secs < 150 { [1, 2] } else { [2, 1] };
        assert_eq!(owner.loaded(WINDOW).await, expected, "one row, at {wake_secs}");
        task = later;
    }
    let (stuck, change) = parked(&task, OBSTACLE);
    owner.record(vec![change]).await;
    assert_eq!(owner.find_id(&task).await, Some(Found::Live(stuck.clone())));
    owner.end(&stuck, EndState::Succeeded, 400).await;
    assert!(matches!(owner.find_id(&task).await, Some(Found::Ended(_))));
    assert!(owner.parked(OBSTACLE, RowKey::FIRST, ALL).await.is_empty());
    let stranger = TaskId { birth: Timestamp::from_secs(151), ..owner.task(2, 150).id };
    assert_eq!(owner.find(crate::Query::Id(stranger)).await, None, "an id is found as a whole or not at all");
}

pub async fn obstacles_page_in_order<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let holder = owner.task(1, 100).id;
    let obstacles = [
        Obstacle::Lane(LaneId(1)),
        Obstacle::Lane(LaneId(256)),
        Obstacle::Lane(LaneId(u64::MAX)),
        Obstacle::Handler(2),
        Obstacle::Destination(1),
    ];
    let held = |obstacle| Change::Held { obstacle, holder: (obstacle == obstacles[1]).then_some(holder) };
    owner.record(obstacles.into_iter().rev().map(held).collect()).await;
    let mut read: Vec<Held> = Vec::new();
    loop {
        let after = read.last().map(|held| held.obstacle);
        let page = store.held(owner.fence.partition, after, 2).await.expect("obstacles are read");
        assert!(page.len() <= 2, "a page holds 2 at most");
        if page.is_empty() {
            break;
        }
        read.extend(page);
    }
    assert_eq!(read.iter().map(|held| held.obstacle).collect::<Vec<_>>(), obstacles);
    assert_eq!(read[1].holder, Some(holder));
    let handed_on = Change::Held { obstacle: obstacles[1], holder: None };
    owner.record(vec![handed_on, Change::Cleared(obstacles[0]), Change::Cleared(obstacles[0])]).await;
    let left = store.held(owner.fence.partition, None, ALL).await.expect("obstacles are read");
    assert_eq!(left.len(), 4);
    assert_eq!(left[0], Held { obstacle: obstacles[1], holder: None });
}

pub async fn schedules_page_in_order_of_name<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let names = ["", "a", "a b", "a!", "b", "é", "日本"];
    let set = |name: &&str| Change::Schedule((*name).into(), Some(Bytes::from(format!("row of {name}"))));
    owner.record(names.iter().rev().map(set).collect()).await;
    let partition = owner.fence.partition;
    let page = store.schedules(partition, None, 3).await.expect("schedules are read");
    let rest = store.schedules(partition, Some("a b"), ALL).await.expect("schedules are read");
    let read: Vec<&str> = page.iter().chain(&rest).map(|(name, _)| &**name).collect();
    assert_eq!(read, names);
    assert_eq!(page[1].1, Bytes::from("row of a"));
    let changed = Change::Schedule("a".into(), Some("changed".into()));
    owner.record(vec![changed, Change::Schedule("b".into(), None)]).await;
    let all = store.schedules(partition, None, ALL).await.expect("schedules are read");
    assert_eq!(all.len(), names.len() - 1);
    assert_eq!(all[1].1, Bytes::from("changed"));
}

pub async fn a_new_owner_learns_windows_marks_and_leases<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let (running, leased) = (owner.task_of(2, 1, 100), owner.task(2, 200));
    let marked = Change::LowWater(window(3), Timestamp::from_secs(70));
    let began = Change::Began {
        id: leased.id,
        place: leased.place(),
        attempts: 1,
        crashes: 2,
        begun: lease(owner.fence.epoch),
    };
    owner.accept(&[running, leased.clone(), owner.task(3, 300)]).await;
    owner.record(vec![marked, began]).await;
    let standing = store.standing(owner.fence.partition).await.expect("the standing is read");
    let windows: Vec<_> = standing.windows.iter().map(|it| (it.window, it.low_water)).collect();
    let mark = Timestamp::from_secs(70);
    assert_eq!(windows, [(WINDOW, Timestamp::MIN), (window(2), Timestamp::MIN), (window(3), mark)]);
    is_between(standing.windows[0].first, 0, 200);
    assert_eq!(standing.windows[2].first, None, "a window without rows has no first one");
    let expected = Task { attempts: 1, crashes: 2, begun: Some(lease(owner.fence.epoch)), ..leased };
    assert_eq!(standing.leased, std::slice::from_ref(&expected));
    let (free, change) = moved(&Task { begun: None, ..expected }, 400);
    owner.record(vec![change]).await;
    let standing = store.standing(owner.fence.partition).await.expect("the standing is read");
    assert!(standing.leased.is_empty(), "{free:?} has no lease");
}

pub async fn a_low_water_mark_never_falls<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    for (secs, expected) in [(100, 100), (50, 100), (200, 200), (200, 200)] {
        owner.record(vec![Change::LowWater(WINDOW, Timestamp::from_secs(secs))]).await;
        let standing = store.standing(owner.fence.partition).await.expect("the standing is read");
        assert_eq!(standing.windows[0].low_water, Timestamp::from_secs(expected));
    }
}
