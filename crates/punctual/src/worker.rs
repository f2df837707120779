//! What a worker in another process is given, and what it says of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{Answer, Ask, EndState, Outcome, Refusal, Spec, Timestamp, Token, WaitState};
use punctual_store::Store;
use tokio::sync::oneshot;

use crate::directory::Queue;
use crate::door::Entries;
use crate::error::Error;
use crate::request::prolonged;
use crate::scheduler::Scheduler;
use crate::shell::{Command, Reserve};
use crate::view::TaskState;

/// The most tasks that one reserve can get.
pub const RESERVE_MAX: usize = 1_000;
/// The longest that a reserve can wait.
pub const RESERVE_WAIT_MAX: Duration = Duration::from_secs(30);

/// A task that a worker holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reserved {
    /// Names the attempt in what the worker says of it.
    pub token: Token,
    /// What is to be done.
    pub spec: Arc<Spec>,
    /// How long the worker may hold it, from now on.
    pub time_to_run: Duration,
}

/// How a worker's attempt went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    /// It is done, with this result.
    Done(Bytes),
    /// It failed: again as the retry policy says, but not before `delay`.
    Failed {
        /// What went wrong.
        error: Box<str>,
        /// How long to wait at least.
        delay: Option<Duration>,
    },
    /// It is given back untouched: not an attempt.
    Released,
    /// It is given up.
    Buried(Box<str>),
}

impl From<Report> for Outcome {
    fn from(report: Report) -> Outcome {
        match report {
            Report::Done(result) => Outcome::Succeeded(result),
            Report::Failed { error, delay } => Outcome::Failed { error: error.into(), retry_after: delay },
            Report::Released => Outcome::Interrupted,
            Report::Buried(error) => Outcome::GaveUp(error.into()),
        }
    }
}

/// What became of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    /// It is on record, and the task has ended.
    Ended(EndState),
    /// It is on record, and the task waits until then.
    Waits(WaitState, Timestamp),
    /// It came too late: somebody else may have the task by now.
    Late,
    /// This scheduler does not own the task at the moment, and nothing was changed.
    NotOwner,
    /// It may or may not be on record.
    Unknown,
}

/// Where a task is after a worker has reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Afterwards {
    /// How far it has come.
    pub state: TaskState,
    /// When it is tried again.
    pub next_at: Option<Timestamp>,
}

impl<S: Store> Scheduler<S> {
    /// Tasks of a queue for a worker: at most `max`, and as soon as there is one. Waits for the first for as long as `wait`,
    /// and then answers with none; so it does for a queue that is not there, which may be made meanwhile. The worker has `time_to_run` for each, or what the task or its queue says.
    pub async fn reserve(
        &self,
        queue: &str,
        max: usize,
        wait: Duration,
        time_to_run: Option<Duration>,
    ) -> Result<Vec<Reserved>, Error> {
        check_reserve(max, wait, time_to_run)?;
        let Some((queue, wait)) = self.queue_within(wait, queue).await? else { return Ok(Vec::new()) };
        let (reply, reserved) = oneshot::channel();
        let reserve = Reserve { queue: queue.id, max, wait, time_to_run, reply };
        self.tell(Command::Reserve(reserve)).await?;
        let attempts = reserved.await.map_err(|_| self.gone(Error::NotOwner))?;
        let reserved = attempts.into_iter().map(|attempt| Reserved {
            token: attempt.token,
            spec: attempt.spec,
            time_to_run: attempt.timeout,
        });
        Ok(reserved.collect())
    }

    /// The queue of that name, and how much is left of the wait when it is there. Whoever comes before the first task is
    /// no less welcome; but a name that is mistyped must not become a queue.
    async fn queue_within(&self, wait: Duration, name: &str) -> Result<Option<(Queue, Duration)>, Error> {
        if let Some(queue) = self.queue_if_there(name).await? {
            return Ok(Some((queue, wait)));
        }
        let (directory, mut news) = (&self.inner.directory, self.inner.directory.news());
        let begun = self.inner.clock.now().boot;
        let made = async {
            loop {
                self.refuse_when_stopping()?;
                if let Some(queue) = directory.met(&self.namespace, name) {
                    return Ok(queue);
                }
                tokio::select! {
                    _ = news.changed() => {}
                    () = self.inner.commands.closed() => return Err(Error::Stopped),
                }
            }
        };
        let Ok(made) = tokio::time::timeout(wait, made).await else { return Ok(None) };
        let waited = self.inner.clock.now().boot.since(begun);
        Ok(Some((made?, wait.saturating_sub(waited))))
    }

    /// Says how attempts of a worker went; answers for each in turn, when it is on record.
    pub async fn report_many(&self, reports: Vec<(Token, Report)>) -> Vec<Result<Afterwards, Error>> {
        let count = reports.len();
        let reports = reports.into_iter().map(|(token, report)| (token, report.into())).collect();
        let (reply, settled) = oneshot::channel();
        if let Err(error) = self.tell(Command::Settle(reports, reply)).await {
            return (0..count).map(|_| Err(error.repeated())).collect();
        }
        match settled.await {
            Ok(answers) => answers.into_iter().map(afterwards).collect(),
            Err(_) => (0..count).map(|_| Err(Error::Unknown)).collect(),
        }
    }

    /// Says how one attempt of a worker went.
    pub async fn report(&self, token: Token, report: Report) -> Result<Afterwards, Error> {
        let answers = self.report_many(vec![(token, report)]).await;
        answers.into_iter().next().unwrap_or(Err(Error::Unknown))
    }

    /// Gives a worker more time for an attempt, counted from now. Answers when it has it for certain.
    pub async fn touch(&self, token: Token, more: Duration) -> Result<(), Error> {
        check_time_to_run(Some(more))?;
        let (reply, answer) = oneshot::channel();
        let (partition, ask) = (token.id.partition(self.inner.partitions), Ask::Touch(token, more));
        self.tell(Command::Ask { partition, ask, reply, entries: Entries::default() }).await?;
        match answer.await {
            Ok(Answer::NotOwner) => Err(self.gone(Error::NotOwner)),
            Ok(answer) => prolonged(answer),
            Err(_) => Err(Error::Unknown),
        }
    }
}

fn afterwards(settled: Settled) -> Result<Afterwards, Error> {
    match settled {
        Settled::Ended(state) => Ok(Afterwards { state: state.into(), next_at: None }),
        Settled::Waits(WaitState::Scheduled, at) => {
            Ok(Afterwards { state: TaskState::Scheduled, next_at: Some(at) })
        }
        Settled::Waits(WaitState::Retrying, at) => {
            Ok(Afterwards { state: TaskState::Retrying, next_at: Some(at) })
        }
        Settled::Waits(WaitState::Blocked, _) => Ok(Afterwards { state: TaskState::Blocked, next_at: None }),
        Settled::Late => Err(Error::Late),
        Settled::NotOwner => Err(Error::NotOwner),
        Settled::Unknown => Err(Error::Unknown),
    }
}

fn check_reserve(max: usize, wait: Duration, time_to_run: Option<Duration>) -> Result<(), Refusal> {
    if !(1..=RESERVE_MAX).contains(&max) {
        return Err(Refusal::BadSetting { what: "max", hint: "must be 1 to 1,000" });
    }
    if wait > RESERVE_WAIT_MAX {
        return Err(Refusal::BadSetting { what: "wait", hint: "must not be longer than 30 s" });
    }
    check_time_to_run(time_to_run)
}

fn check_time_to_run(time_to_run: Option<Duration>) -> Result<(), Refusal> {
    match time_to_run {
        Some(time) => punctual_core::check::timeout("ttr", time),
        None => Ok(()),
    }
}
