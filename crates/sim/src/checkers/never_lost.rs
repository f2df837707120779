//! Nothing acknowledged is lost: once faults stop, every task that was created comes to its end.

use super::View;

pub fn check(view: &View) -> Vec<String> {
    let lost = view.tasks.iter().filter(|(_, task)| task.end.is_none());
    lost.map(|(id, task)| format!("task {id} due {:?} was acknowledged and has no end", task.spec.at))
        .collect()
}
