//! What has ended can be looked up, and its unique key is remembered, for as long as its queue says; and in the end
//! it is dropped.

use std::collections::BTreeMap;
use std::time::Duration;

use punctual_core::{Change, Created, EndState, Identity, QueueId, Spec, TaskId, Timestamp};

use super::Log;
use crate::history::{Happening, Keeps, Moment};

pub fn check(log: &Log) -> Vec<String> {
    let mut found = Vec::new();
    let mut patience = Patience::default();
    let mut keys = Keys::default();
    for (moment, happening) in log {
        patience.note(happening);
        match happening {
            Happening::Dropped { id, end: (state, at) } if !patience.is_past(*moment, *at, *state) => {
                found.push(format!("task {id} was {state:?} at {at:?} and dropped at {:?}", moment.at));
            }
            Happening::HistoryLeft(rows) => found.push(format!("{rows} tasks were never dropped")),
            _ => keys.check(*moment, happening, &patience, &mut found),
        }
    }
    found
}

/// How long things are kept, on the clock that was furthest ahead so far.
#[derive(Default)]
pub struct Patience {
    keeps: Option<Keeps>,
    ahead: Duration,
}

impl Patience {
    pub fn note(&mut self, happening: &Happening) {
        match happening {
            Happening::Keeps(keeps) => self.keeps = Some(*keeps),
            // Larger jumps are doubted, and nothing is done by them.
            Happening::ClockSet { error_micros, .. } if (1..600_000_000).contains(error_micros) => {
                self.ahead = self.ahead.max(Duration::from_micros(error_micros.unsigned_abs()));
            }
            _ => {}
        }
    }

    fn is_past(&self, now: Moment, ended_at: Timestamp, state: EndState) -> bool {
        let keep = |keeps: Keeps| if state == EndState::Dead { keeps.dead } else { keeps.succeeded };
        self.keeps.is_some_and(|keeps| ended_at + keep(keeps) <= now.at + self.ahead)
    }

    /// Whether the identity of a task that ended then may be forgotten.
    pub fn is_forgettable(&self, now: Moment, ended_at: Timestamp) -> bool {
        self.keeps.is_some_and(|keeps| ended_at + keeps.identities <= now.at + self.ahead)
    }
}

/// Unique keys whose tasks have ended.
#[derive(Default)]
struct Keys {
    ended: BTreeMap<Identity, (TaskId, Timestamp)>,
    /// Requests that came when the task of the same key had ended, and when that was.
    asked: BTreeMap<u64, (TaskId, Timestamp)>,
}

impl Keys {
    fn check(&mut self, now: Moment, happening: &Happening, patience: &Patience, found: &mut Vec<String>) {
        match happening {
            Happening::Written { changes, .. } => {
                for change in changes {
                    self.written(now, change, patience, found);
                }
            }
            Happening::CreateCalled { no, queue, spec, .. } => self.called(*no, *queue, spec),
            Happening::CreateAnswered { no, created: Some(Created::Past) } => {
                let Some((id, at)) = self.asked.get(no) else { return };
                if !patience.is_forgettable(now, *at) {
                    found.push(format!("task {id} ended at {at:?}, and its key is unknown at {:?}", now.at));
                }
            }
            _ => {}
        }
    }

    fn called(&mut self, no: u64, queue: QueueId, spec: &Spec) {
        let ended = spec.identity(queue).and_then(|identity| self.ended.get(&identity));
        if let Some((id, at)) = ended {
            self.asked.insert(no, (*id, *at));
        }
    }

    fn written(&mut self, now: Moment, change: &Change, patience: &Patience, found: &mut Vec<String>) {
        let (Change::Accepted(task) | Change::Revived(task) | Change::Ended { task, .. }) = change else {
            return;
        };
        let Some(identity) = task.spec.identity(task.id.queue) else { return };
        match (change, self.ended.remove(&identity)) {
            (Change::Ended { end, .. }, _) => {
                self.ended.insert(identity, (task.id, end.at));
            }
            (Change::Accepted(_), Some((id, at))) if id != task.id && !patience.is_forgettable(now, at) => {
                found.push(format!("task {} has the key of {id}, which ended at {at:?}", task.id));
            }
            _ => {}
        }
    }
}
