//! An attempt ended: the task is finished, retried later, blocked, or given up.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::entry::{Phase, Slot};
use super::park::head;
use super::{After, Engine};
use crate::change::Change;
use crate::message::{Effect, Outcome, Token};
use crate::queue::OnExhausted;
use crate::task::{End, EndState, WaitState};
use crate::time::{Now, Timestamp};

impl Engine {
    /// The report of an attempt, which may be late, repeated, or about an attempt nobody waits for any more.
    pub(super) fn attempt_ended(&mut self, now: Now, token: Token, outcome: Outcome, out: &mut Vec<Effect>) {
        let Some(slot) = self.entries.find(token.id.seq) else {
            return out.push(Effect::ForgetAttempt(token));
        };
        self.handling = Some(token.id.seq);
        match self.entries[slot].phase {
            Phase::Running(lease) if lease.token == token => {
                self.leases.stop(lease.timer);
                if self.has_crashed_too_often(&self.entries[slot].task) {
                    // We fail whenever we hear this report.
                    return self.set_aside(now, slot, Some(token), out);
                }
                self.finish(now, slot, token, outcome, out);
                self.note_what_lasts(now);
            }
            Phase::Settling(Some(settling)) if settling == token => {}
            _ => out.push(Effect::ForgetAttempt(token)),
        }
    }

    /// Decides what becomes of a task whose attempt is over.
    pub(super) fn finish(
        &mut self,
        now: Now,
        slot: Slot,
        token: Token,
        outcome: Outcome,
        out: &mut Vec<Effect>,
    ) {
        let redeliver_after = self.settings.limits.redeliver_after;
        self.count_adopted_out(slot, token);
        let task = &mut self.entries[slot].task;
        task.begun = None;
        match outcome {
            Outcome::Succeeded(result) => {
                task.crashes = 0;
                task.last_error = None;
                self.end_with(now, slot, Some(token), EndState::Succeeded, result, None, out);
            }
            Outcome::Failed { error, retry_after } | Outcome::Refused { error, retry_after, .. } => {
                task.crashes = 0;
                task.last_error = Some(error);
                self.retry(now, slot, token, retry_after, out);
            }
            Outcome::GaveUp(error) => {
                task.last_error = Some(error);
                self.give_up(now, slot, Some(token), out);
            }
            Outcome::Interrupted => {
                task.forgiven += 1;
                let wake_at = task.wake_at;
                self.postpone(now, slot, token, wake_at, out);
            }
            Outcome::NoReceiver => {
                task.forgiven += 1;
                task.last_error = Some("no node has this handler".into());
                self.postpone(now, slot, token, now.wall + redeliver_after, out);
            }
        }
    }

    fn retry(
        &mut self,
        now: Now,
        slot: Slot,
        token: Token,
        retry_after: Option<Duration>,
        out: &mut Vec<Effect>,
    ) {
        let task = &mut self.entries[slot].task;
        let policy = task.spec.retry.as_ref().unwrap_or(&self.settings.queues.get(task.id.queue).retry);
        match policy.wait_after(task.id, task.counted_attempts(), now.wall.since(task.spec.at)) {
            Some(wait) => {
                task.shorten_error();
                self.waits_as(slot, WaitState::Retrying);
                self.postpone(now, slot, token, now.wall + wait.max(retry_after.unwrap_or_default()), out);
            }
            None => self.give_up(now, slot, Some(token), out),
        }
    }

    /// The task waits for another time, and its lane waits with it.
    fn postpone(&mut self, now: Now, slot: Slot, token: Token, wake_at: Timestamp, out: &mut Vec<Effect>) {
        let task = self.entries[slot].task.clone();
        if task.has_expired(now.wall) {
            return self.end(now, slot, Some(token), EndState::Expired, task.last_error, out);
        }
        if let Some(lane) = self.lane_of(&task).filter(|_| wake_at > task.wake_at && !self.holds_lane(&task))
        {
            // An attempt that was left over: another heads the lane. It keeps its place, or the next would overtake it.
            self.retries_as_head.insert(task.id.seq, wake_at);
            return self.refile_parked(now, slot, lane, Some(token), out);
        }
        self.keep_from_being_overtaken(&task);
        if wake_at != task.wake_at || task.parked.is_some() {
            self.write_holder(&task);
        }
        self.refile(now, slot, Some(token), wake_at, out);
        self.after.push(After::Refiled(slot));
    }

    /// A task that failed while another headed its lane heads it now: it waits for its retry, and its lane with it.
    pub(super) fn waits_for_retry(&mut self, now: Now, slot: Slot, out: &mut Vec<Effect>) -> bool {
        if self.retries_as_head.is_empty() {
            return false;
        }
        let task = self.entries[slot].task.clone();
        let retry_at = self.retries_as_head.remove(&task.id.seq).filter(|retry_at| *retry_at > now.wall);
        if let Some(retry_at) = retry_at {
            self.write_holder(&task);
            self.refile(now, slot, None, retry_at, out);
            self.after.push(After::Refiled(slot));
        }
        retry_at.is_some()
    }

    /// From now on it waits for this. Its row follows.
    pub(super) fn waits_as(&mut self, slot: Slot, state: WaitState) {
        let task = &mut self.entries[slot].task;
        self.was = Some((task.id.seq, std::mem::replace(&mut task.state, state)));
    }

    /// Why it waited, as its row says until it is written next.
    pub(super) fn row_said(&mut self, slot: Slot) -> WaitState {
        let task = &self.entries[slot].task;
        self.was.take_if(|(seq, _)| *seq == task.id.seq).map_or(task.state, |(_, was)| was)
    }

    /// Writes the task's row at a time of its window, no later than when it expires: that is when there is something
    /// to decide about it, wherever it lies by then. The caller says what follows when that is recorded.
    pub(super) fn refile(
        &mut self,
        now: Now,
        slot: Slot,
        token: Option<Token>,
        wake_at: Timestamp,
        out: &mut Vec<Effect>,
    ) {
        self.set_phase(now, slot, Phase::Settling(token), out);
        let was = self.row_said(slot);
        let task = &mut self.entries[slot].task;
        let from = task.place();
        let wake_at = task.spec.expires_at.map_or(wake_at, |expires_at| expires_at.min(wake_at));
        task.wake_at = wake_at.max(self.windows.low_water(task.window()));
        let home = task.parked.take();
        task.begun = None;
        task.revision += 1;
        let task = task.clone();
        self.changes.push(Change::Refiled { from, was, task });
        self.leave_home(home, out);
    }

    /// No attempt is left. A lane waits for a person, unless its queue says that it goes on.
    pub(super) fn give_up(&mut self, now: Now, slot: Slot, token: Option<Token>, out: &mut Vec<Effect>) {
        let task = self.entries[slot].task.clone();
        let blocks = self.settings.queues.get(task.id.queue).on_exhausted == OnExhausted::Block;
        match self.lane_of(&task) {
            // Nobody could have it tried again after its deadline.
            Some(lane) if blocks && !task.has_expired(now.wall) => {
                let hold = self.holds.entry(lane).or_default();
                hold.holder = hold.holder.or(head(task.id.seq));
                self.write_holder(&task);
                self.entries[slot].task.shorten_error();
                self.waits_as(slot, WaitState::Blocked);
                self.file_blocked(now, slot, lane, token, out);
            }
            _ => self.end(now, slot, token, EndState::Dead, task.last_error, out),
        }
    }

    /// This task was running each time its partition failed: it is not tried again by itself.
    pub(super) fn set_aside(&mut self, now: Now, slot: Slot, token: Option<Token>, out: &mut Vec<Effect>) {
        token.into_iter().for_each(|token| self.count_adopted_out(slot, token));
        let task = &mut self.entries[slot].task;
        let error = format!("set aside: it was running at {} failures in a row", task.crashes);
        task.last_error = Some(error.into());
        task.begun = None;
        self.give_up(now, slot, token, out);
    }

    #[expect(clippy::too_many_arguments, reason = "they are the fields of an end")]
    pub(super) fn end(
        &mut self,
        now: Now,
        slot: Slot,
        token: Option<Token>,
        state: EndState,
        error: Option<Arc<str>>,
        out: &mut Vec<Effect>,
    ) {
        self.end_with(now, slot, token, state, Bytes::new(), error, out);
    }

    #[expect(clippy::too_many_arguments, reason = "they are the fields of an end")]
    fn end_with(
        &mut self,
        now: Now,
        slot: Slot,
        token: Option<Token>,
        state: EndState,
        result: Bytes,
        error: Option<Arc<str>>,
        out: &mut Vec<Effect>,
    ) {
        self.set_phase(now, slot, Phase::Settling(token), out);
        // The end has it whole.
        self.entries[slot].task.shorten_error();
        self.entries[slot].task.state = self.row_said(slot);
        let task = self.entries[slot].task.clone();
        let end = End { state, at: now.wall, result, error };
        self.changes.push(Change::Ended { from: task.place(), task: task.clone(), end });
        self.leave_home(task.parked, out);
        self.depart(&task);
        self.after.push(After::Ended(slot));
    }

    /// The end is recorded: the task leaves memory, and the next in its lane may start.
    pub(super) fn ended(&mut self, now: Now, slot: Slot, out: &mut Vec<Effect>) {
        let entry = self.settled(slot, out);
        self.retries_as_head.remove(&entry.task.id.seq);
        self.leave_lane(now, &entry.task, out);
    }
}
