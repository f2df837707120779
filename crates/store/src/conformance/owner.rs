//! What the checks share: an owner of one partition that writes and reads in few words.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{
    Change, End, EndState, Epoch, Fence, Obstacle, PartitionId, Priority, QueueId, Route, RowKey, Seq, Spec,
    Target, Task, TaskId, Timestamp, WindowId,
};

use super::PARTITIONS_MIN;
use crate::{Claim, Filter, Found, Listed, Loaded, Page, PageKey, Query, Recorded, Store};

/// The window of tasks made by [`Owner::task`].
pub const WINDOW: WindowId = window(1);

/// The usual window of a queue.
pub const fn window(queue: u32) -> WindowId {
    // The last priority is the one that is a constant; which one it is does not matter.
    WindowId { queue: QueueId(queue), priority: Priority::LAST }
}

/// An owner of one partition.
pub struct Owner<'a, S> {
    pub store: &'a S,
    pub fence: Fence,
    pub partitions: u16,
}

impl<'a, S: Store> Owner<'a, S> {
    /// Claims a partition from whoever has it.
    pub async fn claim(store: &'a S, partition: PartitionId) -> Owner<'a, S> {
        let meta = store.meta().await.expect("meta is read");
        assert!(meta.partitions >= PARTITIONS_MIN, "the suite needs {PARTITIONS_MIN} partitions: {meta:?}");
        let seen = epoch(store, partition).await;
        let claim = store.claim(partition, seen, "owner").await.expect("the claim is answered");
        let epoch = Epoch(seen.0 + 1);
        assert_eq!(claim, Claim::Won(epoch), "nobody else claims it");
        Owner { store, fence: Fence { partition, epoch }, partitions: meta.partitions }
    }

    /// The owner of the partition most checks use.
    pub async fn new(store: &'a S) -> Owner<'a, S> {
        Owner::claim(store, PartitionId(1)).await
    }

    pub async fn try_record(&self, changes: Vec<Change>) -> Recorded {
        let answers = self.store.record(&[(self.fence, changes)]).await;
        assert_eq!(answers.len(), 1, "one answer per fence");
        answers[0]
    }

    pub async fn record(&self, changes: Vec<Change>) {
        assert_eq!(self.try_record(changes).await, Recorded::Done);
    }

    pub async fn accept(&self, tasks: &[Task]) {
        self.record(tasks.iter().cloned().map(Change::Accepted).collect()).await;
    }

    /// Ends a task, and answers how.
    pub async fn end(&self, task: &Task, state: EndState, at_secs: i64) -> End {
        let end = end(state, at_secs);
        self.record(vec![ended(task, &end)]).await;
        end
    }

    /// A task of the partition: queue 1, born (and due) at that second.
    pub fn task(&self, seq: u64, birth_secs: i64) -> Task {
        self.task_of(1, seq, birth_secs)
    }

    pub fn task_of(&self, queue: u32, seq: u64, birth_secs: i64) -> Task {
        task_in(self.fence.partition, queue, seq, Timestamp::from_secs(birth_secs), |_| {})
    }

    pub async fn load(&self, window: WindowId, from: RowKey, until: Timestamp, limit: usize) -> Loaded {
        let loaded = self.store.load(self.fence.partition, window, from, until, limit).await;
        loaded.expect("the window is read")
    }

    /// All tasks of a window, page by page.
    pub async fn load_paged(&self, window: WindowId, limit: usize) -> Vec<Task> {
        let mut tasks: Vec<Task> = Vec::new();
        loop {
            let from = tasks.last().map_or(RowKey::FIRST, |task| task.key().after());
            let page = self.load(window, from, Timestamp::MAX, limit).await;
            assert!(page.tasks.len() <= limit, "a page holds {limit} at most");
            let is_last = page.next.is_none();
            assert!(is_last || !page.tasks.is_empty(), "what comes next comes: {:?}", page.next);
            tasks.extend(page.tasks);
            if is_last {
                return tasks;
            }
        }
    }

    /// The numbers of all tasks of a window, in order.
    pub async fn loaded(&self, window: WindowId) -> Vec<u64> {
        let loaded = self.load(window, RowKey::FIRST, Timestamp::MAX, usize::MAX >> 1).await;
        seqs(&loaded.tasks)
    }

    pub async fn parked(&self, obstacle: Obstacle, from: RowKey, limit: usize) -> Vec<Task> {
        let parked = self.store.parked(self.fence.partition, obstacle, from, limit).await;
        parked.expect("the parked tasks are read")
    }

    pub async fn find(&self, query: Query) -> Option<Found> {
        let mut found = self.store.find(self.fence.partition, &[query]).await.expect("the task is looked up");
        assert_eq!(found.len(), 1, "one answer per query");
        found.pop().flatten()
    }

    pub async fn find_id(&self, task: &Task) -> Option<Found> {
        self.find(Query::Id(task.id)).await
    }

    pub async fn find_identity(&self, task: &Task) -> Option<Found> {
        let identity = task.spec.identity(task.id.queue).expect("the task has a unique key");
        self.find(Query::Identity(identity)).await
    }

    pub async fn list(&self, filter: &Filter, from: Option<PageKey>, limit: usize) -> Page {
        self.store.list(filter, from, limit).await.expect("the page is read")
    }

    /// All pages one after another.
    pub async fn list_all(&self, filter: &Filter, limit: usize) -> Vec<Listed> {
        let mut tasks = Vec::new();
        let mut from = None;
        loop {
            let page = self.list(filter, from, limit).await;
            assert!(page.tasks.len() <= limit, "a page holds {limit} at most");
            tasks.extend(page.tasks);
            assert!(page.next.is_none() || page.next > from, "pages go forward: {from:?} {:?}", page.next);
            from = page.next;
            if from.is_none() {
                return tasks;
            }
        }
    }
}

/// The present epoch of a partition.
pub async fn epoch<S: Store>(store: &S, partition: PartitionId) -> Epoch {
    let all = store.ownerships().await.expect("ownerships are read");
    all.iter().find(|it| it.partition == partition).map(|it| it.epoch).expect("every partition is listed")
}

/// A task of a partition, with whatever `change` makes of its spec.
pub fn task_in(
    partition: PartitionId,
    queue: u32,
    seq: u64,
    birth: Timestamp,
    change: impl FnOnce(&mut Spec),
) -> Task {
    let mut spec = Spec::new(Target::Handler("handler".into()), birth);
    spec.payload = Bytes::from(format!("payload of {seq}"));
    change(&mut spec);
    let window = window(queue);
    let route = Route::anywhere(u32::from(partition.0));
    let id = TaskId { route, queue: window.queue, priority: window.priority, birth, seq: Seq(seq) };
    Task::born(id, Arc::new(spec))
}

pub fn with_key(task: Task, unique_key: &str) -> Task {
    let spec = Spec { unique_key: Some(unique_key.into()), ..(*task.spec).clone() };
    Task { spec: Arc::new(spec), ..task }
}

pub fn end(state: EndState, at_secs: i64) -> End {
    let error = (state == EndState::Dead).then(|| "it went wrong".into());
    End { state, at: Timestamp::from_secs(at_secs), result: Bytes::from_static(b"result"), error }
}

pub fn ended(task: &Task, end: &End) -> Change {
    Change::Ended { from: task.place(), task: task.clone(), end: end.clone() }
}

/// The task moved to another time, and the change that says so.
pub fn moved(task: &Task, wake_secs: i64) -> (Task, Change) {
    refiled(task, Task { wake_at: Timestamp::from_secs(wake_secs), ..task.clone() })
}

/// The task under an obstacle, and the change that says so.
pub fn parked(task: &Task, obstacle: Obstacle) -> (Task, Change) {
    refiled(task, Task { parked: Some(obstacle), ..task.clone() })
}

fn refiled(before: &Task, after: Task) -> (Task, Change) {
    let task = Task { revision: before.revision + 1, ..after };
    (task.clone(), Change::Refiled { from: before.place(), was: before.state, task })
}

pub fn lease(epoch: Epoch) -> punctual_core::Begun {
    punctual_core::Begun { epoch, lease: Some(Duration::from_secs(30)) }
}

pub fn seqs(tasks: &[Task]) -> Vec<u64> {
    tasks.iter().map(|task| task.id.seq.0).collect()
}

pub fn listed_seqs(tasks: &[Listed]) -> Vec<u64> {
    let task = |listed: &Listed| match listed {
        Listed::Live(task) => task.id.seq.0,
        Listed::Ended(ended) => ended.task.id.seq.0,
    };
    tasks.iter().map(task).collect()
}
