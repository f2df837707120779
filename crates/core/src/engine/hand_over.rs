//! A partition changes hands: what still runs is put on record before it goes, and waited for after it came.

use std::collections::VecDeque;
use std::sync::Arc;

use super::entry::{Entries, Phase, Slot};
use super::park::{Hold, Written, head};
use super::window::{Window, Windows};
use super::{Engine, Settings, on_wheel};
use crate::id::{Fence, Seq};
use crate::message::{Answer, Effect, Inheritance, Token};
use crate::task::{Begun, Obstacle, RowKey, Target};
use crate::time::Now;
use crate::wheel::Wheel;

impl Engine {
    /// Begins an ownership from what the store knows, and nothing else.
    pub fn take_over(
        now: Now,
        fence: Fence,
        settings: Arc<Settings>,
        inheritance: Inheritance,
        out: &mut Vec<Effect>,
    ) -> Engine {
        let mut engine = Engine::empty(now, fence, settings);
        for standing in &inheritance.standing.windows {
            let low_water = standing.low_water;
            let mut window = Window::new(RowKey::at(low_water), low_water, standing.first);
            window.extend(window.horizon(now, &engine.settings.limits));
            engine.windows.insert(standing.window, window);
        }
        engine.inherit_holds(&inheritance);
        engine.suspects = inheritance.suspects;
        // What is on record first: its owner knew who heads the lane, and an attempt of our own may be older.
        for task in inheritance.standing.leased {
            if let Some(Begun { epoch, lease: Some(lease) }) = task.begun {
                let token = Token { id: task.id, epoch, attempt: task.attempts };
                engine.adopt(now, token, task, lease, out);
            }
        }
        for (token, mut task) in inheritance.live {
            // That it began may not have been recorded.
            task.attempts = task.attempts.max(token.attempt);
            let given = task.begun.and_then(|begun| begun.lease).or(task.spec.timeout);
            let timeout = given.unwrap_or(engine.settings.queues.get(task.id.queue).timeout);
            let (seq, is_at_worker) = (task.id.seq, task.spec.target == Target::Worker);
            let is_known = engine.entries.find(seq).is_some();
            engine.adopt(now, token, task, timeout, out);
            if is_at_worker && !is_known {
                // The next owner hears of it too.
                engine.began.extend(engine.entries.find(seq));
            }
        }
        engine.consider_all_windows(now, out);
        engine.free_headless_lanes(now, out);
        engine.ease_obstacles(out);
        engine
    }

    fn empty(now: Now, fence: Fence, settings: Arc<Settings>) -> Engine {
        let next_seq = Seq::first_of(fence.epoch);
        Engine {
            fence,
            settings,
            next_seq,
            entries: Entries::default(),
            wheel: Wheel::new(now.wall),
            leases: Wheel::new(on_wheel(now.boot)),
            deadlines: Default::default(),
            windows: Windows::default(),
            holds: Default::default(),
            unparking: Default::default(),
            behind: Default::default(),
            behind_total: 0,
            retries_as_head: Default::default(),
            was: None,
            unread_lanes: Default::default(),
            unpark_later: Default::default(),
            load_later: Default::default(),
            overfull: Vec::new(),
            reads: Default::default(),
            identities: Default::default(),
            deferred: Default::default(),
            changes: Vec::new(),
            after: Vec::new(),
            just_begun: VecDeque::new(),
            began: Vec::new(),
            in_flight: None,
            unrecorded_from: next_seq,
            owned_since: now.wall,
            suspects: Default::default(),
            leaving: false,
            released: false,
            handling: None,
            due: Vec::new(),
        }
    }

    fn inherit_holds(&mut self, inheritance: &Inheritance) {
        for held in &inheritance.held {
            let written = if held.holder.is_some() { Written::Holder } else { Written::Doubtful };
            let holder = held.holder.and_then(|id| head(id.seq));
            self.holds.insert(held.obstacle, Hold { holder, written, parked: true, ..Hold::default() });
        }
    }

    /// Lanes that only have tasks parked under them: whoever is first may go on.
    fn free_headless_lanes(&mut self, now: Now, out: &mut Vec<Effect>) {
        let headless = |(obstacle, hold): (&Obstacle, &Hold)| {
            (matches!(obstacle, Obstacle::Lane(_)) && hold.holder.is_none()).then_some(*obstacle)
        };
        let mut lanes: Vec<Obstacle> = self.holds.iter().filter_map(headless).collect();
        lanes.sort_unstable();
        for lane in lanes {
            self.next_in_lane(now, lane, out);
        }
    }

    /// Stops starting anything, and puts on record what still runs.
    pub(super) fn hand_over(&mut self, now: Now, out: &mut Vec<Effect>) {
        if std::mem::replace(&mut self.leaving, true) {
            return;
        }
        let offered = |phase: Phase| phase == Phase::Offered;
        let slots: Vec<Slot> =
            self.entries.iter().filter(|(_, entry)| offered(entry.phase)).map(|(slot, _)| slot).collect();
        for slot in slots {
            self.detach(slot, out);
            self.entries[slot].phase = Phase::Placed;
        }
        self.record_running_leases(now);
        for no in self.deferred.give_up().into_iter().chain(self.reads.give_up()) {
            out.push(Effect::Answer(no, Answer::NotOwner));
        }
    }

    fn record_running_leases(&mut self, now: Now) {
        let epoch = self.fence.epoch;
        let running: Vec<(Slot, std::time::Duration)> = self
            .entries
            .iter()
            .filter_map(|(slot, entry)| match entry.phase {
                Phase::Running(lease) => Some((slot, Self::left(lease, now.boot))),
                _ => None,
            })
            .collect();
        for (slot, left) in running {
            let entry = &mut self.entries[slot];
            let begun_under = entry.token().map_or(epoch, |token| token.epoch);
            entry.task.begun = Some(Begun { epoch: begun_under, lease: Some(left) });
            let change = self.begun_change(slot);
            self.changes.push(change);
        }
        self.just_begun.clear();
        self.began.clear();
    }

    /// The partition can go when nothing of it is left to record.
    pub(super) fn release_when_quiet(&mut self, out: &mut Vec<Effect>) {
        let quiet = self.in_flight.is_none() && self.changes.is_empty() && self.after.is_empty();
        if self.leaving && quiet && !self.released {
            self.released = true;
            out.push(Effect::ReleasePartition(self.fence));
        }
    }
}
