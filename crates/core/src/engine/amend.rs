//! Cancel, move, change, run now, retry: each has one definite answer.

use super::deferred::Awaited;
use super::entry::{Phase, Slot};
use super::reads::{Pending, ReadClock};
use super::{After, Engine};
use crate::change::Change;
use crate::facts::{Found, Query};
use crate::message::{Amend, Amendment, Answer, Ask, AskNo, Effect};
use crate::task::{EndState, EndedTask, Obstacle, Spec, Task, WaitState};
use crate::time::{Now, Timestamp};

impl Engine {
    /// A user wants something of one task, which may be in memory or in the store.
    pub(super) fn amend(&mut self, now: Now, no: AskNo, amend: Amend, out: &mut Vec<Effect>) {
        let id = amend.id;
        // An id of another store may share its number with a task of ours.
        match self.entries.find(id.seq).filter(|slot| self.entries[*slot].task.id == id) {
            Some(slot) => self.amend_in_memory(now, no, slot, amend, out),
            None => {
                let find = self.reads.find(|clock| Pending::Amend(no, amend, clock));
                out.push(Effect::FindTasks(find, vec![Query::Id(id)]));
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a look-up's question and its answer")]
    pub(super) fn task_found(
        &mut self,
        now: Now,
        no: AskNo,
        amend: Amend,
        clock: ReadClock,
        found: Vec<Option<Found>>,
        out: &mut Vec<Effect>,
    ) {
        let id = amend.id;
        let outdated = self.reads.missed(clock, id.seq);
        self.reads.end(clock);
        if let Some(slot) = self.entries.find(id.seq).filter(|slot| self.entries[*slot].task.id == id) {
            return self.amend_in_memory(now, no, slot, amend, out);
        }
        if outdated {
            return self.amend(now, no, amend, out);
        }
        match found.into_iter().next().flatten() {
            None => out.push(Effect::Answer(no, Answer::NotFound)),
            Some(Found::Forgotten { state, .. }) => out.push(Effect::Answer(no, Answer::Ended(state))),
            Some(Found::Ended(ended)) => self.amend_ended(now, no, ended, &amend, out),
            Some(Found::Live(task)) => match unchanged(now, &task, &amend) {
                Some(answer) => out.push(Effect::Answer(no, answer)),
                None => {
                    let slot = self.bring_in(task);
                    self.amend_in_memory(now, no, slot, amend, out);
                }
            },
        }
    }

    fn amend_in_memory(&mut self, now: Now, no: AskNo, slot: Slot, amend: Amend, out: &mut Vec<Effect>) {
        let entry = &self.entries[slot];
        match entry.phase {
            Phase::Running(lease) => {
                let running = Answer::Running { attempt: lease.token.attempt };
                let answer = amend.outdated(entry.task.revision).unwrap_or(running);
                return out.push(Effect::Answer(no, answer));
            }
            Phase::Settling(_) => {
                return self.deferred.wait(Awaited::Task(amend.id.seq), no, Ask::Amend(amend));
            }
            Phase::Placed | Phase::Waiting(_) | Phase::Behind | Phase::HeldUp | Phase::Offered => {}
        }
        if entry.task.has_expired(now.wall) {
            let ended = Answer::Ended(EndState::Expired);
            // As if it had ended before it was asked for.
            let answer = amend.outdated(entry.task.revision + 1).unwrap_or(ended);
            self.detach(slot, out);
            self.expire(now, slot, out);
            return self.after.push(After::Answer(no, answer));
        }
        if let Some(answer) = unchanged(now, &entry.task, &amend) {
            return out.push(Effect::Answer(no, answer));
        }
        self.detach(slot, out);
        if amend.amendment == Amendment::Cancel {
            self.end(now, slot, None, EndState::Cancelled, None, out);
            return self.after.push(After::Answer(no, Answer::Cancelled));
        }
        self.amend_waiting(now, slot, amend.amendment, out);
        let task = Box::new(self.entries[slot].task.clone());
        self.after.push(After::Answer(no, Answer::Amended(task)));
    }

    /// Changes a task that waits, and writes its row where it now belongs.
    fn amend_waiting(&mut self, now: Now, slot: Slot, amendment: Amendment, out: &mut Vec<Effect>) {
        let task = &mut self.entries[slot].task;
        if !matches!(amendment, Amendment::Replace { at: None, .. }) {
            self.retries_as_head.remove(&task.id.seq);
        }
        match amendment {
            Amendment::Move(at) => {
                let spec = Spec::clone(&task.spec);
                self.move_waiting(now, slot, spec, at, out);
            }
            Amendment::Replace { spec, at: Some(at) } => {
                self.move_waiting(now, slot, Spec::clone(&spec), at, out);
            }
            Amendment::Run => {
                if task.state == WaitState::Blocked {
                    self.waits_as(slot, WaitState::Retrying);
                }
                self.refile_as_due(now, slot, out);
            }
            Amendment::Retry | Amendment::Cancel | Amendment::Expire => {
                task.start_afresh();
                self.waits_as(slot, WaitState::Scheduled);
                self.refile_as_due(now, slot, out);
            }
            Amendment::Replace { spec, at: None } => {
                let retargeted = task.spec.target != spec.target;
                task.spec = spec;
                let task = task.clone();
                let lane = self.lane_of(&task).filter(|_| self.holds_lane(&task));
                match (task.parked, lane) {
                    (_, Some(lane)) if task.state == WaitState::Blocked => {
                        self.file_blocked(now, slot, lane, None, out);
                    }
                    // Nobody would look for the head of a lane among those that wait for it.
                    (Some(Obstacle::Lane(_)), Some(_)) | (None, _) => {
                        self.refile_in_lane(now, slot, task.wake_at, out);
                    }
                    // Whoever was to run it stood in its way, and is not to run it any more.
                    (Some(Obstacle::Handler(_) | Obstacle::Destination(_)), _) if retargeted => {
                        self.refile_in_lane(now, slot, task.wake_at, out);
                    }
                    (Some(obstacle), _) => self.refile_parked(now, slot, obstacle, None, out),
                }
            }
        }
    }

    /// It has another time, and may have another spec with it.
    fn move_waiting(&mut self, now: Now, slot: Slot, mut spec: Spec, at: Timestamp, out: &mut Vec<Effect>) {
        let task = &mut self.entries[slot].task;
        spec.first_at = task.spec.first_at.or(Some(task.spec.at));
        spec.at = at;
        task.spec = spec.into();
        self.waits_as(slot, WaitState::Scheduled);
        self.refile_elsewhere(now, slot, at, out);
    }

    /// It is due now. What is due already keeps its place in the order: behind the head of its lane that is where it
    /// lies, because its window's low-water mark may have passed it. So does what a clock that was set back says is not
    /// due yet, if there is no earlier place for it in its window.
    fn refile_as_due(&mut self, now: Now, slot: Slot, out: &mut Vec<Effect>) {
        let task = self.entries[slot].task.clone();
        let earliest = now.wall.max(self.windows.low_water(task.window()));
        match task.parked {
            Some(lane @ Obstacle::Lane(_)) if task.wake_at <= earliest && !self.holds_lane(&task) => {
                self.refile_parked(now, slot, lane, None, out);
            }
            _ => self.refile_in_lane(now, slot, task.wake_at.min(now.wall), out),
        }
    }

    /// Another time, and another place in the order: its lane may go on without it.
    pub(super) fn refile_elsewhere(
        &mut self,
        now: Now,
        slot: Slot,
        wake_at: Timestamp,
        out: &mut Vec<Effect>,
    ) {
        let task = self.entries[slot].task.clone();
        self.unwrite_false_holder(&task);
        self.refile(now, slot, None, wake_at, out);
        self.depart(&task);
        self.after.push(After::Moved(slot));
    }

    /// If it is the head of its lane, it stays that.
    fn refile_in_lane(&mut self, now: Now, slot: Slot, wake_at: Timestamp, out: &mut Vec<Effect>) {
        let task = self.entries[slot].task.clone();
        self.step_aside(&task);
        self.refile(now, slot, None, wake_at, out);
        self.after.push(After::Refiled(slot));
    }

    /// What is dead can be tried again; what ended otherwise has ended.
    fn amend_ended(&mut self, now: Now, no: AskNo, ended: EndedTask, amend: &Amend, out: &mut Vec<Effect>) {
        let revision = ended.revision();
        if let Some(answer) = amend.outdated(revision) {
            return out.push(Effect::Answer(no, answer));
        }
        let EndedTask { mut task, end } = ended;
        if amend.amendment != Amendment::Retry || end.state != EndState::Dead {
            return out.push(Effect::Answer(no, Answer::Ended(end.state)));
        }
        task.state = WaitState::Scheduled;
        task.start_afresh();
        task.begun = None;
        task.parked = None;
        task.revision = revision + 1;
        task.wake_at = now.wall.max(self.windows.low_water(task.window()));
        self.step_aside(&task);
        self.changes.push(Change::Revived(task.clone()));
        let slot = self.entries.insert(task.clone());
        self.entries[slot].phase = Phase::Settling(None);
        self.after.push(After::Refiled(slot));
        self.after.push(After::Answer(no, Answer::Amended(Box::new(task))));
    }

    /// A task from the store is in memory from now on, so that no load can bring it in a second time.
    pub(super) fn bring_in(&mut self, task: Task) -> Slot {
        self.windows.forget_arrival(&task);
        if let Some(obstacle) = task.parked {
            self.unparking.entry(obstacle).or_default().in_memory += 1;
        }
        self.entries.insert(task)
    }
}

/// The answer to a request that changes nothing of a task that waits. Given before a task of the store is brought in:
/// once in memory, it must be written, or whoever was about to load it would miss it.
fn unchanged(now: Now, task: &Task, amend: &Amend) -> Option<Answer> {
    if task.has_expired(now.wall) {
        return None;
    }
    let as_it_is = || (amend.amendment == Amendment::Expire).then(|| Answer::Amended(Box::new(task.clone())));
    amend.outdated(task.revision).or_else(as_it_is)
}
