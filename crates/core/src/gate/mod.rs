//! One node's gate: engines offer what could start, the gate lets the best of it through.
//!
//! Best means: by priority, then nearest `start_by`, then wake time, then order of acceptance. Only queues that may
//! start something now take part, so that a paused, full or rate-limited queue costs the others nothing.

mod destination;
mod destinations;
mod known;
mod offers;
mod pace;
mod rate;
mod waiting;

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::engine::Settings;
use crate::id::{PartitionId, QueueId, Seq, TaskId};
use crate::message::Offer;
use crate::queue::QueueSettings;
use crate::task::Obstacle;
use crate::time::{BootTime, Now, Timestamp, Wake};

use destinations::Destinations;
use offers::Offers;
use rate::Meter;

/// Decides which offers start, and when.
pub struct Gate {
    settings: Arc<Settings>,
    /// Nothing starts any more.
    closed: bool,
    lines: FxHashMap<QueueId, Line>,
    /// The best offer of each queue that may start something now.
    open: Offers,
    /// Queues that wait for their rate.
    metered: BTreeSet<(BootTime, QueueId)>,
    destinations: Destinations,
    /// What runs. All counts are counts of these.
    live: FxHashMap<(PartitionId, Seq), Live>,
    /// How many of them take a slot of this node.
    slots_taken: u32,
}

/// A queue at the gate.
#[derive(Default)]
struct Line {
    /// For this node's own slots.
    offers: Offers,
    /// For workers that reserve.
    for_workers: Offers,
    running: u32,
    meter: Meter,
    /// What stands for this queue in `open`.
    shown: Option<Offer>,
    /// Under what time it stands in `metered`.
    metered_until: Option<BootTime>,
}

#[derive(Clone, Copy)]
struct Live {
    queue: QueueId,
    destination: Option<u64>,
    takes_slot: bool,
    /// An earlier owner let it through, and whoever runs it may be gone.
    is_adopted: bool,
}

/// How an attempt ended, as far as the gate cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conduct {
    /// Its destination answered as it should.
    Good,
    /// Its destination is well, and asks for less.
    Busy,
    /// Its destination did not.
    Bad,
    /// It says nothing about its destination.
    Neither,
}

impl Gate {
    /// An open gate with nothing at it.
    pub fn new(settings: Arc<Settings>) -> Gate {
        Gate {
            settings,
            closed: false,
            lines: FxHashMap::default(),
            open: Offers::default(),
            metered: BTreeSet::new(),
            destinations: Destinations::default(),
            live: FxHashMap::default(),
            slots_taken: 0,
        }
    }

    /// New settings apply at once.
    pub fn set_settings(&mut self, now: Now, settings: Arc<Settings>) {
        self.settings = settings;
        let mut queues: Vec<QueueId> = self.lines.keys().copied().collect();
        queues.sort_unstable();
        for queue in queues {
            let rate = self.settings.queues.get(queue).rate;
            if let (Some(line), Some(rate)) = (self.lines.get_mut(&queue), rate) {
                line.meter.forgive(now.boot, rate);
            }
            self.show(now, queue);
        }
    }

    /// Lets nothing through any more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// A task could start. If it cannot for longer, the answer says why, and it is not kept here.
    pub fn offer(&mut self, now: Now, offer: Offer) -> Option<Obstacle> {
        if let Some(destination) = offer.destination {
            self.destinations.hear(destination, offer.partition);
            if !self.destinations.has_room(now, &self.settings.limits, destination) {
                return self.destinations.wait(now, &self.settings.limits, destination, offer);
            }
        }
        self.stand_in_line(now, offer);
        None
    }

    /// A task that was offered does not want to start any more.
    pub fn withdraw(&mut self, now: Now, offer: Offer) {
        if offer.destination.is_some_and(|destination| self.destinations.withdraw(destination, &offer)) {
            return;
        }
        if let Some(line) = self.lines.get_mut(&offer.queue) {
            line.kind(&offer).remove(offer);
            self.show(now, offer.queue);
        }
        // It may have been the one that was let forward: another of its destination may go in its place.
        if let Some(destination) = offer.destination {
            self.destinations.loosen(destination);
        }
    }

    /// The next offer to start on one of this node's own slots.
    pub fn next(&mut self, now: Now) -> Option<Verdict> {
        // Nothing goes on at a closed gate, and what waits there lies where the next owner looks for it.
        if !self.closed
            && let Some((offer, obstacle)) = self.destinations.next_surplus(now, &self.settings.limits)
        {
            return Some(Verdict::Refuse(offer, obstacle));
        }
        for offer in self.destinations.let_forward(now, &self.settings.limits) {
            self.stand_in_line(now, offer);
        }
        if self.closed || self.slots_taken >= self.settings.limits.running_max {
            return None;
        }
        let offer = *self.open.first()?;
        let line = self.lines.get_mut(&offer.queue).expect("an open queue has a line");
        line.offers.pop_first();
        if let Some(destination) = offer.destination
            && !self.destinations.has_room(now, &self.settings.limits, destination)
        {
            self.show(now, offer.queue);
            let refused = self.destinations.wait(now, &self.settings.limits, destination, offer);
            return Some(refused.map_or(Verdict::Wait, |obstacle| Verdict::Refuse(offer, obstacle)));
        }
        self.start(now, offer, true);
        Some(Verdict::Grant(offer))
    }

    /// The best offer for a worker that asks for a task of a queue.
    pub fn reserve(&mut self, now: Now, queue: QueueId) -> Option<Offer> {
        let line = self.lines.get_mut(&queue).filter(|_| !self.closed)?;
        if !line.may_start(now, self.settings.queues.get(queue), self.settings.nodes) {
            return None;
        }
        let offer = line.for_workers.pop_first()?;
        self.start(now, offer, false);
        Some(offer)
    }

    /// An attempt that an earlier owner let through may still run: it counts, but takes no slot of this node.
    pub fn adopted(&mut self, now: Now, partition: PartitionId, id: TaskId) {
        if let Entry::Vacant(live) = self.live.entry((partition, id.seq)) {
            live.insert(Live { queue: id.queue, destination: None, takes_slot: false, is_adopted: true });
            self.lines.entry(id.queue).or_default().running += 1;
            self.show(now, id.queue);
        }
    }

    /// An attempt is over and on record. If it was an earlier owner's, nobody here has seen it end.
    pub fn adopted_ended(&mut self, now: Now, partition: PartitionId, seq: Seq) {
        if self.live.get(&(partition, seq)).is_some_and(|live| live.is_adopted) {
            self.ended(now, partition, seq, Conduct::Neither);
        }
    }

    /// What was granted did not start after all.
    pub fn undo(&mut self, now: Now, offer: Offer) {
        self.ended(now, offer.partition, offer.key.seq, Conduct::Neither);
    }

    /// What was granted ended. Counted once, however often it is said; the answer is whether it was counted now.
    pub fn ended(&mut self, now: Now, partition: PartitionId, seq: Seq, conduct: Conduct) -> bool {
        let Some(live) = self.live.remove(&(partition, seq)) else { return false };
        self.slots_taken -= u32::from(live.takes_slot);
        if let Some(line) = self.lines.get_mut(&live.queue) {
            line.running -= 1;
        }
        if let Some(destination) = live.destination {
            self.destinations.ended(now, &self.settings.limits, destination, conduct);
        }
        // The end of one attempt can only let a line start again that was held back.
        if self.lines.get(&live.queue).is_some_and(|line| line.shown.is_none()) {
            self.show(now, live.queue);
        }
        true
    }

    /// A partition's engine is gone: its offers go too, and grants that never began. What runs still runs, and
    /// still counts.
    pub fn forget_partition(&mut self, now: Now, partition: PartitionId, runs: impl Fn(Seq) -> bool) {
        let grants = self.live.keys().filter(|(of, seq)| *of == partition && !runs(*seq));
        let mut unbegun: Vec<Seq> = grants.map(|(_, seq)| *seq).collect();
        unbegun.sort_unstable();
        for seq in unbegun {
            self.ended(now, partition, seq, Conduct::Neither);
        }
        self.destinations.forget_partition(partition);
        let mut queues: Vec<QueueId> = self.lines.keys().copied().collect();
        queues.sort_unstable();
        for queue in queues {
            let line = self.lines.get_mut(&queue).expect("just listed");
            let of_others = |offer: &Offer| offer.partition != partition;
            let gone = line.offers.iter().filter(|offer| !of_others(offer));
            let destinations: BTreeSet<u64> = gone.filter_map(|offer| offer.destination).collect();
            line.offers.retain(of_others);
            line.for_workers.retain(of_others);
            self.show(now, queue);
            destinations.into_iter().for_each(|destination| self.destinations.loosen(destination));
        }
    }

    /// Partitions whose tasks were sent away, and destinations that take more of them. Asked when nothing more starts.
    pub fn take_eased(&mut self, now: Now) -> Vec<(PartitionId, Obstacle)> {
        self.destinations.take_eased(now, &self.settings.limits)
    }

    /// When time next makes a difference.
    pub fn wake_at(&self) -> Wake {
        let metered = self.metered.first().map(|(at, _)| *at);
        Wake { wall: None, boot: metered }.or(self.destinations.wake_at())
    }

    /// How many attempts run.
    pub fn running(&self) -> usize {
        self.live.len()
    }

    /// Since when the next tasks of each queue have been due that could start, and wait for a slot, for their queue's
    /// limits or for a worker. What waits for something narrower is not counted: a lane, a handler, a destination.
    pub fn waiting(&self) -> Vec<(QueueId, Timestamp)> {
        let mut waiting: Vec<(QueueId, Timestamp)> =
            self.lines.iter().filter_map(|(queue, line)| Some((*queue, line.waiting_since()?))).collect();
        waiting.sort_unstable();
        waiting
    }

    /// How many breakers are open, or let one attempt through to see.
    pub fn breakers_open(&self) -> usize {
        self.destinations.breakers_open()
    }

    fn start(&mut self, now: Now, offer: Offer, takes_slot: bool) {
        let Offer { queue, destination, partition, .. } = offer;
        let line = self.lines.get_mut(&queue).expect("an offer stands in a line");
        line.running += 1;
        line.meter.start(now.boot, self.settings.queues.get(queue).rate);
        self.slots_taken += u32::from(takes_slot);
        if let Some(destination) = destination {
            self.destinations.started(now, destination);
        }
        let before = self
            .live
            .insert((partition, offer.key.seq), Live { queue, destination, takes_slot, is_adopted: false });
        debug_assert!(before.is_none(), "task {:?} was started twice at once", offer.key.seq);
        self.show(now, queue);
    }

    fn stand_in_line(&mut self, now: Now, offer: Offer) {
        let line = self.lines.entry(offer.queue).or_default();
        line.kind(&offer).insert(offer);
        // Most offers come behind another: then nothing changes at the head of the line.
        if line.shown.is_none_or(|shown| offer < shown) {
            self.show(now, offer.queue);
        }
    }

    /// Puts a queue's best offer into `open`, if the queue may start something now; a queue that only its rate
    /// holds back comes again by itself.
    fn show(&mut self, now: Now, queue: QueueId) {
        let Gate { settings, lines, open, metered, .. } = self;
        let limits = settings.queues.get(queue);
        let line = lines.get_mut(&queue).expect("only queues with a line are shown");
        let best = line.offers.first().copied().filter(|_| line.may_start(now, limits, settings.nodes));
        if best != line.shown {
            if let Some(shown) = line.shown.take() {
                open.remove(shown);
            }
            line.shown = best;
            best.into_iter().for_each(|best| open.insert(best));
        }
        if limits.rate.is_some() || line.metered_until.is_some() {
            line.note_meter(now, queue, limits, metered);
        }
    }

    /// Time passed: queues and destinations whose waiting time is over take part again.
    pub fn time_passed(&mut self, now: Now) {
        while let Some(&(_, queue)) = self.metered.first().filter(|(at, _)| *at <= now.boot) {
            self.show(now, queue);
        }
        self.destinations.time_passed(now, &self.settings.limits);
    }
}

/// What the gate says of one offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It starts.
    Grant(Offer),
    /// It waits here for its destination; ask for the next.
    Wait,
    /// It is to wait elsewhere, for this.
    Refuse(Offer, Obstacle),
}

impl Line {
    fn may_start(&self, now: Now, queue: &QueueSettings, nodes: u32) -> bool {
        let share = |limit: u32| if queue.pinned { limit } else { (limit / nodes.max(1)).max(1) };
        !queue.paused
            && queue.running_max.is_none_or(|max| self.running < share(max))
            && queue.rate.is_none_or(|rate| self.meter.allows(now.boot, rate))
    }

    /// Where such an offer stands.
    fn kind(&mut self, offer: &Offer) -> &mut Offers {
        if offer.for_worker { &mut self.for_workers } else { &mut self.offers }
    }

    /// Offers are in order of what goes first, not of age; but of one priority and one kind they are in order of age, as
    /// long as none has a `start_by` of its own. So a few looks are enough, however many offers there are.
    fn waiting_since(&self) -> Option<Timestamp> {
        self.offers.firsts().chain(self.for_workers.firsts()).map(|first| first.key.wake_at).min()
    }

    fn note_meter(
        &mut self,
        now: Now,
        queue: QueueId,
        settings: &QueueSettings,
        metered: &mut BTreeSet<(BootTime, QueueId)>,
    ) {
        let wants = self.shown.is_none() && !(self.offers.is_empty() && self.for_workers.is_empty());
        let rate = settings.rate.filter(|_| wants);
        let until = rate.and_then(|rate| self.meter.free_at(rate)).filter(|at| *at > now.boot);
        if until != self.metered_until {
            if let Some(before) = self.metered_until {
                metered.remove(&(before, queue));
            }
            self.metered_until = until;
            metered.extend(until.map(|at| (at, queue)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::id::Priority;
    use crate::task::RowKey;

    #[test]
    fn when_the_gate_is_closed_nobody_is_sent_away_who_waits_for_a_destination() {
        let mut gate = Gate::new(Arc::default());
        let mut now = Now::default();
        for seq in 1..=1_000 {
            let refused = gate.offer(
                now,
                Offer {
                    priority: Priority::default(),
                    start_by: Timestamp::MAX,
                    key: RowKey { wake_at: now.wall, seq: Seq(seq) },
                    partition: PartitionId(0),
                    queue: QueueId(1),
                    destination: Some(7),
                    for_worker: false,
                },
            );
            assert_eq!(refused, None);
            while let Some(Verdict::Grant(_)) = gate.next(now) {}
        }
        gate.close();
        // Nothing goes on any more, which says nothing about the destination.
        now.boot = now.boot + Duration::from_secs(5);
        gate.time_passed(now);
        assert_eq!(gate.next(now), None);
    }
}
