//! How many tasks each queue has, counted as they come and go.
//!
//! What happens is seen only while the server runs, so that the tasks of earlier runs are counted once, in the
//! background, in the order of pages. Meanwhile a cursor divides the rows: what changes before it changes the count, and
//! what changes behind it will be met as it then is. What changes while a page is read counts as it was told, not as it
//! was read. Until the cursor has reached the end, nothing is told
//! ([decision 14](../../../docs/decisions/0014-counts.md)).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual::{Attempt, Change, EndState, PageKey, Store, Target, Task, TaskId, Timestamp};
use punctual_core::{PartitionId, Place, QueueId, RowKey, Seq};
use punctual_store::{Filter, Listed, Page};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use crate::app::App;

/// So many rows are counted at once.
const PAGE: usize = 1_000;
/// So often the loop goes round before a page is taken in: then it has told of everything that the page shows.
const ROUNDS: usize = 3;
/// Before every row.
const FIRST: PageKey = PageKey { at: Timestamp::MIN, partition: PartitionId(0), seq: Seq(0) };
/// Between two pages the server has time for others.
const PAUSE: Duration = Duration::from_millis(5);

/// What is counted.
#[derive(Default)]
pub struct Counts {
    inner: Mutex<Inner>,
    /// Told when everything must be counted anew.
    anew: Notify,
}

#[derive(Default)]
struct Inner {
    queues: FxHashMap<QueueId, QueueCounts>,
    /// The attempts that run: whether a worker has it.
    running: FxHashMap<TaskId, bool>,
    counted: Counted,
    /// Rows behind the cursor that changed while a page is read: where each lies now, if anywhere.
    moved: FxHashMap<TaskId, Option<PageKey>>,
    /// A partition is being taken over anew.
    is_lost: bool,
}

/// How far the rows of earlier runs are counted.
#[derive(Clone, Copy, Default)]
enum Counted {
    #[default]
    Nothing,
    /// All rows before this one.
    Before(PageKey),
    All,
}

/// What is known about a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounts {
    /// Tasks that have not ended.
    live: i64,
    /// Attempts that run, but not at a worker's.
    pub running: u64,
    /// Attempts that workers have.
    pub reserved: u64,
    /// Since the server began.
    pub flow: Flow,
}

/// What came and went since the server began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// Tasks that were made.
    pub created: u64,
    /// Tasks that succeeded.
    pub succeeded: u64,
    /// Tasks that were given up.
    pub dead: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Tasks that were not started in time.
    pub expired: u64,
}

impl QueueCounts {
    fn waiting(&self) -> u64 {
        let running = i64::try_from(self.running + self.reserved).unwrap_or(i64::MAX);
        u64::try_from(self.live - running).unwrap_or(0)
    }
}

impl Counts {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known about a queue, and how many of its tasks wait, if that is known.
    pub fn of(&self, queue: QueueId) -> (QueueCounts, Option<u64>) {
        let inner = self.inner();
        let counts = inner.queues.get(&queue).copied().unwrap_or_default();
        (counts, matches!(inner.counted, Counted::All).then(|| counts.waiting()))
    }

    /// An attempt began.
    pub fn started(&self, attempt: &Attempt) {
        let (id, is_worker) = (attempt.token.id, attempt.spec.target == Target::Worker);
        let mut inner = self.inner();
        inner.stopped(id);
        inner.running.insert(id, is_worker);
        let counts = inner.queues.entry(id.queue).or_default();
        *if is_worker { &mut counts.reserved } else { &mut counts.running } += 1;
    }

    /// These changes are on stable storage.
    pub fn recorded(&self, partition: PartitionId, changes: &[Change]) {
        let mut inner = self.inner();
        for change in changes {
            match change {
                Change::Accepted(task) => {
                    inner.queues.entry(task.id.queue).or_default().flow.created += 1;
                    inner.came(partition, task);
                }
                Change::Revived(task) => inner.came(partition, task),
                Change::Refiled { from, task } => {
                    inner.stopped(task.id);
                    inner.went(partition, *from, task);
                    inner.came(partition, task);
                }
                Change::Ended { from, task, end } => {
                    inner.stopped(task.id);
                    inner.went(partition, *from, task);
                    let flow = &mut inner.queues.entry(task.id.queue).or_default().flow;
                    *match end.state {
                        EndState::Succeeded => &mut flow.succeeded,
                        EndState::Dead => &mut flow.dead,
                        EndState::Cancelled => &mut flow.cancelled,
                        EndState::Expired => &mut flow.expired,
                    } += 1;
                }
                _ => {}
            }
        }
    }

    /// Nobody knows what was recorded in a partition, until it is taken over anew.
    pub fn lost(&self) {
        let mut inner = self.inner();
        (inner.counted, inner.is_lost) = (Counted::Nothing, true);
    }

    /// A partition is taken over: if that was because of a loss, everything is counted again.
    pub fn taken(&self) {
        if std::mem::take(&mut self.inner().is_lost) {
            self.anew.notify_one();
        }
    }
}

impl Inner {
    fn begin(&mut self) {
        self.queues.values_mut().for_each(|counts| counts.live = 0);
        self.moved.clear();
        self.counted = Counted::Before(FIRST);
    }

    /// A row lies there from now on.
    fn came(&mut self, partition: PartitionId, task: &Task) {
        let key = page_key(partition, task.key());
        match self.counts(key) {
            true => self.queues.entry(task.id.queue).or_default().live += 1,
            false => self.note_moved(task.id, Some(key)),
        }
    }

    /// The row that lay there is gone.
    fn went(&mut self, partition: PartitionId, from: Place, task: &Task) {
        let (Place::Window(_, key) | Place::Parked(_, key)) = from;
        match self.counts(page_key(partition, key)) {
            true => self.queues.entry(task.id.queue).or_default().live -= 1,
            false => self.note_moved(task.id, None),
        }
    }

    fn note_moved(&mut self, id: TaskId, to: Option<PageKey>) {
        if let Counted::Before(_) = self.counted {
            self.moved.insert(id, to);
        }
    }

    fn stopped(&mut self, id: TaskId) {
        let Some(is_worker) = self.running.remove(&id) else { return };
        let counts = self.queues.entry(id.queue).or_default();
        let running = if is_worker { &mut counts.reserved } else { &mut counts.running };
        *running = running.saturating_sub(1);
    }

    /// Whether a row that lies there is in the count.
    fn counts(&self, key: PageKey) -> bool {
        match self.counted {
            Counted::Nothing => false,
            Counted::Before(cursor) => key < cursor,
            Counted::All => true,
        }
    }

    /// Takes in a page, and what happened while it was read.
    fn count(&mut self, page: &Page) {
        let moved = std::mem::take(&mut self.moved);
        for listed in &page.tasks {
            if let Listed::Live(Task { id, .. }) = listed
                && !moved.contains_key(id)
            {
                self.queues.entry(id.queue).or_default().live += 1;
            }
        }
        for (id, key) in moved {
            // What lies behind this page will be met.
            if key.is_some_and(|key| page.next.is_none_or(|next| key < next)) {
                self.queues.entry(id.queue).or_default().live += 1;
            }
        }
        self.counted = page.next.map_or(Counted::All, Counted::Before);
    }
}

fn page_key(partition: PartitionId, RowKey { wake_at, seq }: RowKey) -> PageKey {
    PageKey { at: wake_at, partition, seq }
}

/// Counts what is there, and again whenever the count is lost, until the server stops.
pub async fn keep_count(app: App) {
    loop {
        if count(&app).await.is_none() {
            return;
        }
        tokio::select! {
            () = app.watch().counts().anew.notified() => {}
            () = app.stopping() => return,
        }
    }
}

/// Counts all rows. `None` if the server stops meanwhile.
async fn count(app: &App) -> Option<()> {
    let counts = app.watch().counts();
    counts.inner().begin();
    let mut from = None;
    loop {
        // A store that does not answer is asked again.
        if let Ok(page) = app.scheduler().store().list(&Filter::default(), from, PAGE).await {
            for _ in 0..ROUNDS {
                app.scheduler().load().await.ok()?;
            }
            let mut inner = counts.inner();
            if let Counted::Nothing = inner.counted {
                return Some(());
            }
            inner.count(&page);
            from = page.next;
            if from.is_none() {
                return Some(());
            }
        }
        if tokio::time::timeout(PAUSE, app.stopping()).await.is_ok() {
            return None;
        }
    }
}
