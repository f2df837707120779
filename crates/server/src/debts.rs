//! Settles what is owed: each result and each notification becomes a task of its own, so that it is retried and survives
//! whatever happens. Only then is the debt forgotten.
//!
//! ```text
//! change and debt on record ──▶ Debts ──▶ settle: schedule the task ──▶ forget the row
//! a partition was taken over ──▶ sweep: rows that an earlier process left ──▲
//! ```
//!
//! Whatever is interrupted is done again, and the task's unique key makes that harmless.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use punctual::{Change, Error, Found, PartitionId, Store};
use punctual_store::Query;
use tokio::sync::{Notify, mpsc, watch};

use crate::app::App;
use crate::letter::{self, Letter};
use crate::owed::{Debt, Owed, Standing};

/// So many debts wait in memory; more are read from the store when there is time.
const KEPT: usize = 10_000;
/// So many are settled at once.
const AT_ONCE: usize = 256;
/// How long to wait before something is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What is owed and not settled. Clones are the same.
#[derive(Clone)]
pub struct Debts(Arc<Shared>);

struct Shared {
    heard: mpsc::Sender<Debt>,
    /// Partitions whose rows are to be looked through.
    unread: Mutex<BTreeSet<PartitionId>>,
    look: Notify,
    /// How many debts and partitions are waiting.
    open: watch::Sender<usize>,
}

impl Debts {
    /// Nothing is owed yet. Debts come out where they are to be settled.
    pub fn new() -> (Debts, mpsc::Receiver<Debt>) {
        let (heard, debts) = mpsc::channel(KEPT);
        let shared =
            Shared { heard, unread: Mutex::default(), look: Notify::new(), open: watch::Sender::new(0) };
        (Debts(Arc::new(shared)), debts)
    }

    /// A debt is on record.
    pub fn heard(&self, debt: Debt) {
        let partition = debt.partition;
        match self.0.heard.try_send(debt) {
            Ok(()) => self.0.open.send_modify(|open| *open += 1),
            // It is in the store, and found there.
            Err(_) => self.look_through(partition),
        }
    }

    /// There may be debts in a partition that this process has not heard of.
    pub fn look_through(&self, partition: PartitionId) {
        if self.0.unread.lock().expect("nothing panics while it is held").insert(partition) {
            self.0.open.send_modify(|open| *open += 1);
            self.0.look.notify_one();
        }
    }

    /// Waits until everything is settled. Says whether there was anything to wait for.
    pub async fn settled(&self) -> bool {
        let mut open = self.0.open.subscribe();
        let was_open = *open.borrow_and_update() > 0;
        open.wait_for(|open| *open == 0).await.ok();
        was_open
    }

    fn done(&self, count: usize) {
        self.0.open.send_modify(|open| *open = open.saturating_sub(count));
    }

    fn next_unread(&self) -> Option<PartitionId> {
        self.0.unread.lock().expect("nothing panics while it is held").pop_first()
    }
}

/// Settles what is owed, until the scheduler stops.
pub async fn settle_all(app: App, debts: Debts, mut heard: mpsc::Receiver<Debt>) {
    let mut some = Vec::new();
    loop {
        tokio::select! {
            count = heard.recv_many(&mut some, AT_ONCE) => if count == 0 { return },
            () = debts.0.look.notified() => {}
        }
        let count = some.len();
        if settle(&app, std::mem::take(&mut some)).await.is_err() {
            return;
        }
        debts.done(count);
        while let Some(partition) = debts.next_unread() {
            if sweep(&app, partition).await.is_err() {
                return;
            }
            debts.done(1);
        }
    }
}

/// The scheduler has stopped: what is left is for the next process.
pub struct Stopped;

/// Rows that are there already: of an earlier process, or more than could be remembered.
async fn sweep(app: &App, partition: PartitionId) -> Result<(), Stopped> {
    let store = app.scheduler().store();
    let mut after: Box<str> = Change::OWED.into();
    loop {
        let page = until_answered(|| store.schedules(partition, Some(&after), AT_ONCE)).await;
        let rows = page.into_iter().take_while(|(name, _)| name.starts_with(Change::OWED));
        let found: Vec<Debt> = rows.map(|(name, row)| Debt { partition, name, row }).collect();
        let Some(last) = found.last() else { return Ok(()) };
        after = last.name.clone();
        let standing = standing(app, partition, found).await;
        settle(app, standing).await?;
    }
}

/// Those whose change is on record. What is void is forgotten.
async fn standing(app: &App, partition: PartitionId, found: Vec<Debt>) -> Vec<Debt> {
    let ids: Vec<Query> = found.iter().filter_map(|debt| Owed::task_of(&debt.name)).map(Query::Id).collect();
    if ids.len() < found.len() {
        tracing::warn!(partition = partition.0, "a debt names no task, and is left alone");
        return Vec::new();
    }
    let store = app.scheduler().store();
    let tasks: Vec<Option<Found>> = until_answered(|| store.find(partition, &ids)).await;
    let mut standing = Vec::new();
    for (debt, task) in found.into_iter().zip(tasks) {
        match Owed::read(&debt.row).map(|owed| owed.standing(task.as_ref())) {
            Some(Standing::Owed) => standing.push(debt),
            Some(Standing::Void) => _ = app.scheduler().settle(vec![(debt.partition, debt.name)]).await,
            Some(Standing::NotYet) | None => {}
        }
    }
    standing
}

async fn settle(app: &App, debts: Vec<Debt>) -> Result<(), Stopped> {
    let settled = join_all(debts.iter().map(|debt| settle_one(app, debt))).await;
    let settled = settled.into_iter().collect::<Result<Vec<bool>, Stopped>>()?;
    let done = debts.into_iter().zip(settled).filter(|(_, settled)| *settled);
    let done: Vec<(PartitionId, Box<str>)> = done.map(|(debt, _)| (debt.partition, debt.name)).collect();
    if done.is_empty() { Ok(()) } else { app.scheduler().settle(done).await.map_err(|_| Stopped) }
}

/// Whether it is settled. What another program wrote is left to that.
async fn settle_one(app: &App, debt: &Debt) -> Result<bool, Stopped> {
    let (Some(id), Some(owed)) = (Owed::task_of(&debt.name), Owed::read(&debt.row)) else {
        tracing::warn!(debt = %debt.name, "a debt cannot be read, and is left alone");
        return Ok(false);
    };
    for (namespace, letter) in letter::all(app, id, owed) {
        send(app, &namespace, letter).await?;
    }
    Ok(true)
}

/// Schedules a task in a queue of the server's own. It is tried until there is room: whoever waits for it does not ask
/// again.
pub async fn send(app: &App, namespace: &str, letter: Letter) -> Result<(), Stopped> {
    let Ok(scheduler) = app.scheduler().in_namespace(namespace) else { return Ok(()) };
    loop {
        match scheduler.schedule(letter.task.clone()).await {
            Ok(_) => return Ok(()),
            Err(Error::Stopped) => return Err(Stopped),
            Err(Error::DueInPast) => letter::let_late_ones_in(&scheduler, &letter.queue).await,
            Err(error @ Error::Refused(_)) => {
                tracing::error!(queue = %letter.queue, %error, "a result or notification cannot be sent");
                return Ok(());
            }
            Err(error) => {
                tracing::warn!(queue = %letter.queue, %error, "a result or notification waits");
                wait().await;
            }
        }
    }
}

async fn until_answered<T, E: std::fmt::Display, F: Future<Output = Result<T, E>>>(
    mut read: impl FnMut() -> F,
) -> T {
    loop {
        match read().await {
            Ok(answer) => return answer,
            Err(error) => tracing::warn!(%error, "what is owed could not be read"),
        }
        wait().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing tells when the scheduler has room again")]
async fn wait() {
    tokio::time::sleep(AGAIN_AFTER).await;
}
