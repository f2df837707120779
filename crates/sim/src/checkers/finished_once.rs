//! What is recorded as finished never runs again. What is dead may be retried, by a user.

use std::collections::BTreeMap;

use punctual_core::{Change, EndState, TaskId};

use super::Log;
use crate::history::{Amending, Happening};

pub fn check(log: &Log) -> Vec<String> {
    let mut found = Vec::new();
    let mut ended: BTreeMap<TaskId, EndState> = BTreeMap::new();
    for (_, happening) in log {
        match happening {
            // A retry whose answer was lost may have revived a dead task all the same.
            Happening::AmendCalled { id, what: Amending::Retry, .. } => {
                ended.retain(|of, state| of != id || *state != EndState::Dead);
            }
            Happening::Started { token, .. } => {
                if let Some(state) = ended.get(&token.id) {
                    found.push(format!("{token:?} started although its task was recorded as {state:?}"));
                }
            }
            Happening::Written { changes, .. } => {
                for change in changes {
                    match change {
                        Change::Ended { task, end, .. } => {
                            let before = ended.insert(task.id, end.state);
                            if before.is_some_and(|before| before != end.state) {
                                found.push(format!(
                                    "task {} ended as {before:?} and as {:?}",
                                    task.id, end.state
                                ));
                            }
                        }
                        Change::Revived(task)
                            if ended.remove(&task.id).is_some_and(|state| state != EndState::Dead) =>
                        {
                            found.push(format!("task {} was revived though it was not dead", task.id));
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    found
}
