//! A task whose row is written waits for its time: in memory when that is near, in the store otherwise.

use std::time::Duration;

use super::deferred::Awaited;
use super::entry::{Entry, Lease, Phase, Slot};
use super::{Engine, on_wheel};
use crate::message::{Effect, Token};
use crate::task::{Obstacle, RowKey, Task};
use crate::time::{BootTime, Now};

impl Engine {
    /// A task's row lies at its place in a window.
    pub(super) fn accept(&mut self, now: Now, task: Task, out: &mut Vec<Effect>) {
        if self.entries.find(task.id.seq).is_some() {
            return;
        }
        if let Some(task) = self.file(now, task, out) {
            let slot = self.entries.insert(task);
            self.wait(now, slot, out);
        }
    }

    /// A task that was read from its window. One that was running when its owner failed is watched:
    /// if that happens again and again, it may be the cause.
    pub(super) fn hold_loaded(&mut self, now: Now, mut task: Task, out: &mut Vec<Effect>) {
        self.handling = Some(task.id.seq);
        let set_aside = self.note_crash(&mut task);
        let slot = self.entries.insert(task);
        if set_aside {
            self.set_aside(now, slot, None, out);
        } else {
            self.wait(now, slot, out);
        }
    }

    /// Counts a crash if this task was running when its partition failed, and says whether that is enough.
    pub(super) fn note_crash(&mut self, task: &mut Task) -> bool {
        let was_running = task.begun.is_some_and(|begun| begun.epoch < self.fence.epoch);
        if !was_running && !self.suspects.contains_key(&task.id.seq) {
            return false;
        }
        task.begun = None;
        self.count_crash(task);
        self.has_crashed_too_often(task)
    }

    /// One failure more than is on record. Several may have come before anything could be recorded.
    fn count_crash(&self, task: &mut Task) {
        let seen_here = self.suspects.get(&task.id.seq).copied().unwrap_or(0);
        task.crashes = task.crashes.saturating_add(1).max(seen_here);
    }

    pub(super) fn has_crashed_too_often(&self, task: &Task) -> bool {
        task.crashes >= self.settings.limits.crashes_max
    }

    /// A task in memory waits for its time, which may have come. Whoever comes before it in its lane may be due too,
    /// and wait for the wheel's next tick: then it waits for that as well.
    pub(super) fn wait(&mut self, now: Now, slot: Slot, out: &mut Vec<Effect>) {
        let task = &self.entries[slot].task;
        let due_at = task.due_at();
        if due_at <= now.wall && (task.spec.lane.is_none() || self.wheel.has_fired_until(due_at)) {
            self.dispatch(now, slot, out);
        } else {
            let timer = self.wheel.start(due_at, slot);
            self.set_phase(now, slot, Phase::Waiting(timer), out);
        }
    }

    /// The wall clock was set back: what was due and has not started waits for its time again. It holds no lane
    /// meanwhile that the store does not know of, so that what is due before it goes before it.
    pub(super) fn wait_again(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.leaving {
            return;
        }
        let early = |entry: &Entry| entry.is_kept_waiting() && entry.task.due_at() > now.wall;
        let slots: Vec<Slot> =
            self.entries.iter().filter(|(_, entry)| early(entry)).map(|(slot, _)| slot).collect();
        let mut lanes = Vec::new();
        for slot in slots {
            self.detach(slot, out);
            let task = self.entries[slot].task.clone();
            lanes.extend(self.give_lane_back(&task));
            self.wait(now, slot, out);
        }
        for lane in lanes {
            self.next_in_lane(now, lane, out);
        }
    }

    /// The row lies at its new place: it waits there, or the store keeps it.
    pub(super) fn refiled(&mut self, now: Now, slot: Slot, out: &mut Vec<Effect>) {
        let entry = self.settled(slot, out);
        let lane = self.step_back(&entry.task);
        if entry.task.due_at() > now.wall {
            // A retry's lane is held by the store's word. Otherwise the wall clock was set back.
            self.give_lane_back(&entry.task);
        }
        let (key, is_head) = (entry.task.key(), self.holds_lane(&entry.task));
        self.accept(now, entry.task, out);
        let Some(lane) = lane else { return };
        if !is_head && self.entries.find(key.seq).is_none() {
            self.drop_those_behind(lane, key, out);
        }
        self.next_in_lane(now, lane, out);
    }

    /// A task was left to the store, because its queue is paused: those that come after it in its lane leave memory
    /// too, and come back in order.
    fn drop_those_behind(&mut self, lane: Obstacle, key: RowKey, out: &mut Vec<Effect>) {
        for behind in self.behind.get(&lane).cloned().unwrap_or_default() {
            if self.entries[behind].task.key() > key {
                self.drop_from_memory(behind, out);
            }
        }
    }

    /// A user gave the task another time: whoever is next in its lane may go first. That may be the task itself, if it
    /// was moved to an earlier time and that took long to record.
    pub(super) fn moved(&mut self, now: Now, slot: Slot, out: &mut Vec<Effect>) {
        let entry = self.settled(slot, out);
        let lane = self.quit_lane(&entry.task);
        self.accept(now, entry.task, out);
        if let Some(lane) = lane {
            self.next_in_lane(now, lane, out);
        }
    }

    /// What was being recorded about a task is recorded: it leaves memory, or is placed anew.
    pub(super) fn settled(&mut self, slot: Slot, out: &mut Vec<Effect>) -> Entry {
        let entry = self.entries.remove(slot);
        self.reads.touch(entry.task.id.seq);
        self.suspects.remove(&entry.task.id.seq);
        self.deferred.settle(Awaited::Task(entry.task.id.seq));
        if let Phase::Settling(Some(token)) = entry.phase {
            out.push(Effect::ForgetAttempt(token));
        }
        entry
    }

    /// Tasks whose time has come, in the order of their time.
    pub(super) fn wake_due_tasks(&mut self, now: Now, out: &mut Vec<Effect>) {
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(now.wall, &mut due);
        due.sort_unstable_by_key(|&slot| self.entries[slot].task.key());
        for slot in due.drain(..) {
            self.dispatch(now, slot, out);
        }
        self.handling = None;
        self.due = due;
    }

    /// An attempt of an earlier ownership may still be at work: wait for its report or for its lease to end. That
    /// report may be what the partition failed at, so failures are counted before it is heard again.
    pub(super) fn adopt(
        &mut self,
        now: Now,
        token: Token,
        mut task: Task,
        lease: Duration,
        out: &mut Vec<Effect>,
    ) {
        if self.entries.find(task.id.seq).is_some() {
            return;
        }
        if self.suspects.contains_key(&task.id.seq) {
            self.count_crash(&mut task);
        }
        self.count_adopted_in(&task);
        if let Some(obstacle) = task.parked {
            self.unparking.entry(obstacle).or_default().in_memory += 1;
        }
        let slot = self.entries.insert(task);
        self.lend(slot, token, now.boot + lease);
        out.push(Effect::AdoptAttempt(token));
    }

    /// Whoever runs the attempt has it until then.
    pub(super) fn lend(&mut self, slot: Slot, token: Token, until: BootTime) {
        let timer = self.leases.start(on_wheel(until), slot);
        self.entries[slot].phase = Phase::Running(Lease { token, until, timer });
    }
}
