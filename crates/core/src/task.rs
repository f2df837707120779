//! One piece of work, due at one time: what was asked for, how far it has come, and where its row lies.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

use crate::id::{Epoch, Priority, QueueId, Seq, TaskId};
use crate::retry::RetryPolicy;
use crate::time::Timestamp;

/// What was asked for. It changes only when a user changes it; retries leave it alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// When the first attempt may start.
    pub at: Timestamp,
    /// When it was first to start, if it was moved since: a task keeps its identity wherever it is moved.
    pub first_at: Option<Timestamp>,
    /// Tasks of one lane run one at a time, in order.
    pub lane: Option<Box<str>>,
    /// Tells apart tasks of the same lane and time; the same key again is the same task.
    pub unique_key: Option<Box<str>>,
    /// A name of the user's to find it by.
    pub name: Option<Box<str>>,
    /// Who is to run it.
    pub target: Target,
    /// What the target is given. Never looked into.
    pub payload: Bytes,
    /// How it is retried, when not as its queue says.
    pub retry: Option<RetryPolicy>,
    /// A soft deadline: among startable tasks of one priority the nearest goes first.
    pub start_by: Option<Timestamp>,
    /// A hard deadline: not started by then, it ends as expired.
    pub expires_at: Option<Timestamp>,
    /// How long an attempt may take, when not as its queue says.
    pub timeout: Option<Duration>,
    /// How it is to be brought to its target, for whoever brings it there. Never looked into.
    pub delivery: Bytes,
}

impl Spec {
    /// A task for `target` at `at`, with nothing else said.
    pub fn new(target: Target, at: Timestamp) -> Spec {
        Spec {
            at,
            first_at: None,
            lane: None,
            unique_key: None,
            name: None,
            target,
            payload: Bytes::new(),
            retry: None,
            start_by: None,
            expires_at: None,
            timeout: None,
            delivery: Bytes::new(),
        }
    }

    /// What decides the partition, if anything does: the lane, else the unique key, else the name.
    pub fn routing_key(&self) -> Option<&str> {
        self.lane.as_deref().or(self.unique_key.as_deref()).or(self.name.as_deref())
    }

    /// The lane it runs in, told apart from lanes of the same name in other queues.
    pub fn lane_id(&self, queue: QueueId) -> Option<LaneId> {
        self.lane.as_deref().map(|lane| LaneId::of(queue, lane))
    }

    /// Its identity, if it carries a unique key: equal identities are one task.
    pub fn identity(&self, queue: QueueId) -> Option<Identity> {
        let unique_key = self.unique_key.as_deref()?;
        Some(Identity::of(queue, self.lane.as_deref(), self.first_at.unwrap_or(self.at), unique_key))
    }
}

/// Who runs a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A function registered under this name.
    Handler(Arc<str>),
    /// A call to a host: limits and breakers are kept by destination.
    Destination(Arc<str>),
    /// Whichever worker reserves it.
    Worker,
}

impl Target {
    /// The handler's or the destination's.
    pub fn name(&self) -> Option<&str> {
        match self {
            Target::Handler(name) | Target::Destination(name) => Some(name),
            Target::Worker => None,
        }
    }
}

/// A lane as the engine and the store know it: a hash of queue and lane name. Two lanes that
/// share a hash (one chance in 2^64) would run in turn, which harms neither.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LaneId(pub u64);

impl LaneId {
    /// The lane of that name in that queue.
    pub fn of(queue: QueueId, lane: &str) -> LaneId {
        LaneId(xxh3_64_with_seed(lane.as_bytes(), u64::from(queue.0)))
    }
}

/// What makes two tasks the same: queue, lane, time and unique key, hashed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Identity(pub u128);

impl Identity {
    fn of(queue: QueueId, lane: Option<&str>, at: Timestamp, unique_key: &str) -> Identity {
        let lane = lane.unwrap_or_default();
        let mut bytes = Vec::with_capacity(16 + lane.len() + unique_key.len());
        bytes.extend_from_slice(&queue.0.to_be_bytes());
        bytes.extend_from_slice(&at.as_micros().to_be_bytes());
        bytes.extend_from_slice(&(lane.len() as u32).to_be_bytes());
        bytes.extend_from_slice(lane.as_bytes());
        bytes.extend_from_slice(unique_key.as_bytes());
        Identity(xxh3_128(&bytes))
    }
}

/// Why a due task cannot start although its queue could run it. Tasks waiting for the same obstacle
/// are filed together, out of the way of everything else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Obstacle {
    /// Its lane is held by an earlier task.
    Lane(LaneId),
    /// Nobody has registered its handler.
    Handler(u64),
    /// Its destination is at its limit, or its breaker is open.
    Destination(u64),
}

impl Obstacle {
    /// The obstacle of a handler that is registered nowhere.
    pub fn handler(name: &str) -> Obstacle {
        Obstacle::Handler(xxh3_64_with_seed(name.as_bytes(), 1))
    }

    /// The obstacle of a destination that takes no more.
    pub fn destination(name: &str) -> Obstacle {
        Obstacle::Destination(xxh3_64_with_seed(name.as_bytes(), 2))
    }
}

/// A task that has not ended: what was asked for and how far it has come. This is a row of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Fixed at birth.
    pub id: TaskId,
    /// What was asked for.
    pub spec: Arc<Spec>,
    /// Counts the changes to this row: of two rows of one task the higher is the true one.
    pub revision: u32,
    /// What the row is filed under: starts as `at`, and moves with retries and moves.
    pub wake_at: Timestamp,
    /// Filed under this obstacle rather than by time.
    pub parked: Option<Obstacle>,
    /// Why it waits.
    pub state: WaitState,
    /// How many attempts have begun, as far as it is on record. Never falls, so that no two attempts of an epoch share a number.
    pub attempts: u32,
    /// How many of them do not count: interrupted, without a receiver, or before a user's retry.
    pub forgiven: u32,
    /// How often in a row its partition failed while it was running.
    pub crashes: u16,
    /// The attempt that has begun and is not known to have ended.
    pub begun: Option<Begun>,
    /// What the last attempt said when it failed.
    pub last_error: Option<Arc<str>>,
}

impl Task {
    /// A task at its birth: filed under the time in its id.
    pub fn born(id: TaskId, spec: Arc<Spec>) -> Task {
        Task {
            id,
            spec,
            revision: 1,
            wake_at: id.birth,
            parked: None,
            state: WaitState::Scheduled,
            attempts: 0,
            forgiven: 0,
            crashes: 0,
            begun: None,
            last_error: None,
        }
    }

    /// How many bytes it carries along: its payload and its texts.
    pub fn carried_bytes(&self) -> usize {
        let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let spec = &self.spec;
        spec.payload.len()
            + spec.delivery.len()
            + spec.target.name().map_or(0, str::len)
            + text(&spec.lane)
            + text(&spec.unique_key)
            + text(&spec.name)
            + self.last_error.as_ref().map_or(0, |error| error.len())
    }

    /// How many attempts count against its retry policy.
    pub fn counted_attempts(&self) -> u32 {
        self.attempts.saturating_sub(self.forgiven)
    }

    /// What happened before does not count any more.
    pub fn start_afresh(&mut self) {
        self.forgiven = self.attempts;
        self.crashes = 0;
    }

    /// Of what the last attempt said, a task that waits keeps so much: there may be very many of them.
    pub const ERROR_MAX: usize = 4 * 1024;

    /// Keeps no more of an error than a task that waits should.
    pub fn shorten_error(&mut self) {
        if let Some(error) = self.last_error.as_mut().filter(|error| error.len() > Task::ERROR_MAX) {
            *error = error[..error.floor_char_boundary(Task::ERROR_MAX)].into();
        }
    }

    /// Whether its `expires_at` has come: no attempt may start any more.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.spec.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// When its next attempt may start.
    pub fn due_at(&self) -> Timestamp {
        self.attempt_due_at(self.attempts + 1)
    }

    /// When the attempt of this number may start. Its row may lie later: none is filed below its window's low-water
    /// mark, and when the wall clock was set back, a new task can be due before that. After the first attempt only
    /// its row knows its time.
    pub fn attempt_due_at(&self, attempt: u32) -> Timestamp {
        let is_first = attempt == 1 && self.state == WaitState::Scheduled;
        if is_first { self.spec.at.min(self.wake_at) } else { self.wake_at }
    }

    /// Where its row lies.
    pub fn place(&self) -> Place {
        let key = self.key();
        match self.parked {
            Some(obstacle) => Place::Parked(obstacle, key),
            None => Place::Window(self.window(), key),
        }
    }

    /// The order among tasks of one window, one lane or one obstacle.
    pub fn key(&self) -> RowKey {
        RowKey { wake_at: self.wake_at, seq: self.id.seq }
    }

    /// The window it is loaded with.
    pub fn window(&self) -> WindowId {
        WindowId { queue: self.id.queue, priority: self.id.priority }
    }

    /// The lane it runs in.
    pub fn lane_id(&self) -> Option<LaneId> {
        self.spec.lane_id(self.id.queue)
    }
}

/// Why a task that has not ended waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WaitState {
    /// For its time.
    #[default]
    Scheduled,
    /// For its next attempt.
    Retrying,
    /// For a person: its attempts ran out, and it holds its lane until it is retried or cancelled.
    Blocked,
}

/// An attempt that has begun, as far as the store knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begun {
    /// The ownership it was started under.
    pub epoch: Epoch,
    /// Set when the attempt may outlive that ownership: how long a new owner must wait for its
    /// report before it may start another. A duration, because clocks of two nodes do not agree.
    pub lease: Option<Duration>,
}

/// A queue's tasks of one priority: loaded together, in order of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WindowId {
    /// The queue.
    pub queue: QueueId,
    /// The priority.
    pub priority: Priority,
}

/// The order of rows within a window or under an obstacle: by time, then by acceptance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RowKey {
    /// When it is to be looked at.
    pub wake_at: Timestamp,
    /// The order of acceptance.
    pub seq: Seq,
}

impl RowKey {
    /// Before every row.
    pub const FIRST: RowKey = RowKey { wake_at: Timestamp::MIN, seq: Seq(0) };

    /// Before every row of that time.
    pub fn at(wake_at: Timestamp) -> RowKey {
        RowKey { wake_at, seq: Seq(0) }
    }

    /// Just after this row.
    pub fn after(self) -> RowKey {
        RowKey { wake_at: self.wake_at, seq: self.seq.next() }
    }
}

/// Where a row lies within its partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// By time, with the others of its queue and priority.
    Window(WindowId, RowKey),
    /// Under what keeps it from starting.
    Parked(Obstacle, RowKey),
}

/// How a task ended. What has ended never runs again, except that what is dead can be retried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EndState {
    /// An attempt succeeded.
    Succeeded,
    /// Given up: attempts ran out, or it was set aside after crashes.
    Dead,
    /// Cancelled before an attempt could succeed.
    Cancelled,
    /// Not started by `expires_at`.
    Expired,
}

/// How a task ended, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// How.
    pub state: EndState,
    /// When the end was decided.
    pub at: Timestamp,
    /// What the attempt returned.
    pub result: Bytes,
    /// What went wrong, for a task that did not succeed.
    pub error: Option<Arc<str>>,
}

/// A task that has ended: a row of the history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndedTask {
    /// The task as it last was.
    pub task: Task,
    /// How it ended.
    pub end: End,
}

impl EndedTask {
    /// What a row of the history takes besides what its task carries and brought forth, about.
    const ROW_BYTES: usize = 128;

    /// Its revision: the end counts as one more change than its row has seen.
    pub fn revision(&self) -> u32 {
        self.task.revision + 1
    }

    /// How many bytes it takes in the history, about. All stores count alike, so that a budget means the same to each.
    pub fn kept_bytes(task: &Task, end: &End) -> u64 {
        let end_bytes = end.result.len() + end.error.as_ref().map_or(0, |error| error.len());
        (EndedTask::ROW_BYTES + task.carried_bytes() + end_bytes) as u64
    }
}
