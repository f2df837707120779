//! No process runs more at once than its slots, a queue's limit and a destination's limit allow; none starts faster
//! than a queue's rate, in a paused queue, or at a destination whose breaker is open.
//!
//! An attempt whose start was recorded first was let through before that: it may begin after its queue was paused or
//! its breaker opened, and it is not counted against the rate. What starts at the very instant of a pause or a failure
//! may have been let through just before. One that has passed its timeout is not counted as running: it is being
//! stopped.
//!
//! What workers hold takes no slot, but counts in its queue: for the process that gave it, and, when that has lost the
//! partition and the lease is on record, for whoever took it over, from when it has; not while it takes it over anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use punctual_core::{
    Change, Outcome, PartitionId, QueueId, QueueSettings, Spec, Target, TaskId, Timestamp, Token,
};

use super::Log;
use super::view::leased;
use crate::coverage::Coverage;
use crate::history::{Happening, Moment, Process};
use crate::settings::limits;
use crate::world::PARTITIONS;

/// An attempt whose time is up is stopped within this time.
const STOPPED_WITHIN: Duration = Duration::from_millis(5);
/// One that was let through begins within this time, however slow the store is.
const RECORDED_WITHIN: Duration = Duration::from_secs(15);

pub fn check(log: &Log, coverage: &Coverage) -> Vec<String> {
    let mut gates = Gates { nodes: 1, ..Gates::default() };
    let mut found = Vec::new();
    for (moment, happening) in log {
        match happening {
            Happening::Nodes(count) => gates.nodes = *count,
            Happening::QueueSet { queue, settings } => gates.set_queue(*moment, *queue, settings),
            Happening::Written { changes, .. } => gates.note_recorded(changes),
            Happening::Started { process, token, spec, timeout, .. } => {
                let (at, until, spec) = (moment.at, moment.at + *timeout, spec.clone());
                let start = Start {
                    at,
                    process: *process,
                    token: *token,
                    spec,
                    until,
                    counts_for: Some(*process),
                    adopted_at: None,
                };
                found.extend(gates.start(start, coverage));
            }
            Happening::Prolonged { token, until } => {
                gates.running.entry(*token).and_modify(|start| start.until = *until);
            }
            Happening::Taken { process, fence } => {
                coverage.leases_taken_over.add(gates.taken(*moment, *process, fence.partition));
            }
            Happening::Left { process, partition, anew } => gates.left(*process, *partition, *anew),
            Happening::Stopped { token, outcome } => gates.stop(*moment, *token, outcome.is_some(), coverage),
            Happening::Reported { process, token, outcome } => {
                gates.report(*moment, *process, *token, outcome, coverage);
            }
            _ => {}
        }
    }
    found
}

#[derive(Clone)]
struct Start {
    at: Timestamp,
    process: Process,
    token: Token,
    spec: Arc<Spec>,
    until: Timestamp,
    /// Whose limits it counts for.
    counts_for: Option<Process>,
    /// When its partition went to another process, if it did.
    adopted_at: Option<Timestamp>,
}

impl Start {
    fn is_at_worker(&self) -> bool {
        self.spec.target == Target::Worker
    }

    fn destination(&self) -> Option<Arc<str>> {
        match &self.spec.target {
            Target::Destination(name) => Some(name.clone()),
            _ => None,
        }
    }
}

/// The gates of all processes, as they ought to be.
#[derive(Default)]
struct Gates {
    nodes: u32,
    queues: BTreeMap<QueueId, Box<QueueSettings>>,
    paused_since: BTreeMap<QueueId, Timestamp>,
    /// Attempts whose start is on record.
    recorded: BTreeSet<(TaskId, u32)>,
    /// Those of them that are waited for, whoever owns their partition.
    leased: BTreeSet<Token>,
    running: BTreeMap<Token, Start>,
    /// Where attempts went, also those that are over: reports come later.
    destinations: BTreeMap<Token, Arc<str>>,
    /// Starts that count against a rate.
    metered: BTreeMap<(Process, QueueId), Vec<Timestamp>>,
    breakers: BTreeMap<(Process, Arc<str>), Breaker>,
}

#[derive(Default)]
struct Breaker {
    failures_in_a_row: u32,
    failed_at: Timestamp,
    rests_until: Option<Timestamp>,
}

impl Gates {
    fn set_queue(&mut self, now: Moment, queue: QueueId, settings: &QueueSettings) {
        self.queues.insert(queue, Box::new(settings.clone()));
        if settings.paused {
            self.paused_since.entry(queue).or_insert(now.at);
        } else {
            self.paused_since.remove(&queue);
        }
    }

    fn note_recorded(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Began { id, attempts, .. } => _ = self.recorded.insert((*id, *attempts)),
                // Whoever had it does not count any more.
                Change::Ended { task, .. } | Change::Refiled { task, .. } => self.let_go(task.id),
                _ => {}
            }
            self.leased.extend(leased(change));
        }
    }

    fn let_go(&mut self, id: TaskId) {
        self.running.retain(|token, start| token.id != id || !start.is_at_worker());
    }

    /// A process serves a partition: it counts what workers hold of it, as far as it can know.
    fn taken(&mut self, now: Moment, process: Process, partition: PartitionId) -> u64 {
        let leased = &self.leased;
        self.running.retain(|token, start| {
            let is_elsewhere = token.id.partition(PARTITIONS) != partition || !start.is_at_worker();
            is_elsewhere || start.counts_for == Some(process) || leased.contains(token)
        });
        let mut adopted = 0;
        for start in self.at_workers_of(partition).filter(|start| start.counts_for != Some(process)) {
            (start.counts_for, start.adopted_at) = (Some(process), Some(now.at));
            adopted += 1;
        }
        adopted
    }

    /// A process does not serve a partition any more, or begins it anew: then it counts only what it gave away itself.
    fn left(&mut self, process: Process, partition: PartitionId, anew: bool) {
        let is_known = |start: &Start| anew && start.adopted_at.is_none();
        for start in self.at_workers_of(partition).filter(|start| start.counts_for == Some(process)) {
            start.counts_for = start.counts_for.filter(|_| is_known(start));
        }
        let leased = &self.leased;
        self.running.retain(|token, start| start.counts_for.is_some() || leased.contains(token));
    }

    fn at_workers_of(&mut self, partition: PartitionId) -> impl Iterator<Item = &mut Start> {
        let running = self.running.values_mut().filter(|start| start.is_at_worker());
        running.filter(move |start| start.token.id.partition(PARTITIONS) == partition)
    }

    fn start(&mut self, start: Start, coverage: &Coverage) -> Vec<String> {
        if start.is_at_worker() {
            self.let_go(start.token.id);
        }
        let mut found = self.check_counts(&start, coverage);
        if !self.recorded.contains(&(start.token.id, start.token.attempt)) {
            found.extend(self.check_pause(&start));
            found.extend(self.check_rate(&start, coverage));
            found.extend(self.check_breaker(&start, coverage));
        }
        if let Some(destination) = start.destination() {
            self.destinations.insert(start.token, destination);
        }
        self.running.insert(start.token, start);
        found
    }

    /// How many run at once, together with the one that starts.
    fn check_counts(&self, start: &Start, coverage: &Coverage) -> Vec<String> {
        let (limits, queue) = (limits(), start.token.id.queue);
        let of_process: Vec<&Start> = self.running_on(start).collect();
        let in_queue = of_process.iter().filter(|other| other.token.id.queue == queue).count() as u32 + 1;
        let destination = start.destination();
        let there = of_process.iter().filter(|other| other.destination() == destination).count() as u32 + 1;
        let share = |max: u32| (max / self.nodes).max(1);
        let queue_max = self.queues.get(&queue).and_then(|queue| queue.running_max).map(share);
        // What workers hold takes no slot.
        let in_slots = of_process.iter().filter(|other| !other.is_at_worker()).count() as u32 + 1;
        let slots = ((!start.is_at_worker()).then_some(in_slots), Some(limits.running_max));
        let bounds = [
            ("slots of its process", slots, &coverage.slots_all_taken),
            ("attempts of its queue", (Some(in_queue), queue_max), &coverage.queue_limits_met),
            (
                "attempts at its destination",
                (destination.map(|_| there), Some(limits.destination_running_max)),
                &coverage.destination_limits_met,
            ),
        ];
        let mut found = Vec::new();
        for (what, taken_and_max, met) in bounds {
            let (Some(taken), Some(max)) = taken_and_max else { continue };
            if taken == max {
                met.count();
            }
            if taken > max {
                let beside: Vec<Token> = of_process.iter().map(|other| other.token).collect();
                found.push(format!("{:?} took {taken} of {max} {what}, beside {beside:?}", start.token));
            }
        }
        found
    }

    fn running_on<'a>(&'a self, start: &'a Start) -> impl Iterator<Item = &'a Start> {
        self.running
            .values()
            .filter(|other| other.counts_for == start.counts_for && !is_overdue(other, start.at))
            // One that begins now may have been let through before the other came.
            .filter(|other| other.adopted_at.is_none_or(|at| at + RECORDED_WITHIN < start.at))
    }

    fn check_pause(&self, start: &Start) -> Option<String> {
        let since = self.paused_since.get(&start.token.id.queue)?;
        (*since < start.at).then(|| format!("{:?} started in a queue paused since {since:?}", start.token))
    }

    /// So many starts take at least as long as all but a burst of them earn.
    fn check_rate(&mut self, start: &Start, coverage: &Coverage) -> Option<String> {
        let queue = start.token.id.queue;
        let rate = self.queues.get(&queue)?.rate?;
        let starts = self.metered.entry((start.process, queue)).or_default();
        starts.push(start.at);
        let interval = rate.per / rate.starts;
        for (others, first) in starts.iter().rev().enumerate() {
            let to_earn = (others as u32 + 1).saturating_sub(rate.burst);
            let passed = start.at.since(*first);
            if to_earn > 0 && passed < interval * (to_earn + 1) {
                coverage.rates_met.count();
            }
            if passed < interval * to_earn {
                return Some(format!("{:?} was start {} within {passed:?}", start.token, others + 1));
            }
        }
        None
    }

    fn check_breaker(&self, start: &Start, coverage: &Coverage) -> Option<String> {
        let destination = start.destination()?;
        let breaker = self.breakers.get(&(start.process, destination.clone()))?;
        let rests_until = breaker.rests_until.filter(|_| breaker.failed_at < start.at)?;
        let others =
            self.running_on(start).filter(|other| other.destination() == start.destination()).count();
        coverage.breaker_probes.count();
        (start.at < rests_until || others > 0).then(|| {
            format!(
                "{:?} went to {destination}, which rests until {rests_until:?}, beside {others}",
                start.token
            )
        })
    }

    fn stop(&mut self, now: Moment, token: Token, by_itself: bool, coverage: &Coverage) {
        let Some(start) = self.running.remove(&token) else { return };
        // One that is stopped later was not stopped for its time: its task had gone elsewhere.
        let was_overdue = is_overdue(&start, now.at - STOPPED_WITHIN);
        if !by_itself && is_overdue(&start, now.at) && !was_overdue {
            self.heard(now, start.process, token, false, coverage);
        }
    }

    fn report(
        &mut self,
        now: Moment,
        process: Process,
        token: Token,
        outcome: &Outcome,
        coverage: &Coverage,
    ) {
        match outcome {
            Outcome::Succeeded(_) | Outcome::Refused { .. } => {
                self.heard(now, process, token, true, coverage);
            }
            Outcome::Failed { .. } => self.heard(now, process, token, false, coverage),
            Outcome::GaveUp(_) | Outcome::Interrupted | Outcome::NoReceiver => {}
        }
    }

    fn heard(&mut self, now: Moment, process: Process, token: Token, good: bool, coverage: &Coverage) {
        let Some(destination) = self.destinations.remove(&token) else { return };
        let breaker = self.breakers.entry((process, destination)).or_default();
        if good {
            *breaker = Breaker::default();
            return;
        }
        breaker.failures_in_a_row += 1;
        breaker.failed_at = now.at;
        if breaker.failures_in_a_row >= limits().breaker_failures {
            coverage.breakers_opened.count();
            breaker.rests_until = Some(now.at + limits().breaker_rest);
        }
    }
}

fn is_overdue(start: &Start, now: Timestamp) -> bool {
    start.until <= now
}
