//! Which lanes wait for a person: kept as it changes, so that nobody has to look through the store for their number.

use std::sync::{Arc, Mutex, MutexGuard};

use punctual::{Change, Found, PartitionId, Store, Task, TaskId, WaitState};
use punctual_store::Query;
use rustc_hash::FxHashSet;
use tokio::sync::mpsc;

use crate::app::App;

/// So many obstacles are read at once.
const PAGE: usize = 1_000;
/// So many partitions can wait to be counted: more than anybody has.
const PARTITIONS_MAX: usize = 4_096;

/// The heads of blocked lanes. Clones are the same.
#[derive(Clone)]
pub struct BlockedLanes(Arc<Shared>);

struct Shared {
    heads: Mutex<Heads>,
    taken: mpsc::Sender<PartitionId>,
}

#[derive(Default)]
struct Heads {
    blocked: FxHashSet<(PartitionId, u64)>,
    /// Heads that were let go while a partition is being read, because what is read may say otherwise; and a mark that
    /// one is.
    let_go: FxHashSet<(PartitionId, u64)>,
}

impl BlockedLanes {
    /// None yet. Partitions whose lanes are to be read come out of the other end.
    pub fn new() -> (BlockedLanes, mpsc::Receiver<PartitionId>) {
        let (taken, unread) = mpsc::channel(PARTITIONS_MAX);
        (BlockedLanes(Arc::new(Shared { heads: Mutex::default(), taken })), unread)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.heads().blocked.len()
    }

    /// A partition is ours: its lanes are read.
    pub fn taken(&self, partition: PartitionId) {
        self.0.taken.try_send(partition).ok();
    }

    /// A partition is not ours any more.
    pub fn gone(&self, partition: PartitionId) {
        self.heads().blocked.retain(|(of, _)| *of != partition);
    }

    /// Something is on record. Only tasks with a lane can hold one up.
    pub fn recorded(&self, partition: PartitionId, change: &Change) {
        match change {
            Change::Refiled { task, .. } if task.spec.lane.is_some() => {
                self.set(partition, task, task.state == WaitState::Blocked);
            }
            Change::Ended { task, .. } if task.spec.lane.is_some() => self.set(partition, task, false),
            _ => {}
        }
    }

    fn set(&self, partition: PartitionId, task: &Task, is_blocked: bool) {
        let (mut heads, head) = (self.heads(), (partition, task.id.seq.0));
        if is_blocked {
            heads.blocked.insert(head);
            return;
        }
        heads.blocked.remove(&head);
        if !heads.let_go.is_empty() {
            heads.let_go.insert(head);
        }
    }

    fn heads(&self) -> MutexGuard<'_, Heads> {
        self.0.heads.lock().expect("nothing panics while it is held")
    }
}

/// Reads the lanes of each partition that was taken over.
pub async fn read_all(app: App, mut unread: mpsc::Receiver<PartitionId>) {
    while let Some(partition) = unread.recv().await {
        // Anything that is let go while we read is remembered.
        app.watch().blocked().heads().let_go.insert((partition, 0));
        if let Err(error) = read(&app, partition).await {
            tracing::warn!(partition = partition.0, %error, "blocked lanes could not be counted");
        }
        app.watch().blocked().heads().let_go.clear();
    }
}

async fn read(app: &App, partition: PartitionId) -> Result<(), punctual::StoreError> {
    let store = app.scheduler().store();
    let mut after = None;
    loop {
        let page = store.held(partition, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.obstacle);
        let ids: Vec<TaskId> = page.iter().filter_map(|held| held.holder).collect();
        let queries: Vec<Query> = ids.iter().copied().map(Query::Id).collect();
        let found = store.find(partition, &queries).await?;
        let mut heads = app.watch().blocked().heads();
        for task in found.iter().flatten() {
            let Found::Live(task) = task else { continue };
            let head = (partition, task.id.seq.0);
            if task.state == WaitState::Blocked && !heads.let_go.contains(&head) {
                heads.blocked.insert(head);
            }
        }
    }
}
