//! Two tasks of the same queue, lane, time and unique key are one task, as long as the key is remembered.

use std::collections::BTreeMap;

use punctual_core::{Change, Created};

use super::Log;
use super::kept::Patience;
use crate::history::Happening;

pub fn check(log: &Log) -> Vec<String> {
    let mut found = Vec::new();
    let mut calls = BTreeMap::new();
    let mut known = BTreeMap::new();
    let mut ended = BTreeMap::new();
    let mut patience = Patience::default();
    for (moment, happening) in log {
        patience.note(happening);
        match happening {
            Happening::CreateCalled { no, spec, .. } => _ = calls.insert(*no, spec.clone()),
            Happening::CreateAnswered { no, created: Some(Created::New(id)) } => {
                let Some(identity) = calls[no].identity(id.queue) else { continue };
                let Some(before) = known.insert(identity, *id) else { continue };
                let ended_at = ended.get(&before);
                if !ended_at.is_some_and(|at| patience.is_forgettable(*moment, *at)) {
                    found.push(format!("{before} and {id} have the same identity, and both are new"));
                }
            }
            Happening::Written { changes, .. } => {
                for change in changes {
                    if let Change::Ended { task, end, .. } = change {
                        ended.insert(task.id, end.at);
                    }
                }
            }
            // A write that was cut may have ended it all the same.
            Happening::Dropped { id, end: (_, at) } => _ = ended.insert(*id, *at),
            _ => {}
        }
    }
    found
}
