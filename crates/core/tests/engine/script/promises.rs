//! What must hold in every script, whatever its transcript says: never early, never twice at once, in order within
//! a lane, nothing after its end, everything ended once.

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::{
    BootTime, Change, Created, Found, LaneId, Now, PartitionId, QueueId, RowKey, Task, TaskId, Timestamp,
    Token, WaitState,
};

/// How many tasks of a lane are looked at: what runs is among the first.
const LANE_LOOK_MAX: usize = 100;

/// What a careful observer of the store and of the attempts knows.
#[derive(Default)]
pub struct Promises {
    live: BTreeMap<TaskId, Known>,
    ended: BTreeSet<TaskId>,
    answered: BTreeSet<TaskId>,
    /// Live tasks of each lane in order.
    lanes: BTreeMap<(QueueId, LaneId), BTreeSet<(RowKey, TaskId)>>,
    running: BTreeMap<TaskId, Token>,
    /// Attempts that were reported on or stopped: an owner that has not heard of it may still wait for them.
    over: BTreeSet<Token>,
    blocked: BTreeSet<TaskId>,
    /// Tasks of writes with an unknown outcome, or filed at a mark: nobody can say where they stand in their lane.
    uncertain: BTreeSet<TaskId>,
    /// The latest wall time there was: what was due then may have become the head of its lane, although the clock was
    /// set back since.
    latest: Timestamp,
}

struct Known {
    lane: Option<(QueueId, LaneId)>,
    /// Its place in the order of its lane, and since when it has had it.
    key: RowKey,
    since: Now,
    /// Its row as it was last filed.
    task: Task,
    /// Since when it is the head of its lane: those that come after that wait for it, whatever their time.
    heads_since: Option<BootTime>,
}

impl Promises {
    pub fn written(&mut self, now: Now, change: &Change) {
        self.latest = self.latest.max(now.wall);
        match change {
            Change::Accepted(task) | Change::Revived(task) => {
                self.ended.remove(&task.id);
                self.place(now, task);
            }
            Change::Refiled { task, was, .. } => {
                self.was(task.id, *was);
                self.place(now, task);
            }
            Change::Ended { task, .. } => {
                self.was(task.id, task.state);
                assert!(self.ended.insert(task.id), "{:?} ended twice", task.id.seq);
                self.remove(task.id);
            }
            Change::Held { holder: Some(id), .. } | Change::Began { id, .. } => self.heads(now, *id),
            _ => {}
        }
    }

    /// Whoever counts tasks by their state relies on this.
    fn was(&self, id: TaskId, was: WaitState) {
        if let Some(known) = self.live.get(&id) {
            assert_eq!(known.task.state, was, "{:?} was filed as the one, and left as the other", id.seq);
        }
    }

    fn heads(&mut self, now: Now, id: TaskId) {
        if let Some(known) = self.live.get_mut(&id) {
            known.heads_since = known.heads_since.or(Some(now.boot));
        }
    }

    /// What the store says of a task after a write that nobody knows the outcome of.
    pub fn looked_up(&mut self, now: Now, id: TaskId, found: Option<Found>) {
        match found {
            Some(Found::Live(task)) => {
                self.ended.remove(&id);
                self.place(now, &task);
                // Half a move may leave it the head of its lane, or not.
                self.uncertain.insert(id);
            }
            Some(_) => {
                self.ended.insert(id);
                self.remove(id);
            }
            None => self.remove(id),
        }
    }

    /// These exist from now on: somebody was told.
    pub fn created(&mut self, now: Now, created: &[Created]) {
        let now = self.at_the_latest(now);
        for created in created {
            if let Created::New(id) = created {
                assert!(self.live.contains_key(id) || self.ended.contains(id), "{:?} is nowhere", id.seq);
                self.answered.insert(*id);
                if let Some(known) = self.live.get_mut(id) {
                    known.since = now;
                }
            }
        }
    }

    pub fn attempt_starts(&mut self, now: Now, token: Token, row: Option<Found>) {
        self.latest = self.latest.max(now.wall);
        let Some(Found::Live(task)) = row else {
            panic!("{:?} starts, but the store says {row:?}", token.id.seq);
        };
        let due_at = task.attempt_due_at(token.attempt);
        assert!(due_at <= now.wall, "{:?} starts early: {due_at:?} at {:?}", token.id.seq, now.wall);
        assert!(!task.has_expired(now.wall), "{:?} starts although it has expired", token.id.seq);
        assert!(task.state != WaitState::Blocked, "{:?} starts while it is blocked", token.id.seq);
        if let Some(before) = self.running.insert(token.id, token) {
            assert!(before == token, "{:?} runs twice: {before:?} and {token:?}", token.id.seq);
        }
        self.check_lane(token.id);
        self.heads(now, token.id);
    }

    /// An owner that has been replaced starts it, which only one does that trusts itself for too long: it may head its
    /// lane out of turn.
    pub fn stray_starts(&mut self, id: TaskId) {
        self.uncertain.insert(id);
    }

    /// A new owner knows of an attempt that it did not start: nothing may start beside it until it is over.
    pub fn attempt_goes_on(&mut self, token: Token) {
        if !self.over.contains(&token) {
            self.running.entry(token.id).or_insert(token);
        }
    }

    /// The attempt was reported on, or stopped.
    pub fn attempt_over(&mut self, token: Token) {
        self.over.insert(token);
        if self.running.get(&token.id) == Some(&token) {
            self.running.remove(&token.id);
        }
    }

    /// The labels of heads that wait for a person.
    pub fn blocked(&self, labels: &BTreeMap<TaskId, String>) -> Vec<String> {
        self.blocked.iter().filter_map(|id| labels.get(id).cloned()).collect()
    }

    /// Nobody can know any more what runs in these partitions.
    pub fn forget_attempts(&mut self, of: impl Fn(PartitionId) -> bool, partitions: u16) {
        self.running.retain(|id, _| !of(id.partition(partitions)));
    }

    /// After calm, everything that was accepted has ended.
    pub fn check_all_ended(&self) {
        let left: Vec<_> =
            self.answered.iter().filter(|id| !self.ended.contains(*id)).map(|id| id.seq).collect();
        assert!(left.is_empty(), "{} tasks never ended: {left:?}", left.len());
    }

    fn check_lane(&self, id: TaskId) {
        let Some(known) = self.live.get(&id) else { return };
        let Some(lane) = known.lane else { return };
        let beside = self.lanes[&lane].iter().map(|(_, other)| *other).take(LANE_LOOK_MAX);
        for other in beside.filter(|other| *other != id) {
            assert!(!self.running.contains_key(&other), "{:?} and {:?} run at once", id.seq, other.seq);
        }
        for (_, other) in self.lanes[&lane].range(..(known.key, id)) {
            let earlier = &self.live[other];
            // One that came when this was due already may go before or after it.
            let before = earlier.since.boot < known.since.boot || earlier.since.wall < known.key.wake_at;
            let certain = !self.uncertain.contains(other) && !self.uncertain.contains(&id);
            let in_time = known.heads_since.is_none_or(|since| earlier.since.boot < since);
            let was_there = before && in_time && certain && self.answered.contains(other);
            assert!(!was_there, "{:?} starts before {:?}, which is earlier in its lane", id.seq, other.seq);
        }
    }

    fn at_the_latest(&mut self, now: Now) -> Now {
        self.latest = self.latest.max(now.wall);
        Now { wall: self.latest, ..now }
    }

    fn place(&mut self, now: Now, task: &Task) {
        let now = self.at_the_latest(now);
        let lane = task.lane_id().map(|lane| (task.id.queue, lane));
        let known = self.live.get(&task.id);
        let stays = known.filter(|known| asked_at(&known.task) == asked_at(task));
        let heads_since = stays.and_then(|known| known.heads_since);
        // A retry keeps its place in the order; a user can give it another time, or have it run sooner.
        let key = stays.map_or(task.key(), |known| known.key.min(task.key()));
        let before = known.map(|known| (known.key, known.since));
        let goes_back = known.is_some_and(|known| may_be_moved_back(&known.task, task));
        let since = before.filter(|(old, _)| *old == key).map_or(now, |(_, since)| since);
        self.remove(task.id);
        if let Some(lane) = lane {
            self.lanes.entry(lane).or_default().insert((key, task.id));
        }
        self.live.insert(task.id, Known { lane, key, since, task: task.clone(), heads_since });
        // The clock was set back: it was due once already and may head its lane, or it is filed at a mark, where it goes
        // in order of acceptance.
        let comes_again = before.is_some_and(|(old, _)| key < old && old.wake_at <= now.wall);
        if comes_again || goes_back || task.due_at() < task.wake_at {
            self.uncertain.insert(task.id);
        }
        if task.state == WaitState::Blocked {
            self.blocked.insert(task.id);
        }
    }

    fn remove(&mut self, id: TaskId) {
        self.blocked.remove(&id);
        let Some(Known { lane: Some(lane), key, .. }) = self.live.remove(&id) else { return };
        let tasks = self.lanes.get_mut(&lane).expect("a known lane");
        tasks.remove(&(key, id));
        if tasks.is_empty() {
            self.lanes.remove(&lane);
        }
    }
}

/// The time the user asked for, and the one before it was moved.
fn asked_at(task: &Task) -> (Timestamp, Option<Timestamp>) {
    (task.spec.at, task.spec.first_at)
}

/// Whether a user may have moved a task that was run now back to the time it had: then it has lost its place. It has
/// not if that time happens to be its window's mark.
fn may_be_moved_back(before: &Task, after: &Task) -> bool {
    before.attempts == after.attempts && before.wake_at < after.wake_at && after.wake_at == after.spec.at
}
