//! Tasks of one lane run one at a time, and a task has one attempt at a time, as far as anybody can know: an attempt
//! of a process that could not be heard of, or that ignored its deadline, may still be at work.
//!
//! A worker goes on when the process that gave it its task has gone. What it holds in a lane, or holds on record, is its
//! own until its time is over, whatever becomes of that process.

use super::View;
use super::view::AttemptView;

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
    let overdue = later.started.at >= earlier.until;
    let is_on_record = earlier.leased.is_some_and(|leased| leased < later.started);
    let is_waited_for = earlier.is_worker && (earlier.lane.is_some() || is_on_record);
    let unheard =
        view.silenced.iter().any(|(at, process)| *process == earlier.process && *at < later.started);
    overdue || (unheard && !is_waited_for)
}
