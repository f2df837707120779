//! Whoever looks an ended task up, or waits for its end, is shown how it ended and what its attempt returned, from the
//! moment its end is on record until it is dropped.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use punctual_core::{Change, End, EndState, Found, Outcome, TaskId};

use super::Log;
use crate::coverage::Coverage;
use crate::history::{Happening, Moment};

pub fn check(log: &Log, coverage: &Coverage) -> Vec<String> {
    let mut known = Known::default();
    let mut found = Vec::new();
    for (moment, happening) in log {
        match happening {
            Happening::Stopped { token, outcome: Some(Outcome::Succeeded(result)) }
            | Happening::ReportCalled { token, outcome: Outcome::Succeeded(result), .. } => {
                known.returned.entry(token.id).or_default().insert(result.clone());
            }
            Happening::Written { changes, .. } => known.written(*moment, changes),
            Happening::Dropped { id, .. } => _ = known.dropped.insert(*id),
            Happening::Seen { id, asked, found: seen } => {
                let wrong = match seen.as_deref() {
                    Some(Found::Ended(ended)) => {
                        coverage.results_seen.count();
                        known.check_end(*id, *asked, &ended.end)
                    }
                    Some(Found::Forgotten { state, .. }) => known.check_state(*id, *asked, *state),
                    Some(Found::Live(_)) => known.check_live(*id, *asked),
                    None => known.check_gone(*id, *asked),
                };
                found.extend(wrong.map(|wrong| format!("task {id}: {wrong}")));
            }
            _ => {}
        }
    }
    found
}

/// What is known from outside.
#[derive(Default)]
struct Known {
    returned: BTreeMap<TaskId, BTreeSet<Bytes>>,
    /// Ends on record.
    ends: BTreeMap<TaskId, (Moment, End)>,
    /// When a dead task was last to be tried again.
    revived: BTreeMap<TaskId, Moment>,
    dropped: BTreeSet<TaskId>,
}

impl Known {
    fn written(&mut self, now: Moment, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Ended { task, end, .. } => _ = self.ends.insert(task.id, (now, end.clone())),
                Change::Revived(task) => {
                    self.ends.remove(&task.id);
                    self.revived.insert(task.id, now);
                }
                _ => {}
            }
        }
    }

    /// The end that was on record when somebody asked, and still is.
    fn end_at(&self, id: TaskId, asked: Moment) -> Option<&End> {
        let (_, end) = self.ends.get(&id).filter(|(written, _)| *written < asked)?;
        Some(end)
    }

    fn check_end(&self, id: TaskId, asked: Moment, shown: &End) -> Option<String> {
        let returned =
            |result: &Bytes| self.returned.get(&id).is_some_and(|results| results.contains(result));
        if shown.state == EndState::Succeeded && !returned(&shown.result) {
            return Some(format!("no attempt returned what is shown, {shown:?}"));
        }
        let end = self.end_at(id, asked).filter(|end| *end != shown)?;
        Some(format!("{end:?} is on record, and {shown:?} is shown"))
    }

    fn check_state(&self, id: TaskId, asked: Moment, shown: EndState) -> Option<String> {
        let end = self.end_at(id, asked).filter(|end| end.state != shown)?;
        Some(format!("{:?} is on record, and {shown:?} is shown", end.state))
    }

    fn check_live(&self, id: TaskId, asked: Moment) -> Option<String> {
        // It may have been revived, and have ended again, while they looked.
        let was_revived = self.revived.get(&id).is_some_and(|at| *at >= asked);
        let end = self.end_at(id, asked).filter(|_| !was_revived)?;
        Some(format!("{end:?} is on record, and it is shown as waiting"))
    }

    fn check_gone(&self, id: TaskId, asked: Moment) -> Option<String> {
        let end = self.end_at(id, asked).filter(|_| !self.dropped.contains(&id))?;
        Some(format!("{end:?} is on record, and it is said not to be there"))
    }
}
