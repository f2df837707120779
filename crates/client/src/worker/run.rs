//! The loop itself: what a worker waits for, and what it does about it.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde::Serialize;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

use super::backoff::Backoff;
use super::outbox::{Attempt, Kind, Outbox, Report, Sent, What};
use super::{Failure, Job, Outcome, Summary, Worker, written};
use crate::client::Error;
use crate::wire::{Problem, ReportResult, Reserve, ReservedTask, Span, code};

/// A task that does not say its time to run has this one, as queues have it by default.
const TTR_DEFAULT: Duration = Duration::from_secs(30);
/// When a worker stops, tasks may be on their way to it. They are waited for so long, and go back.
const LAST_TASKS: Duration = Duration::from_secs(1);
/// A server that has no task and does not wait for one either is not asked more often than this.
const PACE: Duration = Duration::from_secs(1);

pub(super) struct Run<F> {
    worker: Worker,
    job: Arc<F>,
    phase: Phase,
    jobs: JoinSet<(Attempt, Outcome)>,
    /// The attempts that are ours. One that is lost is taken out, and its job stopped.
    running: BTreeMap<Attempt, Running>,
    asking: Option<BoxFuture<'static, Result<Vec<ReservedTask>, Error>>>,
    /// Whether the server may be asked for tasks again, and whether a timer will say so.
    may_ask: bool,
    is_paced: bool,
    outbox: Outbox,
    sending: FuturesUnordered<BoxFuture<'static, Sent>>,
    timers: DelayQueue<Timer>,
    backoff: Backoff,
    /// The server did not answer, and is left alone for a while.
    is_resting: bool,
    /// The server cannot be reached, and whoever wants to know was told.
    is_lost: bool,
    summary: Summary,
    /// What no waiting mends.
    error: Option<Error>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Working,
    /// No more tasks are taken, and jobs end.
    Draining,
    /// Jobs are stopped, and their tasks go back.
    Leaving,
}

struct Running {
    job: AbortHandle,
    ttr: Duration,
    /// A key must not be used once its timer has come: by then it may be the key of another one.
    touch: Option<Key>,
    late: Option<Key>,
}

enum Timer {
    /// Half of the time to run is over.
    Touch(Attempt),
    /// All of it is over.
    Late(Attempt),
    MayAsk,
    RestOver,
    LastTasksOver,
    DrainOver,
}

impl<F, J, R> Run<F>
where
    F: Fn(Job) -> J + Send + Sync + 'static,
    J: Future<Output = Result<R, Failure>> + Send + 'static,
    R: Serialize + Send + 'static,
{
    pub fn new(worker: Worker, job: F) -> Run<F> {
        Run {
            backoff: Backoff::new(&worker.name),
            worker,
            job: Arc::new(job),
            phase: Phase::Working,
            jobs: JoinSet::new(),
            running: BTreeMap::new(),
            asking: None,
            may_ask: true,
            is_paced: false,
            outbox: Outbox::default(),
            sending: FuturesUnordered::new(),
            timers: DelayQueue::new(),
            is_resting: false,
            is_lost: false,
            summary: Summary::default(),
            error: None,
        }
    }

    pub async fn until(mut self, stop: impl Future<Output = ()>) -> Result<Summary, Error> {
        let mut stop = pin!(stop);
        loop {
            self.ask();
            self.report();
            if self.is_over() {
                return self.error.map_or(Ok(self.summary), Err);
            }
            tokio::select! {
                () = &mut stop, if self.phase == Phase::Working => self.begin_to_stop(),
                Some(ended) = self.jobs.join_next() => self.job_ended(ended),
                answer = answer_to(&mut self.asking) => self.tasks_came(answer),
                Some(sent) = self.sending.next() => self.reports_returned(sent),
                Some(timer) = self.timers.next() => self.time_came(timer.into_inner()),
            }
        }
    }

    fn is_over(&self) -> bool {
        let nothing_to_say = self.outbox.is_empty() && self.sending.is_empty();
        match self.phase {
            Phase::Working => false,
            Phase::Draining => nothing_to_say && self.asking.is_none() && self.jobs.is_empty(),
            Phase::Leaving => nothing_to_say,
        }
    }

    /// Asks for tasks, if there are free hands.
    fn ask(&mut self) {
        let is_ready = self.phase == Phase::Working && !self.is_resting && self.may_ask;
        // What cannot be reported fills the memory; nothing new is begun before it is gone.
        let hands = self.worker.concurrency.saturating_sub(self.jobs.len().max(self.outbox.len()));
        if !is_ready || self.asking.is_some() || hands == 0 {
            return;
        }
        let max = u32::try_from(hands).unwrap_or(u32::MAX).min(self.worker.batch);
        // A server that was lost is to say at once that it is there again.
        let wait = if self.is_lost { Duration::ZERO } else { self.worker.wait };
        let reserve = Reserve {
            worker: Some(self.worker.name.clone()),
            max: Some(max),
            wait: Some(wait.into()),
            ttr: self.worker.ttr.map(Span::from),
        };
        let (client, queue) = (self.worker.client.clone(), self.worker.queue.clone());
        self.asking = Some(Box::pin(async move { client.reserve(&queue, &reserve).await }));
        self.may_ask = false;
        if !self.is_paced {
            self.is_paced = true;
            self.timers.insert(Timer::MayAsk, PACE);
        }
    }

    fn tasks_came(&mut self, answer: Result<Vec<ReservedTask>, Error>) {
        self.asking = None;
        match answer {
            Ok(tasks) => {
                self.has_answered();
                self.may_ask |= !tasks.is_empty();
                for task in tasks {
                    match self.phase {
                        Phase::Working => self.begin(task),
                        _ => self.outbox.push(Report { attempt: Attempt::of(&task), what: What::Released }),
                    }
                }
            }
            // The queue may not have been made yet.
            Err(error) if error.is_passing() || error.code() == Some(code::QUEUE_NOT_FOUND) => {
                self.rest(error.retry_after());
                self.has_failed(error);
            }
            Err(error) => self.fail(error),
        }
    }

    fn begin(&mut self, task: ReservedTask) {
        let attempt = Attempt::of(&task);
        let ttr = task.ttr.map(Duration::from).or(self.worker.ttr).unwrap_or(TTR_DEFAULT);
        let (job, name) = (self.job.clone(), attempt.clone());
        let job = self.jobs.spawn(async move {
            let done = async { written(&job(Job { task }).await?) };
            let outcome = AssertUnwindSafe(done).catch_unwind().await;
            (name, outcome.unwrap_or_else(|_| Err(Failure::new("the job panicked"))))
        });
        let touch = Some(self.timers.insert(Timer::Touch(attempt.clone()), ttr / 2));
        let late = Some(self.timers.insert(Timer::Late(attempt.clone()), ttr));
        self.running.insert(attempt, Running { job, ttr, touch, late });
    }

    fn job_ended(&mut self, ended: Result<(Attempt, Outcome), JoinError>) {
        // A job that was stopped has nothing to say, and neither has one whose task is someone else's.
        let Ok((attempt, outcome)) = ended else { return };
        if self.forget(&attempt).is_none() {
            return;
        }
        let what = match outcome {
            Ok(result) => What::Done(result),
            Err(Failure { error, give_up: true, .. }) => What::GivenUp { error },
            Err(Failure { error, delay, .. }) => What::Failed { error, delay: delay.map(Span::from) },
        };
        self.outbox.push(Report { attempt, what });
    }

    /// Takes an attempt out of what is ours, with its timers.
    fn forget(&mut self, attempt: &Attempt) -> Option<Running> {
        let running = self.running.remove(attempt)?;
        for key in [running.touch, running.late].into_iter().flatten() {
            self.timers.remove(&key);
        }
        Some(running)
    }

    /// Someone else may have the task by now.
    fn lose(&mut self, attempt: &Attempt) {
        if let Some(running) = self.forget(attempt) {
            running.job.abort();
            self.summary.late += 1;
        }
    }

    /// Sends what is to be said.
    fn report(&mut self) {
        if self.is_resting {
            return;
        }
        let running = &self.running;
        self.outbox.retain(|report| report.kind() != Kind::Touch || running.contains_key(&report.attempt));
        self.sending.extend(self.outbox.requests(&self.worker.client, &self.worker.queue));
    }

    fn reports_returned(&mut self, Sent { kind, reports, answer }: Sent) {
        self.outbox.has_returned(kind);
        match answer {
            Ok(results) => {
                self.has_answered();
                let mut results = results.into_iter();
                for report in reports {
                    self.report_returned(report, results.next().unwrap_or_default());
                }
            }
            Err(error) if error.is_passing() => {
                reports.into_iter().for_each(|report| self.say_again(report));
                self.rest(error.retry_after());
                // A server that only fails to record reports would be lost and there again with every try.
                if !matches!(error, Error::Unknown(_)) {
                    self.has_failed(error);
                }
            }
            Err(error) => {
                self.summary.unreported += reports.iter().filter(|report| is_end(report)).count() as u64;
                self.fail(error);
            }
        }
    }

    fn report_returned(&mut self, report: Report, result: ReportResult) {
        match (result.problem, &report.what) {
            (None, What::MoreTime(_)) => self.has_more_time(&report.attempt, result.ttr),
            (None, What::Done(_)) => self.summary.succeeded += 1,
            (None, What::Failed { .. }) => self.summary.failed += 1,
            (None, What::GivenUp { .. }) => self.summary.given_up += 1,
            (None, What::Released) => self.summary.released += 1,
            (Some(problem), _) if is_passing(&problem) => {
                self.say_again(report);
                self.rest(None);
            }
            (Some(_), What::MoreTime(_)) => self.lose(&report.attempt),
            (Some(_), What::Released) => {}
            (Some(_), _) => self.summary.late += 1,
        }
    }

    fn has_more_time(&mut self, attempt: &Attempt, ttr: Option<Span>) {
        let Some(running) = self.running.get_mut(attempt) else { return };
        running.ttr = ttr.map_or(running.ttr, Duration::from);
        for (key, timer, after) in [
            (&mut running.touch, Timer::Touch(attempt.clone()), running.ttr / 2),
            (&mut running.late, Timer::Late(attempt.clone()), running.ttr),
        ] {
            if let Some(old) = key.replace(self.timers.insert(timer, after)) {
                self.timers.remove(&old);
            }
        }
    }

    /// Once the worker leaves, what cannot be said stays unsaid.
    fn say_again(&mut self, report: Report) {
        if self.phase != Phase::Leaving {
            self.outbox.push(report);
        } else if is_end(&report) {
            self.summary.unreported += 1;
        }
    }

    fn has_answered(&mut self) {
        self.backoff.reset();
        self.is_there();
    }

    /// Something failed that may pass. Whoever wants to know hears of the first that left us without an answer.
    fn has_failed(&mut self, error: Error) {
        match error {
            Error::Unreachable(_) | Error::Unknown(_) if self.is_lost => {}
            Error::Unreachable(_) | Error::Unknown(_) => {
                self.is_lost = true;
                self.worker.contact.tell(Err(error));
            }
            // It is busy, or has no such queue: it is there.
            _ => self.is_there(),
        }
    }

    fn is_there(&mut self) {
        if std::mem::take(&mut self.is_lost) {
            self.worker.contact.tell(Ok(()));
        }
    }

    /// Leaves the server alone for a while.
    fn rest(&mut self, retry_after: Option<Duration>) {
        if !self.is_resting && self.phase != Phase::Leaving {
            self.is_resting = true;
            self.timers.insert(Timer::RestOver, self.backoff.next(retry_after));
        }
    }

    fn time_came(&mut self, timer: Timer) {
        match timer {
            Timer::Touch(attempt) => {
                let Some(running) = self.running.get_mut(&attempt) else { return };
                running.touch = None;
                let what = What::MoreTime(self.worker.ttr.map(Span::from));
                self.outbox.push(Report { attempt, what });
            }
            Timer::Late(attempt) => {
                let Some(running) = self.running.get_mut(&attempt) else { return };
                running.late = None;
                self.lose(&attempt);
            }
            Timer::MayAsk => (self.may_ask, self.is_paced) = (true, false),
            Timer::RestOver => self.is_resting = false,
            Timer::LastTasksOver => self.asking = None,
            Timer::DrainOver => self.leave(),
        }
    }

    /// Something is wrong that no waiting mends.
    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
        if self.phase == Phase::Working {
            self.begin_to_stop();
        }
    }

    fn begin_to_stop(&mut self) {
        self.phase = Phase::Draining;
        self.timers.insert(Timer::DrainOver, self.worker.drain);
        if self.asking.is_some() {
            self.timers.insert(Timer::LastTasksOver, LAST_TASKS);
        }
    }

    fn leave(&mut self) {
        self.phase = Phase::Leaving;
        self.asking = None;
        // Whether the server answers or not, this is the last chance to tell it.
        self.is_resting = false;
        let attempts: Vec<Attempt> = self.running.keys().cloned().collect();
        for attempt in attempts {
            if let Some(running) = self.forget(&attempt) {
                running.job.abort();
                self.outbox.push(Report { attempt, what: What::Released });
            }
        }
    }
}

/// The answer to a request, if there is one.
async fn answer_to<T>(asking: &mut Option<BoxFuture<'static, T>>) -> T {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

/// Whether a report says how a job ended.
fn is_end(report: &Report) -> bool {
    !matches!(report.what, What::MoreTime(_) | What::Released)
}

/// Whether the same report may be taken later.
fn is_passing(problem: &Problem) -> bool {
    problem.status == 429 || problem.status >= 500
}
