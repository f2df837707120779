//! How many tasks each queue has in each state, counted as they come and go.
//!
//! What happens is seen only while the server runs, so that the tasks of earlier runs are counted once, in the
//! background, in the order of pages. Meanwhile a cursor divides the rows: what changes before it changes the count, and
//! what changes behind it will be met as it then is. What changes while a page is read counts as it was told, not as it
//! was read. An attempt that an earlier run has left with a worker is met with its row. Until the cursor has reached the
//! end, nothing is told ([decision 14](../../../docs/decisions/0014-counts.md)).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual::{Attempt, Change, EndState, PageKey, Store, Target, Task, TaskId, Timestamp, WaitState};
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
    /// The attempts that run.
    running: FxHashMap<TaskId, Running>,
    counted: Counted,
    /// Rows behind the cursor that changed while a page is read: where each lies now, if anywhere, and what it says.
    moved: FxHashMap<TaskId, Option<(PageKey, WaitState)>>,
    /// A partition is being taken over anew.
    is_lost: bool,
}

#[derive(Clone, Copy)]
struct Running {
    /// Whether a worker has it.
    is_reserved: bool,
    /// What its row says meanwhile.
    row: WaitState,
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
    /// Rows of tasks that have not ended, by what they say.
    rows: ByState<i64>,
    /// Those of them whose attempt runs.
    busy: ByState<i64>,
    /// Attempts that run, but not at a worker's.
    pub running: u64,
    /// Attempts that workers have.
    pub reserved: u64,
    /// Since the server began.
    pub flow: Flow,
}

/// One for each state in which a task waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByState<T> {
    /// For its time, or for whatever keeps it from starting.
    pub scheduled: T,
    /// For its next attempt.
    pub retrying: T,
    /// For a person.
    pub blocked: T,
}

impl<T> ByState<T> {
    fn of(&mut self, state: WaitState) -> &mut T {
        match state {
            WaitState::Scheduled => &mut self.scheduled,
            WaitState::Retrying => &mut self.retrying,
            WaitState::Blocked => &mut self.blocked,
        }
    }
}

impl ByState<u64> {
    /// All of them.
    pub fn sum(&self) -> u64 {
        self.scheduled + self.retrying + self.blocked
    }
}

/// How many tasks of all queues are in each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Tasks that wait, if they are counted.
    pub waiting: Option<ByState<u64>>,
    /// Attempts that run, but not at a worker's.
    pub running: u64,
    /// Attempts that workers have.
    pub reserved: u64,
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
    fn waiting(&self) -> ByState<u64> {
        let QueueCounts { rows, busy, .. } = self;
        let idle = |rows: i64, busy: i64| u64::try_from(rows - busy).unwrap_or(0);
        ByState {
            scheduled: idle(rows.scheduled, busy.scheduled),
            retrying: idle(rows.retrying, busy.retrying),
            blocked: idle(rows.blocked, busy.blocked),
        }
    }
}

impl Counts {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known about a queue, and how many of its tasks wait, if that is known.
    pub fn of(&self, queue: QueueId) -> (QueueCounts, Option<ByState<u64>>) {
        let inner = self.inner();
        let counts = inner.queues.get(&queue).copied().unwrap_or_default();
        (counts, inner.is_all_counted().then(|| counts.waiting()))
    }

    /// What is known about all queues together.
    pub fn totals(&self) -> Totals {
        let inner = self.inner();
        let mut totals = Totals::default();
        let mut all = ByState::default();
        for counts in inner.queues.values() {
            let waiting = counts.waiting();
            all.scheduled += waiting.scheduled;
            all.retrying += waiting.retrying;
            all.blocked += waiting.blocked;
            totals.running += counts.running;
            totals.reserved += counts.reserved;
        }
        Totals { waiting: inner.is_all_counted().then_some(all), ..totals }
    }

    /// An attempt began.
    pub fn started(&self, attempt: &Attempt) {
        let (id, is_reserved) = (attempt.token.id, attempt.spec.target == Target::Worker);
        let mut inner = self.inner();
        inner.stopped(id);
        inner.runs(id, Running { is_reserved, row: attempt.was });
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
                Change::Refiled { from, was, task } => {
                    inner.stopped(task.id);
                    inner.went(partition, (*from, *was), task);
                    inner.came(partition, task);
                }
                Change::Ended { from, task, end } => {
                    inner.stopped(task.id);
                    inner.went(partition, (*from, task.state), task);
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
        self.queues.values_mut().for_each(|counts| counts.rows = ByState::default());
        self.moved.clear();
        self.counted = Counted::Before(FIRST);
    }

    fn is_all_counted(&self) -> bool {
        matches!(self.counted, Counted::All)
    }

    /// So many rows of a queue that say this, more or less.
    fn rows(&mut self, queue: QueueId, state: WaitState) -> &mut i64 {
        self.queues.entry(queue).or_default().rows.of(state)
    }

    /// A row lies there from now on.
    fn came(&mut self, partition: PartitionId, task: &Task) {
        let key = page_key(partition, task.key());
        match self.counts(key) {
            true => *self.rows(task.id.queue, task.state) += 1,
            false => self.note_moved(task.id, Some((key, task.state))),
        }
    }

    /// The row that lay there, and said this, is gone.
    fn went(&mut self, partition: PartitionId, (from, was): (Place, WaitState), task: &Task) {
        let (Place::Window(_, key) | Place::Parked(_, key)) = from;
        match self.counts(page_key(partition, key)) {
            true => *self.rows(task.id.queue, was) -= 1,
            false => self.note_moved(task.id, None),
        }
    }

    fn note_moved(&mut self, id: TaskId, to: Option<(PageKey, WaitState)>) {
        if let Counted::Before(_) = self.counted {
            self.moved.insert(id, to);
        }
    }

    fn runs(&mut self, id: TaskId, running: Running) {
        self.running.insert(id, running);
        let counts = self.queues.entry(id.queue).or_default();
        *if running.is_reserved { &mut counts.reserved } else { &mut counts.running } += 1;
        *counts.busy.of(running.row) += 1;
    }

    fn stopped(&mut self, id: TaskId) {
        let Some(Running { is_reserved, row }) = self.running.remove(&id) else { return };
        let counts = self.queues.entry(id.queue).or_default();
        let running = if is_reserved { &mut counts.reserved } else { &mut counts.running };
        *running = running.saturating_sub(1);
        *counts.busy.of(row) -= 1;
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
            let Listed::Live(task) = listed else { continue };
            if moved.contains_key(&task.id) {
                continue;
            }
            *self.rows(task.id.queue, task.state) += 1;
            // An earlier run let it begin, and whoever has it may report yet.
            let is_held = task.begun.is_some_and(|begun| begun.lease.is_some());
            if is_held && !self.running.contains_key(&task.id) {
                let is_reserved = task.spec.target == Target::Worker;
                self.runs(task.id, Running { is_reserved, row: task.state });
            }
        }
        for (id, now) in moved {
            // What lies behind this page will be met.
            if let Some((_, state)) = now.filter(|(key, _)| page.next.is_none_or(|next| *key < next)) {
                *self.rows(id.queue, state) += 1;
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
