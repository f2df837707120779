//! Tasks of a lane that were created in the order of their times run in that order, across retries, crashes and
//! changes of owner. Those that a user moved, replaced or ran out of turn make no promise.

use std::collections::BTreeMap;

use punctual_core::{LaneId, TaskId};

use super::View;
use super::view::TaskView;
use crate::history::{Amending, Moment};

pub fn check(view: &View) -> Vec<String> {
    let mut lanes: BTreeMap<LaneId, Vec<(&TaskId, &TaskView)>> = BTreeMap::new();
    for (id, task) in &view.tasks {
        let meddled = task.replaced || task.amendings.iter().any(|what| *what != Amending::Cancel);
        if let Some(lane) = task.spec.lane_id(id.queue).filter(|_| !meddled) {
            lanes.entry(lane).or_default().push((id, task));
        }
    }
    let starts = starts(view);
    lanes.values().flat_map(|tasks| check_lane(tasks, &starts)).collect()
}

fn check_lane(tasks: &[(&TaskId, &TaskView)], starts: &BTreeMap<TaskId, (Moment, Moment)>) -> Vec<String> {
    let mut found = Vec::new();
    for (first_id, first) in tasks {
        for (second_id, second) in tasks {
            let in_order = first.answered < second.called && first.spec.at <= second.spec.at;
            let (Some((_, first_last)), Some((second_first, _))) =
                (starts.get(first_id), starts.get(second_id))
            else {
                continue;
            };
            if in_order && first_last > second_first {
                found.push(format!("{second_id} started before {first_id} had its last attempt"));
            }
        }
    }
    found
}

/// The first and the last start of each task.
fn starts(view: &View) -> BTreeMap<TaskId, (Moment, Moment)> {
    let mut starts = BTreeMap::new();
    for attempt in &view.attempts {
        let entry = starts.entry(attempt.token.id).or_insert((attempt.started, attempt.started));
        entry.1 = attempt.started;
    }
    starts
}
