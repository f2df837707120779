//! Cancel, move, change, run now, retry: each has one definite answer.

use super::deferred::Awaited;
use super::entry::{Phase, Slot};
use super::reads::{Pending, ReadClock};
use super::{After, Engine};
use crate::change::Change;
use crate::facts::{Found, Query};
use crate::id::TaskId;
use crate::message::{Amendment, Answer, Ask, AskNo, Effect};
use crate::task::{EndState, EndedTask, Obstacle, Task, WaitState};
use crate::time::{Now, Timestamp};

impl Engine {
    /// A user wants something of one task, which may be in memory or in the store.
    pub(super) fn amend(
        &mut self,
        now: Now,
        no: AskNo,
        id: TaskId,
        amendment: Amendment,
        out: &mut Vec<Effect>,
    ) {
        // An id of another store may share its number with a task of ours.
        match self.entries.find(id.seq).filter(|slot| self.entries[*slot].task.id == id) {
            Some(slot) => self.amend_in_memory(now, no, slot, amendment, out),
            None => {
                let find = self.reads.find(|clock| Pending::Amend(no, id, amendment, clock));
                out.push(Effect::FindTasks(find, vec![Query::Id(id)]));
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a look-up's question and its answer")]
    pub(super) fn task_found(
        &mut self,
        now: Now,
        no: AskNo,
        id: TaskId,
        amendment: Amendment,
        clock: ReadClock,
        found: Vec<Option<Found>>,
        out: &mut Vec<Effect>,
    ) {
        let outdated = self.reads.missed(clock, id.seq);
        self.reads.end(clock);
        if let Some(slot) = self.entries.find(id.seq).filter(|slot| self.entries[*slot].task.id == id) {
            return self.amend_in_memory(now, no, slot, amendment, out);
        }
        if outdated {
            return self.amend(now, no, id, amendment, out);
        }
        match found.into_iter().next().flatten() {
            None => out.push(Effect::Answer(no, Answer::NotFound)),
            Some(Found::Forgotten { state, .. }) => out.push(Effect::Answer(no, Answer::Ended(state))),
            Some(Found::Ended(ended)) => self.amend_ended(now, no, ended, amendment, out),
            Some(Found::Live(task)) => match unchanged(now, &task, &amendment) {
                Some(answer) => out.push(Effect::Answer(no, answer)),
                None => {
                    let slot = self.bring_in(task);
                    self.amend_in_memory(now, no, slot, amendment, out);
                }
            },
        }
    }

    fn amend_in_memory(
        &mut self,
        now: Now,
        no: AskNo,
        slot: Slot,
        amendment: Amendment,
        out: &mut Vec<Effect>,
    ) {
        let entry = &self.entries[slot];
        match entry.phase {
            Phase::Running(lease) => {
                return out.push(Effect::Answer(no, Answer::Running { attempt: lease.token.attempt }));
            }
            Phase::Settling(_) => {
                let id = entry.task.id;
                return self.deferred.wait(Awaited::Task(id.seq), no, Ask::Amend(id, amendment));
            }
            Phase::Placed | Phase::Waiting(_) | Phase::Behind | Phase::HeldUp | Phase::Offered => {}
        }
        if entry.task.has_expired(now.wall) {
            self.detach(slot, out);
            self.expire(now, slot, out);
            return self.after.push(After::Answer(no, Answer::Ended(EndState::Expired)));
        }
        if let Some(answer) = unchanged(now, &entry.task, &amendment) {
            return out.push(Effect::Answer(no, answer));
        }
        self.detach(slot, out);
        if amendment == Amendment::Cancel {
            self.end(now, slot, None, EndState::Cancelled, None, out);
            return self.after.push(After::Answer(no, Answer::Cancelled));
        }
        self.amend_waiting(now, slot, amendment, out);
        let task = Box::new(self.entries[slot].task.clone());
        self.after.push(After::Answer(no, Answer::Amended(task)));
    }

    /// Changes a task that waits, and writes its row where it now belongs.
    fn amend_waiting(&mut self, now: Now, slot: Slot, amendment: Amendment, out: &mut Vec<Effect>) {
        let task = &mut self.entries[slot].task;
        if !matches!(amendment, Amendment::Replace { .. }) {
            self.retries_as_head.remove(&task.id.seq);
        }
        match amendment {
            Amendment::Move(at) => {
                let mut spec = (*task.spec).clone();
                spec.first_at = spec.first_at.or(Some(spec.at));
                spec.at = at;
                task.spec = spec.into();
                self.waits_as(slot, WaitState::Scheduled);
                self.refile_elsewhere(now, slot, at, out);
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
            Amendment::Replace { spec, .. } => {
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
    fn amend_ended(
        &mut self,
        now: Now,
        no: AskNo,
        ended: EndedTask,
        amendment: Amendment,
        out: &mut Vec<Effect>,
    ) {
        let EndedTask { mut task, end } = ended;
        if amendment != Amendment::Retry || end.state != EndState::Dead {
            return out.push(Effect::Answer(no, Answer::Ended(end.state)));
        }
        task.state = WaitState::Scheduled;
        task.start_afresh();
        task.begun = None;
        task.parked = None;
        task.revision += 1;
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
fn unchanged(now: Now, task: &Task, amendment: &Amendment) -> Option<Answer> {
    if task.has_expired(now.wall) {
        return None;
    }
    match amendment {
        Amendment::Replace { if_revision: Some(expected), .. } if task.revision != *expected => {
            Some(Answer::Outdated { revision: task.revision })
        }
        Amendment::Expire => Some(Answer::Amended(Box::new(task.clone()))),
        _ => None,
    }
}
