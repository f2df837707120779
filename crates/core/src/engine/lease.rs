//! Whoever runs an attempt holds a lease; it can be prolonged, and when it ends nobody waits any longer.

use std::time::Duration;

use super::entry::{Lease, Phase, Slot};
use super::{After, Engine, on_wheel};
use crate::message::{Answer, AskNo, Effect, Outcome, Token};
use crate::task::{Begun, Target};
use crate::time::{BootTime, Now};

impl Engine {
    /// A live attempt asks for more time, counted from now. It is told that it has it when the next owner would know,
    /// also if another has asked for as much just before and that is still being recorded.
    pub(super) fn touch(&mut self, now: Now, no: AskNo, token: Token, more: Duration, out: &mut Vec<Effect>) {
        if self.running(token.id.seq) != Some(token) {
            return out.push(Effect::Answer(no, Answer::Late));
        }
        self.lease_touched(now, token, more);
        self.note_now(token);
        let nothing_is_left = self.changes.is_empty() && self.began.is_empty();
        match &mut self.in_flight {
            None if nothing_is_left => out.push(Effect::Answer(no, Answer::Prolonged)),
            Some(in_flight) if nothing_is_left => in_flight.push(After::Answer(no, Answer::Prolonged)),
            _ => self.after.push(After::Answer(no, Answer::Prolonged)),
        }
    }

    /// A live attempt has so much time from now on.
    pub(super) fn lease_touched(&mut self, now: Now, token: Token, more: Duration) {
        let Some(slot) = self.entries.find(token.id.seq) else { return };
        let Phase::Running(lease) = self.entries[slot].phase else { return };
        if lease.token == token {
            self.leases.stop(lease.timer);
            self.lend(slot, token, now.boot + more);
            self.note_longer_lease(slot, more);
        }
    }

    /// A new owner gives an attempt as much time as is on record, from when it took over. So only more need be noted.
    fn note_longer_lease(&mut self, slot: Slot, more: Duration) {
        if let Some(Begun { lease: Some(recorded), .. }) = &mut self.entries[slot].task.begun
            && more > *recorded
        {
            *recorded = more;
            self.began.push(slot);
        }
    }

    /// Attempts whose time is up are stopped, and count as failed. One that an earlier owner left behind
    /// is tried again at once: its holder is gone.
    pub(super) fn expire_leases(&mut self, now: Now, out: &mut Vec<Effect>) {
        let mut due = std::mem::take(&mut self.due);
        self.leases.advance(on_wheel(now.boot), &mut due);
        for slot in due.drain(..) {
            let Phase::Running(Lease { token, .. }) = self.entries[slot].phase else { continue };
            if self.is_about_to_start(slot) {
                self.lend(slot, token, now.boot + self.timeout_of(slot));
                continue;
            }
            self.handling = Some(token.id.seq);
            out.push(Effect::StopAttempt(token));
            if token.epoch != self.fence.epoch {
                self.lost(now, slot, token, out);
                continue;
            }
            self.finish(now, slot, token, too_late(), out);
        }
        self.handling = None;
        self.due = due;
    }

    /// Its start is not on record yet, so that it has not begun, however long that takes: its time counts from then.
    fn is_about_to_start(&self, slot: Slot) -> bool {
        let starts = |after: &After| matches!(after, After::Start(starting) if *starting == slot);
        self.in_flight.iter().flatten().chain(&self.after).any(starts)
    }

    /// An attempt of an earlier ownership was never reported on. It may be what brought its owner down; but not if it
    /// ran at a worker.
    fn lost(&mut self, now: Now, slot: Slot, token: Token, out: &mut Vec<Effect>) {
        let task = &mut self.entries[slot].task;
        if task.spec.target == Target::Worker {
            return self.finish(now, slot, token, too_late(), out);
        }
        task.crashes = task.crashes.saturating_add(1);
        if self.has_crashed_too_often(&self.entries[slot].task) {
            self.set_aside(now, slot, Some(token), out);
        } else {
            self.finish(now, slot, token, Outcome::Interrupted, out);
        }
    }

    /// How much of a lease is left.
    pub(super) fn left(lease: Lease, now: BootTime) -> Duration {
        lease.until.since(now)
    }
}

fn too_late() -> Outcome {
    Outcome::Failed { error: "the attempt took too long".into(), retry_after: None }
}
