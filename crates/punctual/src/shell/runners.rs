//! Runs attempts beside the loop, on a few tasks that share one line of them.
//!
//! Most attempts are over after one look at them, or soon wait for something else. A tokio task for each would cost
//! more than many of them do. So a *runner* takes attempt after attempt from the line and looks at each once: what is
//! over is reported, and what waits goes on in a task of its own.
//!
//! An attempt may hold its thread up for long, and nothing may wait behind it for that:
//! - There is always a runner that holds nothing, as long as there is a line; other threads can run it.
//! - A runner that has woken another task gives way before it takes the next attempt: what it woke may be next on
//!   this very thread, where no other thread can fetch it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use punctual_core::{Attempt, Outcome, Target, Token};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::attempt::{fit, panicked};
use crate::executor::{Executor, Running};

/// So many attempts in a row, then others on this thread get their turn.
const IN_A_ROW_MAX: usize = 32;

/// What was reported about one attempt.
pub(super) type Report = (Token, Outcome);

/// Where the loop and the runners meet. Clones share it.
#[derive(Clone)]
pub(super) struct Runners(Arc<Shared>);

struct Shared {
    executor: Arc<dyn Executor>,
    /// The most bytes that a result may have.
    result_max: usize,
    /// Attempts that go on in tasks of their own. Locked before `line` where both are.
    waiting: Mutex<FxHashMap<Token, AbortHandle>>,
    line: Mutex<Line>,
    reports: Mutex<Vec<Report>>,
    /// There are reports.
    reported: Notify,
}

#[derive(Default)]
struct Line {
    /// Attempts that nobody has looked at yet.
    attempts: VecDeque<Attempt>,
    /// To be stopped, wherever they are: in the line, being looked at, or over and not yet heard of.
    unwanted: FxHashSet<Token>,
    /// Runners that hold no attempt: they come for the next one.
    free: usize,
}

impl Runners {
    pub fn new(executor: Arc<dyn Executor>, result_max: usize) -> Runners {
        Runners(Arc::new(Shared {
            executor,
            result_max,
            waiting: Mutex::default(),
            line: Mutex::default(),
            reports: Mutex::default(),
            reported: Notify::new(),
        }))
    }

    /// Lets these attempts begin. Called by the loop.
    pub fn begin(&self, attempts: &mut Vec<Attempt>) {
        if attempts.is_empty() {
            return;
        }
        let mut line = lock(&self.0.line);
        line.attempts.extend(attempts.drain(..));
        // One for each thread, and one that holds nothing while they work.
        let wanted = (Handle::current().metrics().num_workers() + 1).min(line.attempts.len());
        let more = wanted.saturating_sub(line.free);
        line.free += more;
        drop(line);
        for _ in 0..more {
            tokio::spawn(self.clone().run());
        }
    }

    /// Stops an attempt, if it is not over. What it reports all the same is about an attempt nobody waits for.
    pub fn stop(&self, token: Token) {
        let mut waiting = lock(&self.0.waiting);
        match waiting.remove(&token) {
            Some(task) => task.abort(),
            None => _ = lock(&self.0.line).unwanted.insert(token),
        }
    }

    /// Stops everything.
    pub fn stop_all(&self) {
        lock(&self.0.line).attempts.clear();
        lock(&self.0.waiting).drain().for_each(|(_, task)| task.abort());
    }

    /// Waits until something was reported, and takes it.
    pub async fn reported(&self, reports: &mut Vec<Report>) {
        loop {
            self.take_reports(reports);
            if !reports.is_empty() {
                return;
            }
            self.0.reported.notified().await;
        }
    }

    /// What was reported since the last time. `reports` is empty before, and its room is used for what comes next.
    pub fn take_reports(&self, reports: &mut Vec<Report>) {
        std::mem::swap(reports, &mut *lock(&self.0.reports));
        if reports.is_empty() {
            return;
        }
        let unwanted = &mut lock(&self.0.line).unwanted;
        if !unwanted.is_empty() {
            reports.iter().for_each(|(token, _)| _ = unwanted.remove(token));
        }
    }

    /// Boxed, because a runner may start another.
    fn run(self) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.take_turns().await })
    }

    async fn take_turns(&self) {
        let mut in_a_row = 0;
        while let Some((attempt, alone)) = self.next(in_a_row > 0) {
            if alone {
                tokio::spawn(self.clone().run());
                tokio::task::yield_now().await;
            }
            let woke = self.look_at(attempt);
            in_a_row += 1;
            if woke || in_a_row % IN_A_ROW_MAX == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// The next attempt for a runner, and whether no other runner is free to come for the one after it.
    fn next(&self, held_one: bool) -> Option<(Attempt, bool)> {
        let mut line = lock(&self.0.line);
        line.free += usize::from(held_one);
        line.free -= 1;
        let mut attempt = line.attempts.pop_front()?;
        while !line.unwanted.is_empty() && line.unwanted.remove(&attempt.token) {
            attempt = line.attempts.pop_front()?;
        }
        let alone = line.free == 0 && !line.attempts.is_empty();
        line.free += usize::from(alone);
        Some((attempt, alone))
    }

    /// Begins an attempt. Says whether another task was woken by that.
    fn look_at(&self, attempt: Attempt) -> bool {
        let token = attempt.token;
        // A call waits for its answer in any case: one look would be wasted.
        let is_call = matches!(attempt.spec.target, Target::Destination(_));
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let mut running = self.0.executor.run(attempt);
            if is_call {
                return (running, Poll::Pending);
            }
            // Nobody need wake us: what is not over is looked at again, at once, in a task of its own.
            let looked = running.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            (running, looked)
        }));
        match begun {
            Ok((running, Poll::Pending)) => self.go_on(token, running),
            Ok((_, Poll::Ready(outcome))) => self.report(token, outcome),
            Err(panic) => self.report(token, panicked(&*panic)),
        }
    }

    /// The attempt waits for something: it goes on in a task of its own.
    fn go_on(&self, token: Token, running: Running) -> bool {
        let mut waiting = lock(&self.0.waiting);
        if lock(&self.0.line).unwanted.remove(&token) {
            return false;
        }
        let runners = self.clone();
        let task = tokio::spawn(async move {
            let outcome = AssertUnwindSafe(running).catch_unwind().await;
            lock(&runners.0.waiting).remove(&token);
            runners.report(token, outcome.unwrap_or_else(|panic| panicked(&*panic)));
        });
        waiting.insert(token, task.abort_handle());
        true
    }

    /// Says whether the loop was woken.
    fn report(&self, token: Token, outcome: Outcome) -> bool {
        let outcome = fit(outcome, self.0.result_max);
        let mut reports = lock(&self.0.reports);
        reports.push((token, outcome));
        let first = reports.len() == 1;
        drop(reports);
        if first {
            self.0.reported.notify_one();
        }
        first
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().expect("nothing panics while it is held")
}
