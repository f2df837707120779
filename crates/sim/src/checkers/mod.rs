//! One checker per promise. Each reads the history, and nothing else.

mod amended_as_answered;
mod bounded;
mod by_priority;
mod cancel_wins;
mod clocks;
mod expires_in_time;
mod fences_grow;
mod finished_once;
mod in_order;
mod kept;
mod limits_hold;
mod low_water;
mod never_early;
mod never_lost;
mod never_panics;
mod on_time;
mod one_at_a_time;
mod results_kept;
mod retried_as_asked;
mod same_is_same;
mod served_again;
mod settled_as_answered;
mod view;
mod waiting;

use crate::coverage::Coverage;
use crate::history::{Happening, Moment};

pub use view::View;

/// What happened, in order.
pub type Log = [(Moment, Happening)];

/// A promise that was not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which checker says so.
    pub promise: &'static str,
    /// What happened.
    pub what: String,
}

impl Violation {
    /// A violation of that promise.
    pub fn new(promise: &'static str, what: String) -> Violation {
        Violation { promise, what }
    }
}

/// Every checker's verdict on a run.
pub fn check_all(log: &Log, coverage: &Coverage) -> Vec<Violation> {
    let view = View::of(log);
    let mut violations = Vec::new();
    let mut say = |promise: &'static str, found: Vec<String>| {
        violations.extend(found.into_iter().map(|what| Violation::new(promise, what)));
    };
    say("never_lost", never_lost::check(&view));
    say("never_early", never_early::check(log));
    say("one_at_a_time", one_at_a_time::check(&view));
    say("in_order", in_order::check(&view));
    say("finished_once", finished_once::check(log));
    say("cancel_wins", cancel_wins::check(log, &view));
    say("fences_grow", fences_grow::check(log));
    say("low_water", low_water::check(log));
    say("same_is_same", same_is_same::check(log));
    say("kept", kept::check(log));
    say("served_again", served_again::check(log));
    say("bounded", bounded::check(log));
    say("limits_hold", limits_hold::check(log, coverage));
    say("retried_as_asked", retried_as_asked::check(log, coverage));
    say("amended_as_answered", amended_as_answered::check(log, coverage));
    say("expires_in_time", expires_in_time::check(log, &view, coverage));
    say("results_kept", results_kept::check(log, coverage));
    say("settled_as_answered", settled_as_answered::check(log));
    let waited = waiting::of(log, &view);
    say("on_time", on_time::check(log, &waited, coverage));
    say("by_priority", by_priority::check(&waited, coverage));
    say("never_panics", never_panics::check(log));
    violations
}
