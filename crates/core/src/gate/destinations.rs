//! Each destination has its own limit and breaker: one that hangs or fails slows only itself.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::Conduct;
use super::destination::Destination;
use super::known::Known;
use super::pace::Pace;
use crate::id::PartitionId;
use crate::limits::Limits;
use crate::message::Offer;
use crate::task::Obstacle;
use crate::time::{BootTime, Now, Wake};

/// All destinations that are busy, waited for, or in trouble.
#[derive(Default)]
pub struct Destinations {
    all: FxHashMap<u64, Destination>,
    /// Breakers by when they let a probe through.
    resting: BTreeSet<(BootTime, u64)>,
    /// Those that have asked a partition, by when they ask the next.
    asking: BTreeSet<(BootTime, u64)>,
    /// Those that may have room that they did not have, until the next task is let through.
    loosened: BTreeSet<u64>,
    /// And until partitions are asked for more, when it is known who started.
    let_forward: BTreeSet<u64>,
    /// Those that failed, by when they are forgotten if nobody goes there any more: a million hosts that failed once
    /// must not be remembered for ever.
    failed: BTreeSet<(BootTime, u64)>,
    /// Those that more wait for than a standing destination is allowed, by when it is looked whether they still go on.
    crowded: BTreeSet<(BootTime, u64)>,
    /// Those whose line is too long by now: the last of it is sent away.
    overlong: BTreeSet<u64>,
    /// Until then a new destination keeps no more waiting than any other: one that did has stood still.
    wary_until: BootTime,
    /// How many of them have `rests_until`.
    breakers_open: usize,
    /// Those that were well when nobody went there any more.
    known: Known,
    /// What runs at strangers: always the sum of their `running`.
    strangers_running: u32,
    /// Strangers that are waited for, and wait for others of their kind.
    held_back: BTreeSet<u64>,
    /// The one of them that had its turn last.
    last_in_turn: u64,
}

/// How long a failure is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);
/// How long a partition has to send what it sent away before the next one may.
const TIME_TO_SEND: Duration = Duration::from_secs(1);
/// How long new destinations are not trusted after one of them stood still: many that hang, one after the other, must
/// not hold up the rest for a moment each.
const WARY: Duration = Duration::from_secs(30);

impl Destinations {
    pub fn has_room(&self, now: Now, limits: &Limits, id: u64) -> bool {
        let has_room = self.all.get(&id).is_none_or(|destination| destination.room(now, limits) > 0);
        has_room && (self.room_for_strangers(limits) > 0 || !self.is_stranger(id))
    }

    /// How many more may run at strangers: those that hang must leave room for those that are well.
    fn room_for_strangers(&self, limits: &Limits) -> u32 {
        limits.strangers_running_max.saturating_sub(self.strangers_running)
    }

    fn is_stranger(&self, id: u64) -> bool {
        match self.all.get(&id) {
            Some(destination) => destination.is_stranger(),
            None => !self.known.contains(id),
        }
    }

    fn entry(&mut self, id: u64) -> &mut Destination {
        let known = &self.known;
        self.all.entry(id).or_insert_with(|| Destination::new(known.contains(id)))
    }

    fn first_max(&self, now: Now, limits: &Limits) -> usize {
        if now.boot < self.wary_until { 0 } else { limits.destination_first_max }
    }

    /// Keeps an offer for a destination that has no room, or says that it must wait elsewhere.
    pub fn wait(&mut self, now: Now, limits: &Limits, id: u64, offer: Offer) -> Option<Obstacle> {
        let first_max = self.first_max(now, limits);
        if self.room_for_strangers(limits) == 0 && self.is_stranger(id) {
            self.held_back.insert(id);
        }
        let destination = self.entry(id);
        let is_full = destination.waiting.len() >= destination.waiting_max(now, limits, first_max);
        if is_full && destination.lacks_one_of(offer.queue, limits) {
            destination.waiting.insert(offer);
            self.overlong.insert(id);
            None
        } else if !is_full {
            destination.waiting.insert(offer);
            if destination.waiting.len() > limits.destination_waiting_max && destination.look_at.is_none() {
                let look_at = now.boot + Pace::STRETCH;
                destination.look_at = Some(look_at);
                self.crowded.insert((look_at, id));
            }
            None
        } else {
            destination.send_away(offer.partition);
            Some(Obstacle::Destination(id))
        }
    }

    /// One that has waited here until now and is to wait elsewhere, because its destination does not go on as it did.
    pub fn next_surplus(&mut self, now: Now, limits: &Limits) -> Option<(Offer, Obstacle)> {
        while let Some(&id) = self.overlong.first() {
            let first_max = self.first_max(now, limits);
            if let Some(destination) = self.all.get_mut(&id)
                && destination.waiting.len() > destination.waiting_max(now, limits, first_max)
                && let Some(last) = destination.pop_surplus()
            {
                if destination.stands_still(now) {
                    self.wary_until = now.boot + WARY;
                }
                destination.send_away(last.partition);
                return Some((last, Obstacle::Destination(id)));
            }
            self.overlong.remove(&id);
        }
        None
    }

    /// Looks whether those that many wait for go on as they did, and when to look again.
    fn look_at_crowded(&mut self, now: Now, limits: &Limits) {
        while let Some((at, id)) = self.crowded.first().copied().filter(|(at, _)| *at <= now.boot) {
            self.crowded.remove(&(at, id));
            let Some(destination) = self.all.get_mut(&id) else { continue };
            let is_crowded = destination.waiting.len() > limits.destination_waiting_max;
            destination.look_at = is_crowded.then_some(now.boot + Pace::STRETCH);
            self.crowded.extend(destination.look_at.map(|at| (at, id)));
            self.overlong.extend(is_crowded.then_some(id));
        }
    }

    pub fn withdraw(&mut self, id: u64, offer: &Offer) -> bool {
        self.all.get_mut(&id).is_some_and(|destination| destination.waiting.remove(offer))
    }

    pub fn started(&mut self, _now: Now, id: u64) {
        let destination = self.entry(id);
        destination.running += 1;
        let is_stranger = destination.is_stranger();
        self.strangers_running += u32::from(is_stranger);
    }

    pub fn ended(&mut self, now: Now, limits: &Limits, id: u64, conduct: Conduct) {
        let destination = self.all.entry(id).or_default();
        let (rested, strange_running) = (destination.rests_until, destination.strange_running());
        destination.running = destination.running.saturating_sub(1);
        destination.judge(now, limits, conduct);
        self.breakers_open += usize::from(destination.rests_until.is_some());
        self.breakers_open -= usize::from(rested.is_some());
        self.strangers_running += destination.strange_running();
        self.strangers_running -= strange_running;
        if rested != destination.rests_until {
            self.resting.extend(destination.rests_until.map(|until| (until, id)));
            match rested {
                Some(rested) => _ = self.resting.remove(&(rested, id)),
                None => self.known.forget(id),
            }
        }
        let forget_at = (!destination.is_well()).then_some(now.boot + REMEMBERED);
        if let Some(before) = std::mem::replace(&mut destination.forget_at, forget_at) {
            self.failed.remove(&(before, id));
        }
        self.failed.extend(forget_at.map(|at| (at, id)));
        if !destination.is_idle() {
            return self.loosen(id);
        }
        if !destination.is_stranger() {
            self.known.remember(now, id);
        }
        self.all.remove(&id);
    }

    /// Forgets failures of destinations where nobody goes any more.
    fn forget_old_failures(&mut self, now: Now) {
        while let Some(&(at, id)) = self.failed.first().filter(|(at, _)| *at <= now.boot) {
            self.failed.remove(&(at, id));
            let Some(destination) = self.all.get_mut(&id) else { continue };
            if destination.is_deserted() {
                if let Some(until) = destination.rests_until {
                    self.resting.remove(&(until, id));
                    self.breakers_open -= 1;
                }
                self.all.remove(&id);
            } else {
                destination.forget_at = Some(now.boot + REMEMBERED);
                self.failed.insert((now.boot + REMEMBERED, id));
            }
        }
    }

    /// How many breakers are open, or let one attempt through to see.
    pub fn breakers_open(&self) -> usize {
        self.breakers_open
    }

    /// A partition sends a task for this destination, to start or to wait.
    pub fn hear(&mut self, id: u64, partition: PartitionId) {
        let Some(destination) = self.all.get_mut(&id) else { return };
        if let Some((_, until)) = destination.asked.take_if(|(asked, _)| *asked == partition) {
            self.asking.remove(&(until, id));
        }
    }

    /// Looks again where a breaker lets a probe through now, or a partition that was asked has not sent anything.
    pub fn time_passed(&mut self, now: Now, limits: &Limits) {
        self.look_at_crowded(now, limits);
        for times in [&mut self.resting, &mut self.asking] {
            while let Some((_, id)) = times.first().copied().filter(|(at, _)| *at <= now.boot) {
                times.pop_first();
                self.loosened.insert(id);
            }
        }
        self.forget_old_failures(now);
    }

    /// There may be room that there was not.
    pub fn loosen(&mut self, id: u64) {
        self.loosened.insert(id);
    }

    /// Offers that waited and may stand in line again: as many as there is room for.
    pub fn let_forward(&mut self, now: Now, limits: &Limits) -> Vec<Offer> {
        let mut forward = Vec::new();
        let mut for_strangers = self.room_for_strangers(limits);
        while let Some(id) = self.loosened.pop_first() {
            match self.is_stranger(id) {
                true => _ = self.held_back.insert(id),
                false => self.let_some_forward(now, limits, id, &mut for_strangers, &mut forward),
            }
        }
        while for_strangers > 0
            && let Some(id) = self.next_in_turn()
        {
            self.let_some_forward(now, limits, id, &mut for_strangers, &mut forward);
        }
        forward
    }

    /// The next stranger that was held back: each has its turn, so that many that hang do not keep one waiting that is
    /// well.
    fn next_in_turn(&mut self) -> Option<u64> {
        let after = self.held_back.range((Excluded(self.last_in_turn), Unbounded)).next();
        let id = *after.or(self.held_back.first())?;
        self.held_back.remove(&id);
        self.last_in_turn = id;
        Some(id)
    }

    fn let_some_forward(
        &mut self,
        now: Now,
        limits: &Limits,
        id: u64,
        for_strangers: &mut u32,
        forward: &mut Vec<Offer>,
    ) {
        let Some(destination) = self.all.get_mut(&id) else { return };
        let own_room = destination.room(now, limits);
        let room = if destination.is_stranger() { own_room.min(*for_strangers) } else { own_room };
        let before = forward.len();
        forward.extend(std::iter::from_fn(|| destination.pop_next()).take(room as usize));
        if destination.is_stranger() {
            *for_strangers -= (forward.len() - before) as u32;
        }
        let is_asked_for_more = room > 0 && destination.waiting.is_empty();
        if room < own_room && !is_asked_for_more {
            self.held_back.insert(id);
        }
        if room > 0 {
            self.let_forward.insert(id);
        }
    }

    /// Partitions that may send what they sent away, and for where.
    pub fn take_eased(&mut self, now: Now, limits: &Limits) -> Vec<(PartitionId, Obstacle)> {
        let mut eased = Vec::new();
        while let Some(id) = self.let_forward.pop_first() {
            let Some(destination) = self.all.get_mut(&id) else { continue };
            let asked = destination.may_ask(now, limits);
            let until = now.boot + TIME_TO_SEND;
            for partition in destination.sent_away.drain(..asked) {
                if let Some((_, before)) = destination.asked.replace((partition, until)) {
                    self.asking.remove(&(before, id));
                }
                self.asking.insert((until, id));
                eased.push((partition, Obstacle::Destination(id)));
            }
        }
        eased
    }

    pub fn forget_partition(&mut self, partition: PartitionId) {
        for destination in self.all.values_mut() {
            destination.waiting.forget_partition(partition);
            destination.sent_away.retain(|sent| *sent != partition);
        }
    }

    pub fn wake_at(&self) -> Wake {
        let first =
            |times: &BTreeSet<(BootTime, u64)>| Wake { wall: None, boot: times.first().map(|(at, _)| *at) };
        first(&self.resting).or(first(&self.asking)).or(first(&self.crowded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Now {
        Now { boot: BootTime::from_micros(secs * 1_000_000), ..Now::default() }
    }

    /// Runs as many at once as there is room for, and ends them alike. Says how many that were.
    fn round(destinations: &mut Destinations, secs: u64, conduct: Conduct) -> u32 {
        let (limits, mut running) = (Limits::default(), 0);
        while destinations.has_room(at(secs), &limits, 7) {
            destinations.started(at(secs), 7);
            running += 1;
        }
        for _ in 0..running {
            destinations.ended(at(secs), &limits, 7, conduct);
        }
        running
    }

    #[test]
    fn a_busy_destination_gets_half_and_earns_the_rest_back() {
        let mut destinations = Destinations::default();
        assert_eq!(round(&mut destinations, 0, Conduct::Good), 4, "it is new");
        let mut rounds = |from: u64, conduct, count: u64| -> Vec<u32> {
            (from..from + count).map(|secs| round(&mut destinations, secs, conduct)).collect()
        };
        assert_eq!(
            rounds(1, Conduct::Busy, 6),
            [20, 10, 5, 2, 1, 1],
            "one cut a round, and never to nothing"
        );
        assert_eq!(rounds(10, Conduct::Good, 5), [1, 2, 3, 4, 5]);
        assert_eq!(rounds(20, Conduct::Neither, 2), [6, 6]);
        assert_eq!(rounds(30, Conduct::Good, 15).last(), Some(&20));
        assert!(destinations.all.is_empty() && destinations.failed.is_empty(), "it is like any other again");
    }

    #[test]
    fn a_destination_that_failed_is_forgotten_when_nobody_goes_there() {
        let (mut destinations, limits) = (Destinations::default(), Limits::default());
        for id in 0..1_000 {
            for _ in 0..=id % 7 {
                destinations.started(at(1), id);
                destinations.ended(at(1), &limits, id, Conduct::Bad);
            }
        }
        destinations.started(at(2), 5_000);
        destinations.ended(at(300), &limits, 5_000, Conduct::Bad);
        destinations.time_passed(at(600), &limits);
        assert_eq!(destinations.all.len(), 1_001);
        assert_eq!(destinations.breakers_open(), (0..1_000).filter(|id| id % 7 >= 4).count());
        destinations.time_passed(at(601), &limits);
        assert_eq!(
            (destinations.all.len(), destinations.failed.len(), destinations.resting.len()),
            (1, 1, 0)
        );
        assert_eq!(destinations.breakers_open(), 0);
    }

    #[test]
    fn what_runs_at_strangers_is_counted_whatever_becomes_of_them() {
        let (mut destinations, limits) = (Destinations::default(), Limits::default());
        let conducts =
            [Conduct::Good, Conduct::Bad, Conduct::Busy, Conduct::Bad, Conduct::Neither, Conduct::Bad];
        let mut running: Vec<u64> = Vec::new();
        // Steps that look like chance, and are the same every time.
        for step in 0..20_000_u64 {
            let dice = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let (now, id) = (at(step / 10), dice % 9);
            destinations.time_passed(now, &limits);
            if dice % 5 < 3 && destinations.has_room(now, &limits, id) {
                destinations.started(now, id);
                running.push(id);
            } else if !running.is_empty() {
                let id = running.swap_remove(dice as usize % running.len());
                let conduct = conducts[(dice / 7) as usize % conducts.len()];
                destinations.ended(now, &limits, id, conduct);
            }
            let strange: u32 = destinations.all.values().map(Destination::strange_running).sum();
            assert_eq!(destinations.strangers_running, strange, "after step {step}");
        }
        for id in running {
            destinations.ended(at(3_000), &limits, id, Conduct::Neither);
        }
        assert_eq!(destinations.strangers_running, 0);
    }
}
