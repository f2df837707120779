//! Nothing starts once its `expires_at` has come on the clock of the machine that would start it, nothing expires
//! before that, and what has passed it without a start ends as expired and nothing else.
//!
//! Machines whose clock is doubted are left out: nobody outside knows what they believe. So are tasks of a key that was
//! asked for twice: whichever request was last decides when they expire.

use std::collections::BTreeMap;

use punctual_core::{Change, End, EndState, TaskId, Timestamp};

use super::clocks::Clocks;
use super::never_early::repeated;
use super::{Log, View};
use crate::coverage::Coverage;
use crate::history::Happening;

pub fn check(log: &Log, view: &View, coverage: &Coverage) -> Vec<String> {
    let (clocks, replaceable) = (Clocks::of(log), repeated(log));
    let mut deadlines: BTreeMap<TaskId, Option<Timestamp>> = BTreeMap::new();
    for (id, task) in &view.tasks {
        if !task.spec.identity(id.queue).is_some_and(|identity| replaceable.contains(&identity)) {
            deadlines.insert(*id, task.spec.expires_at);
        }
    }
    let mut found = Vec::new();
    for (moment, happening) in log {
        match happening {
            Happening::Started { token, wall, .. } => {
                let Some(Some(deadline)) = deadlines.get(&token.id) else { continue };
                coverage.starts_before_a_deadline.count();
                if deadline <= wall && clocks.errors(moment.at, moment.at).is_some() {
                    found.push(format!("{token:?} started at {wall:?}, and had expired at {deadline:?}"));
                }
            }
            Happening::Written { changes, .. } => {
                for change in changes {
                    let Change::Ended { task, end, .. } = change else { continue };
                    coverage.expired.add(u64::from(end.state == EndState::Expired));
                    if let Some(deadline) = deadlines.get(&task.id) {
                        found.extend(check_end(task.id, *deadline, end));
                    }
                }
            }
            _ => {}
        }
    }
    found.extend(check_unstarted(view, &deadlines));
    found
}

fn check_end(id: TaskId, deadline: Option<Timestamp>, end: &End) -> Option<String> {
    let has_passed = deadline.is_some_and(|deadline| deadline <= end.at);
    let is_wrong = match end.state {
        EndState::Expired => !has_passed,
        EndState::Cancelled => has_passed,
        EndState::Succeeded | EndState::Dead => false,
    };
    is_wrong.then(|| format!("task {id} was {:?} at {:?}, and expires at {deadline:?}", end.state, end.at))
}

/// What never started has not succeeded and is not dead; and only what a user cancelled is cancelled.
fn check_unstarted(view: &View, deadlines: &BTreeMap<TaskId, Option<Timestamp>>) -> Vec<String> {
    let mut unstarted = deadlines.clone();
    for attempt in &view.attempts {
        unstarted.remove(&attempt.token.id);
    }
    let mut found = Vec::new();
    for (id, deadline) in unstarted {
        let task = &view.tasks[&id];
        let was_cancelled = task.amendings.contains(&crate::history::Amending::Cancel);
        let expected = match task.end {
            None | Some(EndState::Expired) => true,
            Some(EndState::Cancelled) => was_cancelled,
            Some(EndState::Succeeded | EndState::Dead) => deadline.is_none(),
        };
        if !expected {
            found.push(format!("task {id} never started, expired at {deadline:?}, and is {:?}", task.end));
        }
    }
    found
}
