//! Once all is calm, no attempt is let through while a task of a higher priority waits for nothing but a slot of the
//! same node.
//!
//! What the gate promises: among the offers of the queues that may start something it lets the best through, by
//! priority, then `start_by`, then time. The best task of each queue and priority is always among the offers, however
//! little is kept in memory, so that priority is kept among all that is ready; the finer order only among what is in
//! memory, and that is not judged here.

use std::collections::BTreeMap;

use super::on_time::LATE_MAX;
use super::waiting::Waited;
use crate::coverage::Coverage;
use crate::history::Process;

pub fn check(waited: &[Waited], coverage: &Coverage) -> Vec<String> {
    let mut by_process: BTreeMap<Process, Vec<&Waited>> = BTreeMap::new();
    for start in waited.iter().filter(|start| !start.is_worker) {
        by_process.entry(start.process).or_default().push(start);
    }
    let mut found = Vec::new();
    for starts in by_process.values() {
        for (place, start) in starts.iter().enumerate() {
            let Some(ready) = start.ready else { continue };
            let meanwhile = starts[..place].iter().rev().take_while(|other| other.started > ready + LATE_MAX);
            for other in meanwhile.filter(|other| other.started < start.started) {
                if other.priority > start.priority {
                    found.push(format!(
                        "{:?} began at {:?} while {:?} of a higher priority was ready since {ready:?}",
                        other.token, other.started, start.token
                    ));
                } else {
                    coverage.starts_ahead_of_others.count();
                }
            }
        }
    }
    found
}
