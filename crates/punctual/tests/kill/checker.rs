//! What must be so, judged from outside by what the process said: nothing acknowledged is lost, nothing that ended runs
//! again, lanes keep their order, and what was not acknowledged is there wholly or not at all.

use std::collections::{BTreeMap, BTreeSet};

use punctual::Timestamp;

use super::lines::Line;
use super::plan::Plan;

/// In a lane, tasks run in this order: by time, and then by acceptance, which is that of the numbers.
type Turn = (Timestamp, u64);

/// Everything that is known of one task.
struct Known {
    plan: Plan,
    id: Option<String>,
    /// It was seen in the store, or begun, or acknowledged: it must not be lost any more.
    is_there: bool,
    acknowledged_at: Option<Timestamp>,
    /// Somebody tried to cancel it, and perhaps succeeded.
    may_be_cancelled: bool,
    is_cancelled: bool,
    /// Its handler came to its end, and perhaps that is on record.
    may_be_done: bool,
    /// Its end is on record: it never runs again.
    has_ended: bool,
}

/// What is known of one lane.
#[derive(Default)]
struct Lane {
    /// In this life: what has neither ended nor come to the end of its handler.
    waiting: BTreeSet<Turn>,
    /// In this life: what runs.
    running: Option<u64>,
    /// In all lives: what ever began.
    begun: BTreeSet<Turn>,
}

/// How much was seen, so that nobody takes an empty run for a good one.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    pub acknowledged: u64,
    pub runs: u64,
    pub cancelled: u64,
    /// Tasks that were under way when the process died, and are there, or not.
    pub kept_unacknowledged: u64,
    pub dropped_unacknowledged: u64,
    /// Tasks that ended without the process having been able to say so.
    pub ended_unsaid: u64,
}

#[derive(Default)]
pub struct Checker {
    tasks: BTreeMap<u64, Known>,
    ids: BTreeMap<String, u64>,
    lanes: BTreeMap<String, Lane>,
    /// Batches that were sent in the last life.
    sent: Vec<(u64, u64)>,
    /// What the store held when it was opened.
    held: BTreeSet<u64>,
    /// What has not ended, as far as anybody said.
    open: BTreeSet<u64>,
    past: BTreeSet<u64>,
    pub counts: Counts,
}

impl Checker {
    /// A new process is started.
    pub fn begin_life(&mut self) {
        self.held.clear();
        for lane in self.lanes.values_mut() {
            lane.waiting.clear();
            lane.running = None;
        }
    }

    pub fn hear(&mut self, line: &Line) {
        match line {
            Line::Held { n, id, is_as_planned } => self.held(*n, id, *is_as_planned),
            Line::Opened => self.opened(),
            Line::Sent { first, count, at } => self.sent(*first, *count, *at),
            Line::Accepted { n, id, at } => self.accepted(*n, id, *at),
            Line::Again { n, id } => {
                assert_eq!(self.task(*n).id.as_ref(), Some(id), "task {n} is another one by its unique key");
            }
            Line::Cancelling { n } => self.cancelling(*n),
            Line::Cancelled { n } => self.cancelled(*n),
            Line::Begun { n, id } => self.begun(*n, id),
            Line::Done { n } => self.done(*n),
            Line::Ended { id } => {
                let n = *self.ids.get(id).unwrap_or_else(|| panic!("{id} ended, and nobody knows it"));
                self.ended(n);
            }
            Line::Result { n } => self.ended(*n),
            Line::Past { n, state } => self.past(*n, state),
            Line::Stopped => self.stopped(),
        }
    }

    fn task(&mut self, n: u64) -> &mut Known {
        self.tasks.get_mut(&n).unwrap_or_else(|| panic!("task {n} came from nowhere"))
    }

    fn lane_of(&mut self, n: u64) -> Option<(&mut Lane, Turn)> {
        let plan = &self.tasks.get(&n)?.plan;
        Some((self.lanes.entry(plan.lane.clone()?).or_default(), (plan.at, n)))
    }

    /// The store has it, and gave it this id, now and for ever.
    fn is_there(&mut self, n: u64, id: &str) {
        let task = self.task(n);
        task.is_there = true;
        let known = task.id.get_or_insert_with(|| id.to_string());
        assert_eq!(known, id, "task {n} has two ids");
        let owner = *self.ids.entry(id.to_string()).or_insert(n);
        assert_eq!(owner, n, "two tasks have the id {id}");
    }

    fn held(&mut self, n: u64, id: &str, is_as_planned: bool) {
        assert!(is_as_planned, "task {n} is not as it was sent");
        assert!(!self.task(n).has_ended, "task {n} has ended, and is there again");
        if !self.task(n).is_there {
            self.counts.kept_unacknowledged += 1;
        }
        self.is_there(n, id);
        assert!(self.held.insert(n), "task {n} is there twice");
        if let Some((lane, turn)) = self.lane_of(n) {
            lane.waiting.insert(turn);
        }
    }

    /// All that is there was said: is anything missing?
    fn opened(&mut self) {
        for (first, count) in std::mem::take(&mut self.sent) {
            self.whole_or_not_at_all(first, count);
        }
        for n in self.open.clone() {
            if self.held.contains(&n) {
                continue;
            }
            let task = self.task(n);
            assert!(task.may_be_done || task.may_be_cancelled, "task {n} is lost");
            task.has_ended = true;
            self.open.remove(&n);
            self.counts.ended_unsaid += 1;
        }
    }

    /// What goes to one lane goes to one partition, in one record.
    fn whole_or_not_at_all(&mut self, first: u64, count: u64) {
        let mut by_lane: BTreeMap<String, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
        for n in first..first + count {
            let task = self.task(n);
            let (lane, is_there) = (task.plan.lane.clone(), task.is_there);
            if let Some(lane) = lane {
                let (there, missing) = by_lane.entry(lane).or_default();
                if is_there { there.push(n) } else { missing.push(n) }
            }
            if !is_there {
                self.tasks.remove(&n);
                self.open.remove(&n);
                self.counts.dropped_unacknowledged += 1;
            }
        }
        for (lane, (there, missing)) in by_lane {
            let is_whole = there.is_empty() || missing.is_empty();
            assert!(is_whole, "half of a record is there, {lane}: {there:?}, and not {missing:?}");
        }
    }

    fn sent(&mut self, first: u64, count: u64, at: Timestamp) {
        self.sent.push((first, count));
        for n in first..first + count {
            let known = Known {
                plan: Plan::of(n, at),
                id: None,
                is_there: false,
                acknowledged_at: None,
                may_be_cancelled: false,
                is_cancelled: false,
                may_be_done: false,
                has_ended: false,
            };
            assert!(self.tasks.insert(n, known).is_none(), "task {n} was sent before");
            self.open.insert(n);
            if let Some((lane, turn)) = self.lane_of(n) {
                lane.waiting.insert(turn);
            }
        }
    }

    fn accepted(&mut self, n: u64, id: &str, at: Timestamp) {
        self.is_there(n, id);
        self.task(n).acknowledged_at = Some(at);
        self.counts.acknowledged += 1;
    }

    fn cancelling(&mut self, n: u64) {
        self.task(n).may_be_cancelled = true;
        self.no_longer_waits(n);
    }

    fn cancelled(&mut self, n: u64) {
        self.task(n).is_cancelled = true;
        self.counts.cancelled += 1;
        self.ended(n);
    }

    fn begun(&mut self, n: u64, id: &str) {
        self.counts.runs += 1;
        assert!(!self.task(n).has_ended, "task {n} runs after its end was on record");
        self.is_there(n, id);
        let acknowledged = |n: &u64| self.tasks.get(n).and_then(|task| task.acknowledged_at);
        // It was known when the other one could begin: it came before it, or in good time.
        let was_known =
            |(_, n): &Turn, other: &Turn| n < &other.1 || acknowledged(n).is_some_and(|at| at < other.0);
        let plan = &self.tasks[&n].plan;
        let Some(lane) = plan.lane.as_ref().and_then(|lane| self.lanes.get(lane)) else { return };
        let turn = (plan.at, n);
        assert_eq!(lane.running, None, "task {n} begins while another one runs in {:?}", plan.lane);
        let passed_over = lane.waiting.range(..turn).find(|earlier| was_known(earlier, &turn));
        assert_eq!(passed_over, None, "task {n} of {:?} begins before its turn", plan.lane);
        let went_before = lane.begun.range((turn.0, n + 1)..).find(|later| was_known(&turn, later));
        assert_eq!(went_before, None, "task {n} of {:?} runs after one behind it", plan.lane);
        if let Some((lane, turn)) = self.lane_of(n) {
            lane.running = Some(n);
            lane.begun.insert(turn);
        }
    }

    fn done(&mut self, n: u64) {
        self.task(n).may_be_done = true;
        self.no_longer_waits(n);
        if let Some((lane, _)) = self.lane_of(n) {
            assert_eq!(lane.running.take(), Some(n), "task {n} was not running");
        }
    }

    fn ended(&mut self, n: u64) {
        let task = self.task(n);
        assert!(task.may_be_done || task.may_be_cancelled, "task {n} ended by itself");
        task.has_ended = true;
        self.open.remove(&n);
        self.no_longer_waits(n);
    }

    fn no_longer_waits(&mut self, n: u64) {
        if let Some((lane, turn)) = self.lane_of(n) {
            lane.waiting.remove(&turn);
        }
    }

    fn past(&mut self, n: u64, state: &str) {
        let task = self.task(n);
        let is_right = match state {
            "succeeded" => task.may_be_done && !task.is_cancelled,
            "cancelled" => task.may_be_cancelled,
            _ => false,
        };
        assert!(is_right, "task {n} ended otherwise than it did: {state}");
        assert!(self.past.insert(n), "task {n} ended twice");
    }

    /// Everything has ended, and the history was told.
    fn stopped(&mut self) {
        let missing = self.tasks.keys().find(|n| !self.past.contains(n));
        assert_eq!(missing, None, "a task is not in the history");
    }
}
