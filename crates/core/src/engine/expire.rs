//! What was not started by its `expires_at` ends, whatever it waits for.
//!
//! - What waits for its time needs nothing for this: its row is filed no later than when it expires
//!   ([`Engine::refile`]), also a retry that would come later, and also the blocked head of a lane.
//! - What is due and kept waiting in memory, behind its lane's head or at the gate, is listed by its deadline.
//! - What is parked, or lies in a paused queue, takes no memory, and so nobody watches its deadline. It ends when it
//!   is next read, and whatever is asked of it is answered as if it had ended in time.

use super::entry::{Phase, Slot};
use super::{After, Engine};
use crate::message::{Effect, Token};
use crate::task::{EndState, Obstacle, Task};
use crate::time::{Now, Timestamp};

impl Engine {
    /// A task that does not run ends as expired.
    pub(super) fn expire(&mut self, now: Now, slot: Slot, out: &mut Vec<Effect>) {
        let last_error = self.entries[slot].task.last_error.clone();
        self.end(now, slot, None, EndState::Expired, last_error, out);
    }

    /// Tasks that were kept waiting for too long.
    pub(super) fn expire_overdue(&mut self, now: Now, out: &mut Vec<Effect>) {
        while let Some(&(_, slot)) = self.deadlines.first().filter(|(at, _)| *at <= now.wall) {
            self.handling = Some(self.entries[slot].task.id.seq);
            self.detach(slot, out);
            self.expire(now, slot, out);
        }
    }

    /// Ends a task that was found to be past its deadline, and says whether it is. What runs is left alone.
    pub(super) fn expire_found(&mut self, now: Now, task: &Task, out: &mut Vec<Effect>) -> bool {
        if !task.has_expired(now.wall) {
            return false;
        }
        let slot = self.entries.find(task.id.seq).unwrap_or_else(|| self.bring_in(task.clone()));
        match self.entries[slot].phase {
            Phase::Running(_) => return false,
            // Another draft of the same request has just met it.
            Phase::Settling(_) => return true,
            Phase::Placed | Phase::Waiting(_) | Phase::Behind | Phase::HeldUp | Phase::Offered => {}
        }
        self.detach(slot, out);
        self.expire(now, slot, out);
        true
    }

    /// A lane's head waits for a person: under its own lane, or, if it can expire, where it does.
    pub(super) fn file_blocked(
        &mut self,
        now: Now,
        slot: Slot,
        lane: Obstacle,
        token: Option<Token>,
        out: &mut Vec<Effect>,
    ) {
        let task = &self.entries[slot].task;
        match task.spec.expires_at.filter(|_| self.holds_lane(task)) {
            Some(expires_at) => {
                self.refile(now, slot, token, expires_at, out);
                self.after.push(After::Blocked(slot));
            }
            None => self.refile_parked(now, slot, lane, token, out),
        }
    }

    /// The row of a blocked head lies where it expires. It still holds its lane.
    pub(super) fn blocked(&mut self, now: Now, slot: Slot, out: &mut Vec<Effect>) {
        let entry = self.settled(slot, out);
        self.accept(now, entry.task, out);
    }

    pub(super) fn first_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Lists a task that is kept waiting and can expire, or takes it off the list.
    pub(super) fn watch_deadline(&mut self, slot: Slot) {
        let entry = &self.entries[slot];
        match entry.task.spec.expires_at {
            Some(at) if entry.is_kept_waiting() => _ = self.deadlines.insert((at, slot)),
            Some(at) => _ = self.deadlines.remove(&(at, slot)),
            None => {}
        }
    }

    /// Said before anything about the task changes: it is listed under the deadline it had.
    pub(super) fn forget_deadline(&mut self, slot: Slot) {
        if let Some(at) = self.entries[slot].task.spec.expires_at {
            self.deadlines.remove(&(at, slot));
        }
    }
}
