//! Tasks of one lane run one at a time, in order of time and then of acceptance.
//!
//! The lane belongs to its head from the moment the head may start until it has ended: also while it waits to be
//! retried. Those that come due meanwhile stand behind it: a few in memory, the rest parked in the store.

use super::Engine;
use super::entry::{Phase, Slot};
use super::park::{Written, head};
use crate::change::Change;
use crate::id::Seq;
use crate::message::{Effect, Token};
use crate::task::{Obstacle, Task};
use crate::time::Now;

impl Engine {
    /// The lane of a task, as the obstacle it can be.
    pub(super) fn lane_of(&self, task: &Task) -> Option<Obstacle> {
        task.lane_id().map(Obstacle::Lane)
    }

    /// A due task wants to be the head of its lane. If it cannot, it stands behind.
    pub(super) fn enter_lane(&mut self, now: Now, lane: Obstacle, slot: Slot, out: &mut Vec<Effect>) -> bool {
        let task = &self.entries[slot].task;
        let seq = task.id.seq;
        // One that was parked may have a predecessor that still lies unread in its window.
        let others_first = self.behind.contains_key(&lane) || task.parked.is_some();
        let hold = self.holds.entry(lane).or_default();
        if hold.holder == head(seq) {
            let held_up = hold.beside > 0;
            if held_up {
                self.set_phase(now, slot, Phase::HeldUp, out);
            }
            return !held_up;
        }
        if hold.is_free() && !hold.parked && !others_first {
            hold.holder = head(seq);
            return true;
        }
        let headless = hold.holder.is_none();
        self.stand_behind(now, lane, slot, out);
        if headless {
            self.next_in_lane(now, lane, out);
        }
        false
    }

    /// Keeps a due task in memory behind its lane's head if it comes before what is parked there, and there
    /// is room; parks the last one otherwise.
    pub(super) fn stand_behind(&mut self, now: Now, lane: Obstacle, slot: Slot, out: &mut Vec<Effect>) {
        let key = self.entries[slot].task.key();
        // Whoever stands behind already comes before what is parked, and so does all that comes before it.
        let last = self.behind.get(&lane).and_then(|behind| behind.last());
        let before_last = last.is_some_and(|&last| key < self.entries[last].task.key());
        if !before_last && !self.comes_before_parked(lane, key) {
            return self.park(now, slot, lane, out);
        }
        let behind = self.behind.entry(lane).or_default();
        let place = behind.partition_point(|&other| self.entries[other].task.key() < key);
        behind.insert(place, slot);
        self.behind_total += 1;
        let limits = &self.settings.limits;
        // The first of a lane without a head is about to be the head: sent away, it would come back at once.
        let is_needed = behind.len() == 1 && self.holds.get(&lane).is_none_or(|hold| hold.holder.is_none());
        let no_room = self.behind_total > limits.window_max && !is_needed;
        let too_many = behind.len() > limits.behind_max || no_room;
        let last = if too_many { behind.pop() } else { None };
        self.behind_total -= usize::from(last.is_some());
        if behind.is_empty() {
            self.behind.remove(&lane);
        }
        if last != Some(slot) {
            self.set_phase(now, slot, Phase::Behind, out);
        }
        if let Some(last) = last {
            self.park(now, last, lane, out);
        }
    }

    /// The end of a task, or its move to another place in the order, is about to be recorded. While it is, its lane
    /// waits: the head's because the head holds it, another's because it is counted.
    pub(super) fn depart(&mut self, task: &Task) {
        let Some(lane) = self.lane_of(task) else { return };
        let hold = self.holds.entry(lane).or_default();
        if hold.holder != head(task.id.seq) {
            hold.departing += 1;
        }
        self.unwrite_holder(task);
    }

    /// A task of the lane has ended: whoever is next may start.
    pub(super) fn leave_lane(&mut self, now: Now, task: &Task, out: &mut Vec<Effect>) {
        if let Some(lane) = self.quit_lane(task) {
            self.next_in_lane(now, lane, out);
        }
    }

    /// A task of the lane has ended, or goes elsewhere. The caller looks for the next.
    pub(super) fn quit_lane(&mut self, task: &Task) -> Option<Obstacle> {
        let lane = self.lane_of(task)?;
        let hold = self.holds.get_mut(&lane)?;
        if hold.holder == head(task.id.seq) {
            hold.holder = None;
        } else {
            hold.departing -= 1;
        }
        Some(lane)
    }

    /// A task is about to be written anew. If it is the head, the store must know; if not, nobody overtakes it
    /// meanwhile.
    pub(super) fn step_aside(&mut self, task: &Task) {
        self.unwrite_false_holder(task);
        self.keep_from_being_overtaken(task);
        self.write_holder(task);
    }

    /// An attempt was adopted. Whoever holds its lane by the store's word keeps it, because the owner who gave it away
    /// did not know of this one; but while this one runs, the head waits, and nobody becomes the next.
    pub(super) fn count_adopted_in(&mut self, task: &Task) {
        let Some(lane) = self.lane_of(task) else { return };
        let hold = self.holds.entry(lane).or_default();
        hold.holder = hold.holder.or(head(task.id.seq));
        hold.beside += u16::from(hold.holder != head(task.id.seq));
    }

    /// An attempt is over. If it was adopted and ran beside the head of its lane, it was counted. The lane goes on when
    /// what follows from it is recorded.
    pub(super) fn count_adopted_out(&mut self, slot: Slot, token: Token) {
        let task = &self.entries[slot].task;
        if token.epoch == self.fence.epoch || self.holds_lane(task) {
            return;
        }
        if let Some(hold) = self.lane_of(task).and_then(|lane| self.holds.get_mut(&lane)) {
            hold.beside -= 1;
        }
    }

    /// Counts a task that is not the head, until it is written and steps back.
    pub(super) fn keep_from_being_overtaken(&mut self, task: &Task) {
        let Some(lane) = self.lane_of(task) else { return };
        let is_head = self.holds_lane(task);
        self.holds.entry(lane).or_default().departing += u32::from(!is_head);
    }

    /// It is written, and takes its place in the lane again.
    pub(super) fn step_back(&mut self, task: &Task) -> Option<Obstacle> {
        let lane = self.lane_of(task)?;
        let is_head = self.holds_lane(task);
        self.holds.get_mut(&lane)?.departing -= u32::from(!is_head);
        Some(lane)
    }

    /// The lane is free: whoever is next becomes its head; nobody is, and it is forgotten. Or nothing runs beside its
    /// head any more, which may have waited for that.
    pub(super) fn next_in_lane(&mut self, now: Now, lane: Obstacle, out: &mut Vec<Effect>) {
        let Some(hold) = self.holds.get(&lane).copied() else { return };
        if let Some(head) = hold.holder.filter(|_| hold.beside == 0) {
            return self.let_head_go_on(now, Seq(head.get()), out);
        }
        if !hold.is_free() || self.leaving {
            return;
        }
        let Some(&next) = self.behind.get(&lane).and_then(|behind| behind.first()) else {
            if hold.being_parked > 0 {
                // It is asked again when they are recorded.
            } else if hold.parked {
                self.unpark(lane, out);
            } else if !self.is_unparking(lane) {
                self.clear(lane);
            }
            return;
        };
        let task = &self.entries[next].task;
        if task.due_at() > now.wall {
            // The wall clock was set back since it was thought to be due: it comes again.
            self.take_from_behind(lane, next);
            self.wait(now, next, out);
            return self.next_in_lane(now, lane, out);
        }
        // One that stood before it may have been changed, and lie in the store again.
        if self.may_be_parked_before(lane, self.entries[next].task.key()) {
            if hold.being_parked == 0 {
                self.unpark(lane, out);
            }
            return;
        }
        // After a restart an earlier task of the lane may still lie unread in its window.
        if task.parked.is_some() && !self.windows.extend_over(now, &self.settings.limits, task) {
            self.unread_lanes.entry(task.window()).or_default().push(lane);
            return;
        }
        self.take_from_behind(lane, next);
        self.holds.entry(lane).or_default().holder = head(self.entries[next].task.id.seq);
        self.dispatch(now, next, out);
    }

    fn let_head_go_on(&mut self, now: Now, head: Seq, out: &mut Vec<Effect>) {
        let slot = self.entries.find(head);
        if let Some(slot) = slot.filter(|&slot| self.entries[slot].phase == Phase::HeldUp) {
            self.dispatch(now, slot, out);
        }
    }

    /// Whether this task is the head of its lane.
    pub(super) fn holds_lane(&self, task: &Task) -> bool {
        let hold = self.lane_of(task).and_then(|lane| self.holds.get(&lane));
        hold.is_some_and(|hold| hold.holder == head(task.id.seq))
    }

    pub(super) fn take_from_behind(&mut self, lane: Obstacle, slot: Slot) {
        let behind = self.behind.get_mut(&lane).expect("a task stands behind in its lane");
        behind.retain(|&other| other != slot);
        self.behind_total -= 1;
        if behind.is_empty() {
            self.behind.remove(&lane);
        }
    }

    /// If this task is the head of its lane, and the store does not know that, it is the head no more.
    pub(super) fn give_lane_back(&mut self, task: &Task) -> Option<Obstacle> {
        let lane = self.lane_of(task)?;
        let hold = self.holds.get_mut(&lane)?;
        if hold.holder != head(task.id.seq) || hold.written == Written::Holder {
            return None;
        }
        hold.holder = None;
        Some(lane)
    }

    /// A waiting task leaves memory undecided. If it was the head, and the store does not know that, those
    /// behind it must leave with it.
    pub(super) fn abandon_lane(&mut self, task: &Task) -> Vec<Slot> {
        let Some(lane) = self.give_lane_back(task) else { return Vec::new() };
        let Some(hold) = self.holds.get(&lane) else { return Vec::new() };
        if hold.is_free() && !hold.parked && hold.written == Written::No {
            self.holds.remove(&lane);
        }
        self.behind.get(&lane).cloned().unwrap_or_default()
    }

    /// The head's row is about to leave its place in the order: the store must know who holds the lane.
    pub(super) fn write_holder(&mut self, task: &Task) {
        let Some(lane) = self.lane_of(task) else { return };
        let hold = self.holds.entry(lane).or_default();
        if hold.holder == head(task.id.seq) && hold.written != Written::Holder {
            hold.written = Written::Holder;
            self.changes.push(Change::Held { obstacle: lane, holder: Some(task.id) });
        }
    }

    /// A task that is not the head is about to be written anew. If the store names it as the head nevertheless, because
    /// the end of its time as that was cut, the next owner must not believe it.
    pub(super) fn unwrite_false_holder(&mut self, task: &Task) {
        let Some(lane) = self.lane_of(task) else { return };
        let Some(hold) = self.holds.get_mut(&lane) else { return };
        if hold.holder != head(task.id.seq) && hold.written == Written::Doubtful {
            hold.written = Written::Stands;
            self.changes.push(Change::Held { obstacle: lane, holder: None });
        }
    }

    /// The head is ending or moving away: in the same breath the store hears that it holds the lane no more.
    fn unwrite_holder(&mut self, task: &Task) {
        let Some(lane) = self.lane_of(task) else { return };
        let Some(hold) = self.holds.get_mut(&lane) else { return };
        if hold.holder == head(task.id.seq) && hold.written == Written::Holder {
            hold.written = Written::Stands;
            self.changes.push(Change::Held { obstacle: lane, holder: None });
        }
    }
}
