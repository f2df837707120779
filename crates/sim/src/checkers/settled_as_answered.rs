//! What a worker is told of its report is what the store has; a report that comes too late changes nothing; and nobody
//! is told to be late as long as the task is certainly theirs. Whoever asks is answered.
//!
//! A task is certainly a worker's from when it was given until its time is over, if it has a lane or its lease is on
//! record. Who reports again may be told to be late: the first report may have been heard.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use punctual::Settled;
use punctual_core::{Change, EndState, Outcome, TaskId, Timestamp, Token, WaitState};

use super::Log;
use super::view::leased;
use crate::history::{Happening, Moment};

/// Whoever has asked and waits longer than this was forgotten.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

pub fn check(log: &Log) -> Vec<String> {
    let mut judge = Judge::default();
    for (moment, happening) in log {
        judge.note(*moment, happening);
    }
    let ended_at = log.last().map_or(Timestamp::MIN, |(moment, _)| moment.at);
    judge.check_all_answered(ended_at);
    judge.found
}

#[derive(Default)]
struct Judge {
    /// What was written of each task, and after which attempt.
    written: BTreeMap<TaskId, Vec<(Moment, u32, Written)>>,
    /// The last attempt of each task.
    started: BTreeMap<TaskId, Token>,
    /// Until when workers hold what is certainly theirs.
    held: BTreeMap<Token, Timestamp>,
    in_lanes_or_leased: BTreeSet<Token>,
    reported: BTreeSet<Token>,
    calls: BTreeMap<u64, Report>,
    reserves: BTreeMap<u64, Moment>,
    found: Vec<String>,
}

#[derive(Debug)]
enum Written {
    Ended(EndState, Bytes),
    Waits(WaitState, Timestamp),
}

impl Written {
    /// Whether a worker that reported this was told the truth. One whose task was at hand at too many failures of its
    /// owner may hear that it was given up, whatever it reported.
    fn is_told_by(&self, settled: Settled, outcome: &Outcome) -> bool {
        match (self, settled) {
            (Written::Ended(state, result), Settled::Ended(told)) => {
                let follows = match outcome {
                    Outcome::Succeeded(returned) => told == EndState::Succeeded && result == returned,
                    Outcome::Failed { .. } | Outcome::Refused { .. } => told == EndState::Expired,
                    Outcome::Interrupted | Outcome::NoReceiver => told == EndState::Expired,
                    Outcome::GaveUp(_) => false,
                };
                *state == told && (follows || told == EndState::Dead)
            }
            (Written::Waits(state, at), Settled::Waits(told, next_at)) => {
                let follows = !matches!(outcome, Outcome::Succeeded(_) | Outcome::GaveUp(_));
                (*state, *at) == (told, next_at) && (follows || told == WaitState::Blocked)
            }
            _ => false,
        }
    }
}

struct Report {
    called: Moment,
    token: Token,
    outcome: Outcome,
    is_first: bool,
    /// Another attempt had started before.
    is_outdated: bool,
}

impl Judge {
    fn note(&mut self, now: Moment, happening: &Happening) {
        match happening {
            Happening::Started { token, spec, timeout, .. } => {
                self.started.insert(token.id, *token);
                self.held.insert(*token, now.at + *timeout);
                self.in_lanes_or_leased.extend(spec.lane.is_some().then_some(*token));
            }
            Happening::Prolonged { token, until } => {
                self.held.insert(*token, *until);
                if self.started.get(&token.id).is_some_and(|last| last != token) {
                    self.found.push(format!("{token:?} has more time, and the next attempt has started"));
                }
            }
            Happening::NotProlonged { token } if self.is_certainly_held(now, *token) => {
                self.found.push(format!("{token:?} was told at {:?} that it has no more time", now.at));
            }
            Happening::Written { changes, .. } => changes.iter().for_each(|change| self.write(now, change)),
            Happening::ReserveCalled { no } => _ = self.reserves.insert(*no, now),
            Happening::ReserveAnswered { no } => _ = self.reserves.remove(no),
            Happening::ReportCalled { no, token, outcome } => {
                let is_outdated = self.started.get(&token.id).is_some_and(|last| last != token);
                let (is_first, outcome) = (self.reported.insert(*token), outcome.clone());
                let report = Report { called: now, token: *token, outcome, is_first, is_outdated };
                self.calls.insert(*no, report);
            }
            Happening::ReportAnswered { no, settled } => {
                if let (Some(report), Some(settled)) = (self.calls.remove(no), settled) {
                    let wrong = self.check_answer(now, &report, *settled);
                    self.found.extend(wrong.map(|wrong| format!("{:?}: {wrong}", report.token)));
                }
            }
            _ => {}
        }
    }

    fn write(&mut self, now: Moment, change: &Change) {
        self.in_lanes_or_leased.extend(leased(change));
        let (task, written) = match change {
            Change::Ended { task, end, .. } => (task, Written::Ended(end.state, end.result.clone())),
            Change::Refiled { task, .. } => (task, Written::Waits(task.state, task.wake_at)),
            _ => return,
        };
        self.written.entry(task.id).or_default().push((now, task.attempts, written));
    }

    fn is_certainly_held(&self, now: Moment, token: Token) -> bool {
        self.in_lanes_or_leased.contains(&token) && self.held.get(&token).is_some_and(|until| now.at < *until)
    }

    fn check_answer(&self, now: Moment, report: &Report, settled: Settled) -> Option<String> {
        match settled {
            Settled::NotOwner | Settled::Unknown => None,
            Settled::Late => {
                let is_wrong = report.is_first && self.is_certainly_held(now, report.token);
                is_wrong.then(|| "its report was called late, and its time is not over".into())
            }
            _ if report.is_outdated => {
                Some(format!("its report came after the next attempt, and was taken as {settled:?}"))
            }
            Settled::Ended(_) | Settled::Waits(..) => {
                let written = self.written.get(&report.token.id).map_or(&[][..], Vec::as_slice);
                let since = written
                    .iter()
                    .filter(|(at, attempt, _)| report.called < *at && *attempt == report.token.attempt);
                let mut since = since.map(|(_, _, written)| written);
                let is_on_record = since.any(|written| written.is_told_by(settled, &report.outcome));
                (!is_on_record).then(|| {
                    format!(
                        "{:?} was answered with {settled:?}, and {written:?} is on record",
                        report.outcome
                    )
                })
            }
        }
    }

    fn check_all_answered(&mut self, ended_at: Timestamp) {
        let reports = self.calls.values().map(|report| (report.called, "report"));
        let asked = reports.chain(self.reserves.values().map(|called| (*called, "reserve")));
        let forgotten = asked.filter(|(called, _)| called.at + ANSWERED_WITHIN < ended_at);
        self.found.extend(
            forgotten.map(|(called, what)| format!("a {what} of {:?} was never answered", called.at)),
        );
    }
}
