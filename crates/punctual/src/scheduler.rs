//! The scheduler as a program sees it: register handlers, schedule tasks, look at them, stop.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{
    Amendment, Answer, Draft, Found, Limits, PartitionId, Past, QueueId, Refusal, Spec, Task, TaskId,
    Timestamp, check,
};
use punctual_store::{PageKey, Query, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::builder::{Builder, check_name};
use crate::clock::Clock;
use crate::directory::Directory;
use crate::door::Entries;
use crate::error::Error;
use crate::handlers::{Failure, Handlers, Job};
use crate::request::{amended, cancelled, scheduled};
use crate::shell::{Command, EndedOrForgotten};
use crate::task::NewTask;
use crate::time::IntoTimestamp;
use crate::view::{Filter, Load, Page, Quiet, Scheduled, TaskResult, TaskView};

/// The most tasks one page can have.
const PAGE_MAX: usize = 1_000;

/// A scheduler in this process. Clones share it; it runs until [`Scheduler::stop`], or until the last clone is
/// dropped, which interrupts what runs.
pub struct Scheduler<S> {
    pub(crate) inner: Arc<Inner<S>>,
    pub(crate) namespace: Arc<str>,
}

impl<S> Clone for Scheduler<S> {
    fn clone(&self) -> Self {
        Scheduler { inner: self.inner.clone(), namespace: self.namespace.clone() }
    }
}

pub(crate) struct Inner<S> {
    pub store: Arc<S>,
    pub directory: Directory<S>,
    pub handlers: Handlers,
    pub commands: mpsc::Sender<Command>,
    pub clock: Clock,
    pub limits: Limits,
    pub partitions: u16,
    /// How much more may wait to be recorded.
    pub asked_kib: tokio::sync::Semaphore,
    /// Spreads tasks without a routing key over the partitions.
    pub random: AtomicU64,
    /// Nothing is accepted any more.
    pub stopping: AtomicBool,
    pub running: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Scheduler<()> {
    /// What a scheduler is made with; the store comes last, with [`Builder::start`].
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl<S: Store> Scheduler<S> {
    /// Registers a handler, also while tasks for it are waiting already.
    pub async fn register<P, R, F, Fut>(&self, name: &str, handler: F) -> Result<(), Error>
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize,
        F: Fn(Job<P>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        check_name("the handler's name", name)?;
        self.inner.handlers.register(name, handler);
        self.tell(Command::ReceiversChanged).await
    }

    /// Schedules a task. When this returns, it is on stable storage.
    pub fn schedule(&self, task: NewTask) -> impl Future<Output = Result<Scheduled, Error>> + Send {
        let checked = self.check(self.now(), task);
        async move {
            let (partition, draft, entry) = self.place(checked?).await?;
            let created = self.create(partition, vec![draft], Entries::from(entry)).await?;
            let created = created.into_iter().next().ok_or(Error::Unknown)?;
            scheduled(created)
        }
    }

    /// Schedules many tasks at once: much faster than one by one. Answers for each in turn; one that is
    /// refused does not spoil the others.
    pub async fn schedule_many(&self, tasks: Vec<NewTask>) -> Vec<Result<Scheduled, Error>> {
        let mut results: Vec<Option<Result<Scheduled, Error>>> = Vec::with_capacity(tasks.len());
        let mut by_partition: BTreeMap<PartitionId, (Vec<usize>, Vec<Draft>, Entries)> = BTreeMap::new();
        let now = self.now();
        for (place, task) in tasks.into_iter().enumerate() {
            let placed = match self.check(now, task) {
                Ok(task) => self.place(task).await,
                Err(error) => Err(error),
            };
            match placed {
                Ok((partition, draft, entry)) => {
                    let (places, drafts, entries) = by_partition.entry(partition).or_default();
                    places.push(place);
                    drafts.push(draft);
                    entries.add(entry);
                    results.push(None);
                }
                Err(error) => results.push(Some(Err(error))),
            }
        }
        let creates = by_partition.into_iter().map(|(partition, (places, drafts, entries))| async move {
            (places, self.create(partition, drafts, entries).await)
        });
        for (places, created) in futures_util::future::join_all(creates).await {
            let mut created = created.map(Vec::into_iter);
            for place in places {
                results[place] = Some(match &mut created {
                    Ok(created) => created.next().map_or(Err(Error::Unknown), scheduled),
                    Err(error) => Err(error.repeated()),
                });
            }
        }
        results.into_iter().map(|result| result.unwrap_or(Err(Error::Unknown))).collect()
    }

    /// Cancels a task that is not running. When this returns `Ok`, it will not start again.
    pub async fn cancel(&self, id: TaskId) -> Result<(), Error> {
        self.cancel_if(id, None).await
    }

    /// The same, unless it is not of that revision any more: then nothing is changed, and the answer is
    /// [`Error::Outdated`].
    pub async fn cancel_if(&self, id: TaskId, if_revision: Option<u32>) -> Result<(), Error> {
        cancelled(self.ask_if(id, Amendment::Cancel, if_revision).await?)
    }

    /// Gives a task that is not running another time. The rule about times in the past is that of new tasks.
    pub async fn move_to(&self, id: TaskId, at: impl IntoTimestamp) -> Result<Task, Error> {
        let at = at.into_timestamp();
        check::time("at", Some(at))?;
        self.refuse_past(at, self.past_of(id))?;
        self.refuse_expired(id, at).await?;
        amended(self.ask(id, Amendment::Move(at)).await?)
    }

    /// Gives a task that is not running another target, payload, delivery, retry policy or deadline; its lane, unique key
    /// and time stay. If it is not of that revision any more, nothing is changed, and the answer is [`Error::Outdated`].
    pub async fn change(&self, id: TaskId, spec: Spec, if_revision: u32) -> Result<Task, Error> {
        check::spec(&spec, &self.inner.limits)?;
        let replace = Amendment::Replace { spec: spec.into(), at: None };
        amended(self.ask_if(id, replace, Some(if_revision)).await?)
    }

    /// Gives a task another spec as [`Scheduler::change`] does, and another time as [`Scheduler::move_to`] does, in one piece.
    pub async fn change_and_move(
        &self,
        id: TaskId,
        spec: Spec,
        at: impl IntoTimestamp,
        if_revision: u32,
    ) -> Result<Task, Error> {
        let at = at.into_timestamp();
        check::spec(&Spec { at, ..spec.clone() }, &self.inner.limits)?;
        self.refuse_past(at, self.past_of(id))?;
        let replace = Amendment::Replace { spec: spec.into(), at: Some(at) };
        amended(self.ask_if(id, replace, Some(if_revision)).await?)
    }

    fn past_of(&self, id: TaskId) -> Past {
        self.inner.directory.numbered(id.queue).map_or(Past::Reject, |queue| queue.settings.past)
    }

    /// Gives a task that is not running another payload. If somebody else changes the task meanwhile, nothing is
    /// changed here, and the answer is [`Error::Outdated`].
    pub async fn change_payload(&self, id: TaskId, payload: &impl Serialize) -> Result<Task, Error> {
        let payload = serde_json::to_vec(payload).map_err(Error::Payload)?;
        let task = match self.find(id).await?.ok_or(Error::NotFound)?.found {
            Found::Live(task) => task,
            Found::Ended(ended) => return Err(Error::Ended(ended.end.state)),
            Found::Forgotten { state, .. } => return Err(Error::Ended(state)),
        };
        let spec = Spec { payload: payload.into(), ..Spec::clone(&task.spec) };
        self.change(id, spec, task.revision).await
    }

    /// Makes a task due now.
    pub async fn run_now(&self, id: TaskId) -> Result<Task, Error> {
        self.run_now_if(id, None).await
    }

    /// The same, unless it is not of that revision any more, as [`Scheduler::cancel_if`] has it.
    pub async fn run_now_if(&self, id: TaskId, if_revision: Option<u32>) -> Result<Task, Error> {
        amended(self.ask_if(id, Amendment::Run, if_revision).await?)
    }

    /// Tries a dead task, or the head of a blocked lane, again, with a fresh count of attempts.
    pub async fn retry(&self, id: TaskId) -> Result<Task, Error> {
        self.retry_if(id, None).await
    }

    /// The same, unless it is not of that revision any more, as [`Scheduler::cancel_if`] has it.
    pub async fn retry_if(&self, id: TaskId, if_revision: Option<u32>) -> Result<Task, Error> {
        amended(self.ask_if(id, Amendment::Retry, if_revision).await?)
    }

    /// Looks a task up. One that is past its `expires_at` and was not looked at since is ended by this.
    pub async fn find(&self, id: TaskId) -> Result<Option<TaskView>, Error> {
        let view = self.look(id).await?;
        if !view.as_ref().is_some_and(|view| view.is_overdue(self.now())) {
            return Ok(view);
        }
        match self.ask(id, Amendment::Expire).await {
            Ok(Answer::Ended(_)) => self.look(id).await,
            _ => Ok(view),
        }
    }

    async fn look(&self, id: TaskId) -> Result<Option<TaskView>, Error> {
        if !self.is_ours(id.queue) {
            return Ok(None);
        }
        let partition = id.partition(self.inner.partitions);
        let found = self.inner.store.find(partition, &[Query::Id(id)]).await?;
        let found = found.into_iter().flatten().take(1).collect();
        Ok(self.views(found).await?.pop())
    }

    /// What was found, together with which attempts run at this moment.
    pub async fn views(&self, found: Vec<Found>) -> Result<Vec<TaskView>, Error> {
        let (reply, running) = oneshot::channel();
        let live = |found: &Found| matches!(found, Found::Live(_));
        let ids = found.iter().filter(|found| live(found)).map(Found::id).collect();
        self.tell(Command::Running(ids, reply)).await?;
        let mut running = running.await.map_err(|_| Error::Stopped)?.into_iter();
        let view = |found: Found| {
            let token = if live(&found) { running.next().flatten() } else { None };
            TaskView { found, running: token.map(|token| token.attempt) }
        };
        Ok(found.into_iter().map(view).collect())
    }

    /// A page of 1 to 1,000 tasks. Pass the page's `next` to go on; what arrives meanwhile neither hides nor
    /// repeats what was there. Tasks past their `expires_at` that were not looked at since are ended by this, and left
    /// out of a page of live ones.
    pub async fn list(&self, filter: &Filter, from: Option<PageKey>, limit: usize) -> Result<Page, Error> {
        if !(1..=PAGE_MAX).contains(&limit) {
            return Err(Refusal::BadSetting { what: "limit", hint: "must be 1 to 1,000" }.into());
        }
        let mut rest = filter.rest.clone();
        if let Some(name) = &filter.queue {
            let Some(queue) = self.queue_if_there(name).await? else { return Ok(Page::default()) };
            rest.queue = Some(queue.id);
        } else {
            rest.queues = self.inner.directory.only_of(&self.namespace);
        }
        let mut page = Page::from(self.inner.store.list(&rest, from, limit).await?);
        page.tasks.retain(|found| self.is_ours(found.id().queue));
        Ok(self.without_overdue(page).await)
    }

    /// Waits until a task has ended. Returns at once if it has.
    pub async fn result(&self, id: TaskId) -> Result<TaskResult, Error> {
        self.refuse_foreign(id)?;
        let (reply, ended) = oneshot::channel();
        self.tell(Command::AwaitEnd { id, reply }).await?;
        // Without an answer: this scheduler will not hear of the end.
        let ended = ended.await.map_err(|_| self.gone(Error::NotOwner))?;
        match ended.ok_or(Error::NotFound)? {
            EndedOrForgotten::Ended(ended) => {
                let end = ended.end;
                Ok(TaskResult { state: end.state, result: end.result, error: end.error })
            }
            EndedOrForgotten::Forgotten(state) => Ok(TaskResult { state, result: Bytes::new(), error: None }),
        }
    }

    /// What was owed (see [`Observer::owed`](crate::Observer::owed)) is settled, and forgotten a little later. After a
    /// crash before that it is found again: settling twice must do no harm.
    pub async fn settle(&self, debts: Vec<(PartitionId, Box<str>)>) -> Result<(), Error> {
        self.tell(Command::Settled(debts)).await
    }

    /// The store that it works on.
    pub fn store(&self) -> &Arc<S> {
        &self.inner.store
    }

    /// How busy this scheduler is.
    pub async fn load(&self) -> Result<Load, Error> {
        let (reply, measured) = oneshot::channel();
        self.tell(Command::Measure(reply)).await?;
        measured.await.map_err(|_| Error::Stopped)
    }

    /// Since when the next tasks of each queue have been due that could start, and wait for a slot, for their queue's
    /// limits or for a worker. A queue in which nothing waits so is not there. Cheap, however much waits.
    pub async fn waiting(&self) -> Result<Vec<(QueueId, Timestamp)>, Error> {
        let (reply, waiting) = oneshot::channel();
        self.tell(Command::Waiting(reply)).await?;
        waiting.await.map_err(|_| Error::Stopped)
    }

    /// Waits until nothing is left to do at this time: nothing runs but what workers hold, and all that happened is on
    /// record. With a [`VirtualClock`](crate::clock::VirtualClock), this is when to set it forward.
    pub async fn quiet(&self) -> Result<Quiet, Error> {
        let (reply, quiet) = oneshot::channel();
        self.tell(Command::AwaitQuiet(reply)).await?;
        quiet.await.map_err(|_| Error::Stopped)
    }

    /// The clock that it goes by.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// What time it is, as this scheduler believes: `after` counts from here.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now().wall
    }

    /// Stops: accepts nothing more, lets what runs finish for as long as `drain`, interrupts the rest
    /// (which does not count as an attempt), and gives everything up. Asked again, the shorter drain counts.
    pub async fn stop(&self, drain: Duration) -> Result<(), Error> {
        self.inner.stopping.store(true, Ordering::Relaxed);
        self.inner.directory.look_again();
        let (reply, stopped) = oneshot::channel();
        if self.inner.commands.send(Command::Stop { drain, reply }).await.is_ok() {
            // Without an answer the loop has ended before it could answer, which is all we want.
            stopped.await.ok();
        }
        let running = self.inner.running.lock().expect("nothing panics while it is held").take();
        match running {
            Some(running) => running.await.map_err(|_| Error::Stopped),
            None => Ok(()),
        }
    }
}
