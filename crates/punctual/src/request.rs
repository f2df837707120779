//! From a user's wish to a partition's answer: checked, routed, asked, and told.

use std::sync::atomic::Ordering;

use punctual_core::{
    Amend, Amendment, Answer, Ask, Created, Draft, Found, PartitionId, Past, QueueSettings, Refusal, Route,
    Task, TaskId, Timestamp,
};
use punctual_store::{Query, Store};
use rustc_hash::FxHashSet;
use tokio::sync::oneshot;

use crate::directory::Queue;
use crate::door::{Entries, Entry};
use crate::error::Error;
use crate::scheduler::Scheduler;
use crate::shell::Command;
use crate::task::{Checked, NewTask};
use crate::view::{Page, Scheduled};

/// So much may wait to be recorded, over all requests, in KiB: a store takes it in one piece.
pub(crate) const ASKED_KIB_MAX: u32 = 32 * 1024;

impl<S: Store> Scheduler<S> {
    /// What is wrong with a task by itself. What waits for the rest carries only what is left of it.
    pub(crate) fn check(&self, now: Timestamp, task: NewTask) -> Result<Checked, Error> {
        self.refuse_when_stopping()?;
        Ok(task.check(now, &self.inner.limits)?)
    }

    /// Decides where a task belongs. Nothing is changed before everything is checked.
    pub(crate) async fn place(&self, task: Checked) -> Result<(PartitionId, Draft, Entry), Error> {
        let (queue, entry) = self.enter(&task).await?;
        let priority = task.priority.unwrap_or(queue.settings.priority);
        let route = match task.spec.routing_key() {
            _ if queue.settings.pinned => Route::of(&task.queue),
            Some(key) => Route::of(key),
            None => Route::anywhere(self.random()),
        };
        let Checked { spec, on_conflict, .. } = task;
        let draft = Draft { route, queue: queue.id, priority, spec, on_conflict };
        Ok((route.partition(self.inner.partitions), draft, entry))
    }

    /// The queue that a task is for, and a way in: as long as somebody holds it, nobody removes the queue.
    async fn enter(&self, task: &Checked) -> Result<(Queue, Entry), Error> {
        let directory = &self.inner.directory;
        loop {
            let queue = match directory.met(&self.namespace, &task.queue) {
                Some(queue) => queue,
                // Boxed, because it is seldom: every other task would carry the room for it.
                None => Box::pin(self.meet_queue(task)).await?,
            };
            if let Some(entry) = queue.door.enter() {
                return Ok((queue, entry));
            }
            // Somebody removes it: afterwards it is there as before, or gone.
            drop(directory.one_removal_at_a_time().await);
        }
    }

    /// The queue that a task is for, made if there is none and the task may enter it.
    async fn meet_queue(&self, task: &Checked) -> Result<Queue, Error> {
        if let Some(queue) = self.queue_if_there(&task.queue).await? {
            return Ok(queue);
        }
        self.refuse_past(task.spec.at, QueueSettings::default().past)?;
        self.make_queue(&task.queue).await
    }

    pub(crate) async fn create(
        &self,
        partition: PartitionId,
        drafts: Vec<Draft>,
        entries: Entries,
    ) -> Result<Vec<Created>, Error> {
        let mut all = Vec::with_capacity(drafts.len());
        for (drafts, kib) in portions(drafts) {
            // Held until the answer: what waits to be recorded takes no more memory than this.
            let room = self.inner.asked_kib.acquire_many(kib.min(ASKED_KIB_MAX)).await;
            let _room = room.map_err(|_| Error::Stopped)?;
            match self.ask_partition(partition, Ask::Create(drafts), entries.clone()).await? {
                Answer::Created(created) => all.extend(created),
                answer => return Err(refused(answer)),
            }
        }
        Ok(all)
    }

    pub(crate) async fn ask(&self, id: TaskId, amendment: Amendment) -> Result<Answer, Error> {
        self.ask_if(id, amendment, None).await
    }

    pub(crate) async fn ask_if(
        &self,
        id: TaskId,
        amendment: Amendment,
        if_revision: Option<u32>,
    ) -> Result<Answer, Error> {
        self.refuse_foreign(id)?;
        let entries = match amendment {
            Amendment::Retry => Entries::from(self.enter_again(id).await?),
            _ => Entries::default(),
        };
        let amend = Amend { id, amendment, if_revision };
        self.ask_partition(id.partition(self.inner.partitions), Ask::Amend(amend), entries).await
    }

    /// Ends what is past its deadline: it is not live, although nobody has looked at it since.
    pub(crate) async fn without_overdue(&self, mut page: Page) -> Page {
        let now = self.now();
        let overdue = page.tasks.iter().filter_map(|found| match found {
            Found::Live(task) => Some(task.id).filter(|_| task.has_expired(now)),
            _ => None,
        });
        let ends = overdue.map(|id| async move {
            matches!(self.ask(id, Amendment::Expire).await, Ok(Answer::Ended(_))).then_some(id)
        });
        let ended = futures_util::future::join_all(ends).await;
        let ended: FxHashSet<TaskId> = ended.into_iter().flatten().collect();
        page.tasks.retain(|found| !ended.contains(&found.id()));
        page
    }

    async fn ask_partition(
        &self,
        partition: PartitionId,
        ask: Ask,
        entries: Entries,
    ) -> Result<Answer, Error> {
        self.refuse_when_stopping()?;
        let (reply, answer) = oneshot::channel();
        self.tell(Command::Ask { partition, ask, reply, entries }).await?;
        match answer.await {
            Ok(Answer::NotOwner) => Err(self.gone(Error::NotOwner)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(Error::Unknown),
        }
    }

    pub(crate) async fn tell(&self, command: Command) -> Result<(), Error> {
        self.inner.commands.send(command).await.map_err(|_| Error::Stopped)
    }

    pub(crate) fn refuse_past(&self, at: Timestamp, past: Past) -> Result<(), Error> {
        let too_old = at + self.inner.limits.past_grace < self.now();
        if too_old && past == Past::Reject { Err(Error::DueInPast) } else { Ok(()) }
    }

    /// A task is not moved to where it could only expire.
    pub(crate) async fn refuse_expired(&self, id: TaskId, at: Timestamp) -> Result<(), Error> {
        let partition = id.partition(self.inner.partitions);
        let found = self.inner.store.find(partition, &[Query::Id(id)]).await?;
        let Some(Found::Live(task)) = found.into_iter().next().flatten() else { return Ok(()) };
        let too_late = task.spec.expires_at.is_some_and(|expires_at| expires_at <= at);
        // What has expired by now is said to have ended when it is asked for.
        if too_late && !task.has_expired(self.now()) { Err(Refusal::ExpiresBeforeDue.into()) } else { Ok(()) }
    }

    /// What belongs to another namespace is not there.
    pub(crate) fn refuse_foreign(&self, id: TaskId) -> Result<(), Error> {
        if self.is_ours(id.queue) { Ok(()) } else { Err(Error::NotFound) }
    }

    pub(crate) fn refuse_when_stopping(&self) -> Result<(), Error> {
        if self.inner.stopping.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Why nothing was done: because everything stops, or else as said.
    pub(crate) fn gone(&self, otherwise: Error) -> Error {
        let stopping = self.inner.stopping.load(Ordering::Relaxed) || self.inner.commands.is_closed();
        if stopping { Error::Stopped } else { otherwise }
    }

    /// Numbers that look random enough to spread tasks evenly (splitmix64).
    fn random(&self) -> u32 {
        let mut bits = self.inner.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits >> 32) as u32
    }
}

/// Drafts in portions of at most half of what may wait, in order, each with its size in KiB.
fn portions(drafts: Vec<Draft>) -> Vec<(Vec<Draft>, u32)> {
    let size = |draft: &Draft| (draft.spec.payload.len() / 1_024 + 1) as u32;
    let whole = drafts.iter().map(size).fold(0, u32::saturating_add);
    if whole <= ASKED_KIB_MAX / 2 {
        return vec![(drafts, whole)];
    }
    let mut portions: Vec<(Vec<Draft>, u32)> = Vec::new();
    for draft in drafts {
        let draft_kib = size(&draft);
        match portions.last_mut() {
            Some((portion, kib)) if *kib + draft_kib <= ASKED_KIB_MAX / 2 => {
                portion.push(draft);
                *kib += draft_kib;
            }
            _ => portions.push((vec![draft], draft_kib)),
        }
    }
    portions
}

pub(crate) fn scheduled(created: Created) -> Result<Scheduled, Error> {
    match created {
        Created::New(id) => Ok(Scheduled::New(id)),
        Created::Replaced(id) => Ok(Scheduled::Replaced(id)),
        Created::Kept(id, _) => Ok(Scheduled::Kept(id)),
        Created::Ended(id, state) => Ok(Scheduled::Ended(id, state)),
        Created::Conflict(id) => Err(Error::Conflict(id)),
        Created::Past => Err(Error::DueInPast),
        Created::Full => Err(Error::Full),
    }
}

pub(crate) fn cancelled(answer: Answer) -> Result<(), Error> {
    match answer {
        Answer::Cancelled => Ok(()),
        answer => Err(refused(answer)),
    }
}

pub(crate) fn amended(answer: Answer) -> Result<Task, Error> {
    match answer {
        Answer::Amended(task) => Ok(*task),
        answer => Err(refused(answer)),
    }
}

pub(crate) fn prolonged(answer: Answer) -> Result<(), Error> {
    match answer {
        Answer::Prolonged => Ok(()),
        answer => Err(refused(answer)),
    }
}

fn refused(answer: Answer) -> Error {
    match answer {
        Answer::Running { attempt } => Error::Running { attempt },
        Answer::Ended(state) => Error::Ended(state),
        Answer::NotFound => Error::NotFound,
        Answer::Outdated { revision } => Error::Outdated { revision },
        Answer::Overloaded => Error::Overloaded,
        Answer::NotOwner => Error::NotOwner,
        Answer::Late => Error::Late,
        Answer::Created(_) | Answer::Amended(_) | Answer::Cancelled | Answer::Prolonged | Answer::Unknown => {
            Error::Unknown
        }
    }
}
