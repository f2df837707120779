//! A due task takes its lane, meets its obstacles, is offered to the gate, and starts when the gate lets it.
//! Nothing else starts an attempt.

use std::time::Duration;

use super::entry::{Entry, Phase, Slot};
use super::{After, Engine};
use crate::message::{Attempt, Effect, Offer, Outcome, Token};
use crate::task::{Begun, Obstacle, Target, Task};
use crate::time::{Now, Timestamp};

impl Engine {
    /// A task's time has come.
    pub(super) fn dispatch(&mut self, now: Now, slot: Slot, out: &mut Vec<Effect>) {
        if self.leaving {
            // It was being recorded when the hand-over began: the next owner starts it.
            return;
        }
        let task = &self.entries[slot].task;
        self.handling = Some(task.id.seq);
        if task.due_at() > now.wall {
            // The wall clock was set back since it was thought to be due.
            let task = task.clone();
            let lane = self.give_lane_back(&task);
            self.wait(now, slot, out);
            return lane.into_iter().for_each(|lane| self.next_in_lane(now, lane, out));
        }
        if task.has_expired(now.wall) {
            return self.expire(now, slot, out);
        }
        if let Some(lane) = self.lane_of(task)
            && !self.enter_lane(now, lane, slot, out)
        {
            return;
        }
        if self.waits_for_retry(now, slot, out) {
            return;
        }
        match missing_receiver(&self.entries[slot].task, &self.settings.receivers) {
            Some(obstacle) => self.park(now, slot, obstacle, out),
            None => {
                out.push(Effect::OfferTask(self.offer_of(slot)));
                self.set_phase(now, slot, Phase::Offered, out);
            }
        }
    }

    /// The gate let it through: it starts, or, where a second copy would be worse than a wait, it starts as
    /// soon as that is on record.
    pub(super) fn offer_granted(
        &mut self,
        now: Now,
        offer: Offer,
        time_to_run: Option<Duration>,
        out: &mut Vec<Effect>,
    ) {
        let slot = self.entries.find(offer.key.seq).expect("an offer is withdrawn when its task leaves");
        let entry = &self.entries[slot];
        assert_eq!(entry.phase, Phase::Offered, "task {:?} was granted unoffered", offer.key.seq);
        if entry.task.has_expired(now.wall) || entry.task.due_at() > now.wall {
            out.push(Effect::DeclineOffer(offer));
            return self.dispatch(now, slot, out);
        }
        let waited_for = self.must_be_waited_for(&entry.task);
        // A worker goes on when its owner is gone: the next owner hears of it as soon as it is noted.
        let outlives_owner = waited_for || entry.task.spec.target == Target::Worker;
        let record_first = waited_for || self.may_have_crashed_its_owner(&entry.task);
        self.set_phase(now, slot, Phase::Placed, out);
        let task = &mut self.entries[slot].task;
        task.attempts += 1;
        let token = Token { id: task.id, epoch: self.fence.epoch, attempt: task.attempts };
        let timeout = time_to_run.unwrap_or_else(|| self.timeout_of(slot));
        self.entries[slot].task.begun =
            Some(Begun { epoch: self.fence.epoch, lease: outlives_owner.then_some(timeout) });
        self.lend(slot, token, now.boot + timeout);
        if record_first {
            let change = self.begun_change(slot);
            self.changes.push(change);
            self.after.push(After::Start(slot));
        } else {
            self.has_begun(now, slot, token);
            self.begin(slot, out);
        }
    }

    /// The start is on record: the attempt begins, unless the wall clock was set back meanwhile, the task has expired,
    /// or the partition is being given up.
    pub(super) fn begin_recorded(&mut self, now: Now, slot: Slot, out: &mut Vec<Effect>) {
        let Phase::Running(lease) = self.entries[slot].phase else { return };
        self.leases.stop(lease.timer);
        if self.may_begin(now, lease.token) {
            // Its time counts from here, not from the grant.
            self.lend(slot, lease.token, now.boot + self.time_given(slot));
            return self.begin(slot, out);
        }
        out.push(Effect::StopAttempt(lease.token));
        self.finish(now, slot, lease.token, Outcome::Interrupted, out);
    }

    /// Whether a granted attempt may begin after a while.
    pub fn may_begin(&self, now: Now, token: Token) -> bool {
        let Some(slot) = self.entries.find(token.id.seq) else { return false };
        let Entry { task, .. } = &self.entries[slot];
        let is_due = task.attempt_due_at(task.attempts) <= now.wall;
        self.entries[slot].token() == Some(token) && is_due && !task.has_expired(now.wall) && !self.leaving
    }

    /// The attempt begins.
    pub(super) fn begin(&mut self, slot: Slot, out: &mut Vec<Effect>) {
        let Some(token) = self.entries[slot].token() else { return };
        let task = &self.entries[slot].task;
        let was_due_before = task.attempt_due_at(token.attempt) <= self.owned_since;
        out.push(Effect::StartAttempt(Attempt {
            token,
            spec: task.spec.clone(),
            was: task.state,
            partition: self.fence.partition,
            timeout: self.time_given(slot),
            may_be_repeated: token.attempt > 1 || was_due_before,
        }));
    }

    /// The gate will not let it through for a while.
    pub(super) fn offer_refused(
        &mut self,
        now: Now,
        offer: Offer,
        obstacle: Obstacle,
        out: &mut Vec<Effect>,
    ) {
        let slot = self.entries.find(offer.key.seq).expect("an offer is withdrawn when its task leaves");
        self.note_refused(obstacle);
        self.park(now, slot, obstacle, out);
    }

    /// Takes a task out of whatever it waits in. The caller says what it does next.
    pub(super) fn detach(&mut self, slot: Slot, out: &mut Vec<Effect>) {
        self.forget_deadline(slot);
        match self.entries[slot].phase {
            Phase::Waiting(timer) => {
                self.wheel.stop(timer);
            }
            Phase::Offered => out.push(Effect::WithdrawOffer(self.offer_of(slot))),
            Phase::Behind => {
                let lane = self.lane_of(&self.entries[slot].task).expect("only lanes have a behind");
                self.take_from_behind(lane, slot);
            }
            Phase::Placed | Phase::HeldUp | Phase::Running(_) | Phase::Settling(_) => {}
        }
    }

    fn offer_of(&self, slot: Slot) -> Offer {
        let task = &self.entries[slot].task;
        Offer {
            priority: task.id.priority,
            start_by: task.spec.start_by.unwrap_or(Timestamp::MAX),
            key: task.key(),
            partition: self.fence.partition,
            queue: task.id.queue,
            destination: match &task.spec.target {
                Target::Destination(name) => match Obstacle::destination(name) {
                    Obstacle::Destination(hash) => Some(hash),
                    _ => None,
                },
                _ => None,
            },
            for_worker: task.spec.target == Target::Worker,
        }
    }

    pub(super) fn timeout_of(&self, slot: Slot) -> Duration {
        let task = &self.entries[slot].task;
        task.spec.timeout.unwrap_or(self.settings.queues.get(task.id.queue).timeout)
    }

    /// How long whoever runs it has it: a worker may have asked for another time.
    fn time_given(&self, slot: Slot) -> Duration {
        let recorded = self.entries[slot].task.begun.and_then(|begun| begun.lease);
        recorded.unwrap_or_else(|| self.timeout_of(slot))
    }

    /// Exclusive runs, and tasks that worker machines hold in a lane: a new owner must know of them, and waits for
    /// their report or the end of their lease.
    fn must_be_waited_for(&self, task: &Task) -> bool {
        let pulled_in_lane = task.spec.lane.is_some() && task.spec.target == Target::Worker;
        self.settings.queues.get(task.id.queue).exclusive || pulled_in_lane
    }

    /// Whatever may have been running when an earlier owner failed: the start is recorded first, so that another
    /// crash in it is seen. Nobody waits for it then: it died with its owner.
    fn may_have_crashed_its_owner(&self, task: &Task) -> bool {
        task.crashes > 0 || task.due_at() <= self.owned_since
    }
}

fn missing_receiver(task: &Task, receivers: &rustc_hash::FxHashSet<Obstacle>) -> Option<Obstacle> {
    match &task.spec.target {
        Target::Handler(name) => Some(Obstacle::handler(name)).filter(|handler| !receivers.contains(handler)),
        Target::Destination(_) | Target::Worker => None,
    }
}
