//! Two tasks of the same queue, lane, time and unique key are one task.

use std::collections::BTreeMap;

use punctual_core::Created;

use super::Log;
use crate::history::Happening;

pub fn check(log: &Log) -> Vec<String> {
    let mut found = Vec::new();
    let mut calls = BTreeMap::new();
    let mut known = BTreeMap::new();
    for (_, happening) in log {
        match happening {
            Happening::CreateCalled { no, spec } => _ = calls.insert(*no, spec.clone()),
            Happening::CreateAnswered { no, created: Some(Created::New(id)) } => {
                let Some(identity) = calls[no].identity(id.queue) else { continue };
                if let Some(before) = known.insert(identity, *id) {
                    found.push(format!("{before} and {id} have the same identity, and both are new"));
                }
            }
            _ => {}
        }
    }
    found
}
