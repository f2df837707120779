//! What attempts do when they run: succeed, fail, panic, hang, as their payload says, and always on record.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use punctual::clock::SimulatedClock;
use punctual::{Executor, Running};
use punctual_core::{Attempt, Outcome, Token};

use crate::bugs::Bug;
use crate::history::{Happening, History, Process};

/// What a task does, written in its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// How its first attempts go.
    pub at_first: Trouble,
    /// How many of them.
    pub times: u8,
    /// How long an attempt takes.
    pub millis: u16,
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// Nothing.
    None,
    /// It fails.
    Fails,
    /// It panics.
    Panics,
    /// It takes longer than it may.
    Hangs,
    /// It fails for good.
    GivesUp,
    /// It fails, and says when to come again.
    AsksForTime,
}

/// What a target that asks for time asks for: more than most waits.
const TIME_ASKED_FOR: Duration = Duration::from_secs(4);

impl Plan {
    /// The payload, without a mark.
    pub fn to_bytes(self) -> Bytes {
        let [high, low] = self.millis.to_be_bytes();
        marked(&[self.at_first as u8, self.times, high, low], 0)
    }

    pub fn from_bytes(bytes: &[u8]) -> Plan {
        let troubles = [
            Trouble::None,
            Trouble::Fails,
            Trouble::Panics,
            Trouble::Hangs,
            Trouble::GivesUp,
            Trouble::AsksForTime,
        ];
        let &[trouble, times, high, low, ..] = bytes else { panic!("a payload of ours begins with a plan") };
        let at_first = troubles.get(usize::from(trouble)).copied().unwrap_or(Trouble::None);
        Plan { at_first, times, millis: u16::from_be_bytes([high, low]) }
    }
}

const PLAN_LEN: usize = 4;

/// The same plan with a mark, by which a payload that was changed is told from what it was.
pub fn marked(payload: &[u8], mark: u32) -> Bytes {
    [&payload[..PLAN_LEN], &mark.to_be_bytes()].concat().into()
}

/// The mark of a payload.
pub fn mark_of(payload: &[u8]) -> Option<u32> {
    payload.get(PLAN_LEN..)?.try_into().ok().map(u32::from_be_bytes)
}

/// Runs attempts on one process.
pub struct Targets {
    pub process: Process,
    pub history: Arc<History>,
    pub clock: SimulatedClock,
    /// Once it is calm, everything succeeds.
    pub calm: Arc<AtomicBool>,
    /// A handler that exists only once it is calm, or after a while.
    pub late_handler: Arc<AtomicBool>,
    pub bug: Option<Bug>,
}

/// The text by which a planned panic is told from a real one.
pub const PLANNED_PANIC: &str = "planned panic of a handler";

/// Notes the end of an attempt, however it ends.
struct OnRecord {
    token: Token,
    outcome: Option<Outcome>,
    history: Arc<History>,
    clock: SimulatedClock,
}

impl OnRecord {
    /// It ends by itself.
    fn returns(&mut self, outcome: Outcome) -> Outcome {
        self.outcome = Some(outcome.clone());
        outcome
    }
}

impl Drop for OnRecord {
    fn drop(&mut self) {
        let stopped = Happening::Stopped { token: self.token, outcome: self.outcome.take() };
        self.history.note(self.clock.true_now().wall, stopped);
    }
}

impl Executor for Targets {
    fn run(&self, attempt: Attempt) -> Running {
        let (history, clock, calm) = (self.history.clone(), self.clock.clone(), self.calm.clone());
        let bug = self.bug;
        let started = Happening::Started {
            process: self.process,
            token: attempt.token,
            wall: clock.now().wall,
            spec: attempt.spec.clone(),
            timeout: attempt.timeout,
        };
        history.note(clock.true_now().wall, started);
        let mut on_record = OnRecord { token: attempt.token, outcome: None, history, clock };
        Box::pin(async move {
            let plan = Plan::from_bytes(&attempt.spec.payload);
            pass(Duration::from_millis(u64::from(plan.millis))).await;
            let outcome = match plan.at_first {
                _ if calm.load(Ordering::Relaxed) => Outcome::Succeeded(result_of(attempt.token)),
                _ if attempt.token.attempt > u32::from(plan.times) => {
                    Outcome::Succeeded(result_of(attempt.token))
                }
                Trouble::None => Outcome::Succeeded(result_of(attempt.token)),
                Trouble::Fails => Outcome::Failed { error: "planned".into(), retry_after: None },
                Trouble::Panics => {
                    on_record.returns(Outcome::Failed { error: PLANNED_PANIC.into(), retry_after: None });
                    panic!("{PLANNED_PANIC}")
                }
                Trouble::Hangs => {
                    pass(2 * attempt.timeout).await;
                    Outcome::Failed { error: "late".into(), retry_after: None }
                }
                Trouble::AsksForTime => {
                    let (error, retry_after) = ("busy".into(), Some(TIME_ASKED_FOR));
                    Outcome::Refused { error, retry_after, is_busy: true }
                }
                Trouble::GivesUp => Outcome::GaveUp("planned".into()),
            };
            let outcome = on_record.returns(outcome);
            match bug {
                Some(bug) => bug.bend_outcome(outcome),
                None => outcome,
            }
        })
    }

    fn receivers(&self) -> Vec<Box<str>> {
        let late = self.late_handler.load(Ordering::Relaxed) || self.calm.load(Ordering::Relaxed);
        let mut names: Vec<Box<str>> = vec!["work".into()];
        names.extend(late.then(|| "late".into()));
        names
    }
}

/// No two attempts return the same.
pub fn result_of(token: Token) -> Bytes {
    format!("{} {}.{}", token.id, token.epoch.0, token.attempt).into()
}

/// Time passes on the paused clock.
#[expect(clippy::disallowed_methods, reason = "simulated time passes only by waiting for it")]
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
