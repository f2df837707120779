//! Says when nothing is left to do at this time: for those who set the clock themselves.

use punctual_core::{Now, Timestamp, Wake};
use punctual_store::Store;

use super::Shell;
use crate::view::Quiet;

impl<S: Store> Shell<S> {
    /// Tells those who wait for it, if it is so. Asked after each round, and free when nobody waits.
    pub(super) fn tell_when_quiet(&mut self, now: Now) {
        if self.awaiting_quiet.is_empty() || !self.is_quiet(now) {
            return;
        }
        let quiet = Quiet { now: now.wall, next_at: next_at(now, self.next_wake()) };
        for reply in self.awaiting_quiet.drain(..) {
            reply.send(quiet).ok();
        }
    }

    /// Whoever waits for quiet relies on it that everything is on record, also what workers were given just now.
    pub(super) fn note_for_quiet(&mut self) {
        if !self.awaiting_quiet.is_empty() {
            self.node.note_all_begun();
        }
    }

    fn is_quiet(&self, now: Now) -> bool {
        let is_idle = self.calls.is_empty() && self.commands.is_empty() && self.effects.is_empty();
        let runs_here = || self.node.live_tokens().into_iter().any(|token| !self.workers.have(token));
        is_idle
            && self.full_until.is_none_or(|until| until <= now.boot)
            && !self.next_wake().is_due(now)
            && !runs_here()
    }

    /// Reserves that have waited long enough are no work: they end in real time.
    fn next_wake(&self) -> Wake {
        self.node.wake_at().or(self.overdue.wake())
    }
}

fn next_at(now: Now, wake: Wake) -> Option<Timestamp> {
    wake.delay(now).map(|delay| now.wall + delay)
}
