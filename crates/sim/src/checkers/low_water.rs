//! Low-water marks are honest: nothing that has not ended lies below one, and nothing is filed below one.

use std::collections::BTreeMap;

use punctual_core::{Change, Fence, PartitionId, Task, Timestamp, WindowId};

use super::Log;
use crate::history::Happening;

pub fn check(log: &Log) -> Vec<String> {
    let mut found = Vec::new();
    let mut marks: BTreeMap<(PartitionId, WindowId), Timestamp> = BTreeMap::new();
    for (_, happening) in log {
        match happening {
            Happening::Written { fence, changes } => {
                for change in changes {
                    check_change(*fence, change, &mut marks, &mut found);
                }
            }
            Happening::MarkPassed(what) => found.push(what.clone()),
            _ => {}
        }
    }
    found
}

fn check_change(
    fence: Fence,
    change: &Change,
    marks: &mut BTreeMap<(PartitionId, WindowId), Timestamp>,
    found: &mut Vec<String>,
) {
    let filed: Option<&Task> = match change {
        Change::LowWater(window, at) => {
            marks.insert((fence.partition, *window), *at);
            None
        }
        Change::Accepted(task) | Change::Revived(task) | Change::Refiled { task, .. } => Some(task),
        _ => None,
    };
    let Some(task) = filed.filter(|task| task.parked.is_none()) else { return };
    let mark = marks.get(&(fence.partition, task.window()));
    if mark.is_some_and(|mark| task.wake_at < *mark) {
        found.push(format!("task {} was filed at {:?}, below the mark {mark:?}", task.id, task.wake_at));
    }
}
