//! A cancel wins or loses, never both: cancelled means no start from then on, running or ended means not cancelled.

use std::collections::BTreeMap;

use punctual_core::{Answer, EndState, TaskId};

use super::{Log, View};
use crate::history::{Amending, Happening};

pub fn check(log: &Log, view: &View) -> Vec<String> {
    let mut found = Vec::new();
    let mut asked: BTreeMap<u64, TaskId> = BTreeMap::new();
    let mut won: Vec<TaskId> = Vec::new();
    let mut lost: Vec<TaskId> = Vec::new();
    for (_, happening) in log {
        match happening {
            Happening::AmendCalled { no, id, what: Amending::Cancel } => _ = asked.insert(*no, *id),
            Happening::AmendAnswered { no, answer } => {
                let Some(id) = asked.get(no) else { continue };
                match answer {
                    Some(Answer::Cancelled) => won.push(*id),
                    Some(Answer::Running { .. } | Answer::Ended(_)) => lost.push(*id),
                    _ => {}
                }
            }
            Happening::Started { token, .. } if won.contains(&token.id) => {
                found.push(format!("{token:?} started after its task was cancelled"));
            }
            _ => {}
        }
    }
    for id in &won {
        let end = view.tasks.get(id).and_then(|task| task.end);
        if view.tasks.contains_key(id) && end != Some(EndState::Cancelled) {
            found.push(format!("task {id} was cancelled, and is {end:?}"));
        }
    }
    // A task whose only cancel was refused cannot be cancelled in the end.
    for id in lost {
        let cancels = asked.values().filter(|of| **of == id).count();
        let end = view.tasks.get(&id).and_then(|task| task.end);
        if cancels == 1 && end == Some(EndState::Cancelled) {
            found.push(format!("the cancel of task {id} was refused, and it is cancelled"));
        }
    }
    found
}
