//! No task starts before its time, on the clock of the machine that starts it. (A retry's time is its own; and a user
//! may run a task before its time.)

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::{Answer, Identity, Target, TaskId, Timestamp};

use super::Log;
use crate::history::{Amending, Happening};

pub fn check(log: &Log) -> Vec<String> {
    let mut found = Vec::new();
    // What each task was moved to for certain; anything else that was asked of it makes it uncertain.
    let mut moved: BTreeMap<TaskId, Timestamp> = BTreeMap::new();
    let mut calls: BTreeMap<u64, (TaskId, Amending)> = BTreeMap::new();
    let mut asked: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut exempt: BTreeSet<TaskId> = BTreeSet::new();
    let repeated = repeated(log);
    for (_, happening) in log {
        match happening {
            Happening::AmendCalled { no, id, what } => {
                moved.remove(id);
                calls.insert(*no, (*id, *what));
                *asked.entry(*id).or_default() += 1;
                if matches!(what, Amending::Run | Amending::Retry) {
                    exempt.insert(*id);
                }
            }
            Happening::AmendAnswered { no, answer: Some(Answer::Amended(task)) } => {
                let is_replaceable =
                    task.spec.identity(task.id.queue).is_some_and(|key| repeated.contains(&key));
                if let (id, Amending::Move(to)) = calls[no]
                    && asked[&id] == 1
                    && !is_replaceable
                {
                    moved.insert(id, to);
                }
            }
            // That a worker has it is written down before it gets it. If it never did, this is a retry all the same.
            Happening::Started { token, spec, .. } if token.attempt > 1 && spec.target == Target::Worker => {
                exempt.insert(token.id);
            }
            Happening::Started { token, wall, spec, .. } if exempt.insert(token.id) => {
                let due = moved.get(&token.id).copied().map_or(spec.at, |to| to.max(spec.at));
                if *wall < due {
                    found.push(format!("{token:?} started at {wall:?}, due {due:?}"));
                }
            }
            _ => {}
        }
    }
    found
}

/// Identities that were asked for more than once: such a task may have been replaced, and have its first time again.
pub fn repeated(log: &Log) -> BTreeSet<Identity> {
    let mut seen = BTreeSet::new();
    let mut repeated = BTreeSet::new();
    for (_, happening) in log {
        if let Happening::CreateCalled { queue, spec, .. } = happening
            && let Some(identity) = spec.identity(*queue)
            && !seen.insert(identity)
        {
            repeated.insert(identity);
        }
    }
    repeated
}
