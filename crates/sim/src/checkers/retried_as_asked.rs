//! Retries follow their policy: each waits as long as it should, also across restarts and changes of owner, none comes
//! after the last attempt, and nothing is given up before it. A head that has run out of attempts blocks its lane or
//! dies, as its queue says.
//!
//! A failure counts once it is on record: one that died with its owner may be repeated at once. Waits are promised on
//! wall clocks, so in true time they may differ by as much as the clocks did. Tasks that a user ran, moved or retried
//! may start sooner. What a worker says may come too late: then its attempt has failed by taking too long.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use punctual_core::{
    Change, EndState, Identity, OnExhausted, Outcome, Place, QueueId, QueueSettings, RetryPolicy, Spec,
    Target, Task, TaskId, Timestamp, Token, WaitState, Waits,
};

use super::Log;
use super::clocks::{Clocks, shifted};
use super::never_early::repeated;
use crate::coverage::Coverage;
use crate::history::{Amending, Happening, Moment, Process};

/// What simulated timers round by.
const CLOCK_TICK: Duration = Duration::from_millis(1);

pub fn check(log: &Log, coverage: &Coverage) -> Vec<String> {
    let mut judge = Judge {
        clocks: Clocks::of(log),
        began_at: log.first().map_or(Timestamp::MIN, |(moment, _)| moment.at),
        replaceable: repeated(log),
        queues: BTreeMap::new(),
        tasks: BTreeMap::new(),
        started: BTreeMap::new(),
        calls: BTreeMap::new(),
        coverage,
        found: Vec::new(),
    };
    for (moment, happening) in log {
        judge.note(*moment, happening);
    }
    judge.found
}

struct Judge<'a> {
    clocks: Clocks,
    began_at: Timestamp,
    replaceable: BTreeSet<Identity>,
    queues: BTreeMap<QueueId, Box<QueueSettings>>,
    tasks: BTreeMap<TaskId, Tried>,
    /// Until when each attempt may take, and where.
    started: BTreeMap<Token, (Timestamp, Process)>,
    /// Requests that are not answered yet: they may be heard at any time.
    calls: BTreeMap<u64, (TaskId, Amending)>,
    coverage: &'a Coverage,
    found: Vec<String>,
}

/// What is known of a task's attempts.
#[derive(Default)]
struct Tried {
    /// When the attempt of each number was first over, and how those of that number ended.
    over: BTreeMap<u32, (Timestamp, Vec<Ending>)>,
    /// Failures on record since its count may last have begun afresh.
    failures: u32,
    last_failure: u32,
    waits: Option<Wait>,
    is_blocked: bool,
}

#[derive(Clone, PartialEq, Eq)]
enum Ending {
    Failed(Option<Duration>),
    GaveUp,
    Other,
}

/// A pause that is promised.
struct Wait {
    since: Timestamp,
    at_least: Duration,
    process: Option<Process>,
}

impl Tried {
    /// A user may have had it tried sooner, or again from the beginning.
    fn meddled_with(&mut self, what: Amending) {
        self.waits = None;
        if what == Amending::Retry {
            self.failures = 0;
        }
    }
}

impl Judge<'_> {
    fn note(&mut self, now: Moment, happening: &Happening) {
        match happening {
            Happening::QueueSet { queue, settings } => _ = self.queues.insert(*queue, settings.clone()),
            Happening::AmendCalled { no, id, what } if *what != Amending::Cancel => {
                self.calls.insert(*no, (*id, *what));
                self.tasks.entry(*id).or_default().meddled_with(*what);
            }
            Happening::AmendAnswered { no, .. } => {
                if let Some((id, what)) = self.calls.remove(no) {
                    self.tasks.entry(id).or_default().meddled_with(what);
                }
            }
            Happening::Started { process, token, spec, timeout, .. } => {
                self.start(now, *process, *token, spec);
                self.started.insert(*token, (now.at + *timeout, *process));
            }
            Happening::ReportCalled { token, outcome, .. } => self.stop(now, *token, Some(outcome)),
            Happening::Stopped { token, outcome } => self.stop(now, *token, outcome.as_ref()),
            Happening::Written { changes, .. } => {
                changes.iter().for_each(|change| self.written(now, change));
            }
            _ => {}
        }
    }

    fn start(&mut self, now: Moment, process: Process, token: Token, spec: &Spec) {
        let attempts_max = self.policy(token.id.queue, spec).map_or(u32::MAX, |policy| policy.attempts_max);
        let tried = self.tasks.entry(token.id).or_default();
        if tried.failures >= attempts_max {
            self.found.push(format!("{token:?} started after {} failures on record", tried.failures));
        }
        let is_asked_for = self.calls.values().any(|(id, _)| *id == token.id);
        let Some(wait) = tried.waits.take().filter(|_| !is_asked_for) else { return };
        if wait.process.is_some_and(|failed_on| failed_on != process) {
            self.coverage.retries_elsewhere.count();
        }
        let Some(errors) = self.clocks.errors(wait.since, now.at) else { return };
        let tolerance = Duration::from_micros((errors.greatest - errors.least).unsigned_abs());
        let paused = now.at.since(wait.since);
        if paused + tolerance + CLOCK_TICK < wait.at_least {
            self.found.push(format!("{token:?} started {paused:?} after a failure, not {:?}", wait.at_least));
        }
    }

    fn stop(&mut self, now: Moment, token: Token, outcome: Option<&Outcome>) {
        let was_overdue = self.started.get(&token).is_some_and(|(until, _)| *until <= now.at);
        let ending = match outcome {
            Some(Outcome::Failed { retry_after, .. } | Outcome::Refused { retry_after, .. }) => {
                Ending::Failed(*retry_after)
            }
            Some(Outcome::GaveUp(_)) => Ending::GaveUp,
            None if was_overdue => Ending::Failed(None),
            _ => Ending::Other,
        };
        let over = &mut self.tasks.entry(token.id).or_default().over;
        over.entry(token.attempt).or_insert((now.at, Vec::new())).1.push(ending);
    }

    fn written(&mut self, now: Moment, change: &Change) {
        let (Change::Refiled { task, .. } | Change::Revived(task) | Change::Ended { task, .. }) = change
        else {
            return;
        };
        if task.spec.identity(task.id.queue).is_some_and(|identity| self.replaceable.contains(&identity)) {
            self.tasks.remove(&task.id);
            return;
        }
        let tried = self.tasks.entry(task.id).or_default();
        if task.attempts == task.forgiven {
            tried.failures = 0;
        }
        let was_blocked = std::mem::replace(&mut tried.is_blocked, task.state == WaitState::Blocked);
        match change {
            Change::Ended { end, .. } if end.state == EndState::Dead => self.given_up(now, task, true),
            Change::Refiled { .. } if task.state == WaitState::Blocked && !was_blocked => {
                self.given_up(now, task, false);
            }
            // From blocked to waiting: a user wants it run. Its row may lie later nevertheless, at its window's mark.
            Change::Refiled { from, task, .. } if task.state == WaitState::Retrying && !was_blocked => {
                let (Place::Window(_, key) | Place::Parked(_, key)) = from;
                if task.wake_at > key.wake_at {
                    self.put_off(now, task);
                }
            }
            _ => {}
        }
    }

    /// A row says that a task is to be tried again later.
    fn put_off(&mut self, now: Moment, task: &Task) {
        let Some(policy) = self.policy(task.id.queue, &task.spec) else { return };
        let on = |token: &Token| token.id == task.id && token.attempt == task.attempts;
        let (until, process) = self.started.iter().find(|(token, _)| on(token)).map(|(_, ran)| *ran).unzip();
        let was_late = task.spec.target == Target::Worker && until.is_some_and(|until| until <= now.at);
        let tried = self.tasks.entry(task.id).or_default();
        let Some((since, endings)) = tried.over.get_mut(&task.attempts) else { return };
        endings.extend(was_late.then_some(Ending::Failed(None)));
        if endings.iter().all(|ending| *ending == Ending::GaveUp) {
            self.found.push(format!("task {} gave up, and is to be tried again", task.id));
        }
        let failed = endings.iter().filter_map(|ending| match ending {
            Ending::Failed(retry_after) => Some(retry_after.unwrap_or_default()),
            _ => None,
        });
        let (Some(least), Some(most)) = (failed.clone().min(), failed.max()) else { return };
        if task.attempts <= tried.last_failure {
            return;
        }
        tried.last_failure = task.attempts;
        tried.failures += 1;
        let (failures, since) = (tried.failures, *since);
        let at_least = shortest(&policy.waits, failures).max(least);
        let at_most = longest(&policy.waits, task.attempts).max(most);
        tried.waits = Some(Wait { since, at_least, process });
        self.coverage.retries.count();
        self.coverage.retries_asked_for_time.add(u64::from(!most.is_zero()));
        if failures >= policy.attempts_max {
            self.found.push(format!("task {} is tried again after {failures} failures", task.id));
        }
        let Some(errors) = self.clocks.errors(self.began_at, now.at) else { return };
        let latest = shifted(now.at + at_most, errors.greatest);
        if task.wake_at > latest {
            self.found.push(format!("task {} waits until {:?}, not {latest:?}", task.id, task.wake_at));
        }
        let age = shifted(since, errors.least).since(task.spec.at);
        if policy.age_max.is_some_and(|max| age >= max) {
            self.found.push(format!("task {} is tried again at the age of {age:?}", task.id));
        }
    }

    /// A row says that a task is not tried again by itself.
    fn given_up(&mut self, now: Moment, task: &Task, is_dead: bool) {
        let (Some(policy), Some(queue)) =
            (self.policy(task.id.queue, &task.spec), self.queues.get(&task.id.queue))
        else {
            return;
        };
        let greatest = self.clocks.errors(self.began_at, now.at).map(|errors| errors.greatest);
        let latest = greatest.map_or(Timestamp::MAX, |greatest| shifted(now.at, greatest));
        let may_block = task.spec.lane.is_some() && queue.on_exhausted == OnExhausted::Block;
        let counter = if is_dead { &self.coverage.died } else { &self.coverage.blocked };
        counter.count();
        if is_dead == may_block && !(may_block && task.has_expired(latest)) {
            let what = if is_dead { "died" } else { "blocks its lane" };
            self.found.push(format!("task {} {what}, against what its queue says", task.id));
        }
        let gave_up = self.tasks.get(&task.id).and_then(|tried| tried.over.get(&task.attempts));
        let gave_up = gave_up.is_some_and(|(_, endings)| endings.contains(&Ending::GaveUp));
        let too_old = policy.age_max.is_some_and(|max| latest.since(task.spec.at) >= max);
        let set_aside = task.last_error.as_deref().is_some_and(|error| error.starts_with("set aside"));
        if !gave_up && !too_old && !set_aside && task.attempts < policy.attempts_max {
            self.found.push(format!("task {} was given up after {} attempts", task.id, task.attempts));
        }
    }

    fn policy(&self, queue: QueueId, spec: &Spec) -> Option<RetryPolicy> {
        let of_queue = || self.queues.get(&queue).map(|queue| queue.retry.clone());
        spec.retry.clone().or_else(of_queue)
    }
}

/// The shortest wait after so many failures.
fn shortest(waits: &Waits, failures: u32) -> Duration {
    match waits {
        Waits::Growing { min, jitter_percent, .. } => {
            (longest(waits, failures) * (100 - jitter_percent) / 100).max(*min / 2)
        }
        Waits::Listed(_) => longest(waits, failures),
    }
}

/// The longest wait after so many failures.
fn longest(waits: &Waits, failures: u32) -> Duration {
    match waits {
        Waits::Growing { min, max, factor_percent, .. } => {
            (1..failures).fold(*min, |wait, _| (wait * *factor_percent / 100).min(*max))
        }
        Waits::Listed(listed) => listed[(failures as usize - 1).min(listed.len() - 1)],
    }
}
