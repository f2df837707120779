//! Tasks of one lane run one at a time, and a task has one attempt at a time, as far as anybody can know: an attempt
//! of a process that could not be heard of, or that ignored its deadline, may still be at work.

use std::time::Duration;

use super::View;
use super::view::AttemptView;

/// How long attempts may take in these runs.
const TIMEOUT: Duration = Duration::from_secs(5);

pub fn check(view: &View) -> Vec<String> {
    let mut found = Vec::new();
    for (place, later) in view.attempts.iter().enumerate() {
        for earlier in &view.attempts[..place] {
            let rivals = earlier.token.id == later.token.id
                || (earlier.lane.is_some()
                    && earlier.lane == later.lane
                    && earlier.token.id.queue == later.token.id.queue);
            let over = earlier.stopped.is_some_and(|stopped| stopped < later.started);
            if rivals && !over && !excused(view, earlier, later) {
                found.push(format!("{:?} started while {:?} was running", later.token, earlier.token));
            }
        }
    }
    found
}

fn excused(view: &View, earlier: &AttemptView, later: &AttemptView) -> bool {
    let overdue = later.started.at.since(earlier.started.at) >= TIMEOUT;
    let unheard =
        view.silenced.iter().any(|(at, process)| *process == earlier.process && *at < later.started);
    overdue || unheard
}
