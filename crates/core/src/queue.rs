//! Named settings for tasks: how they are retried, how many run at once, how fast, and whether at all.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::facts::Retention;
use crate::id::{Priority, QueueId};
use crate::retry::RetryPolicy;
use crate::task::EndState;
use crate::time::Timestamp;

/// The settings of one queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueSettings {
    /// How a failed task is tried again, unless it says so itself.
    pub retry: RetryPolicy,
    /// What happens to a lane whose head has run out of attempts.
    pub on_exhausted: OnExhausted,
    /// The priority of tasks with a lane, and of others that name none. Decided when the queue is made: a lane lies
    /// in the window of its queue's priority, and in two windows it would have two orders.
    pub priority: Priority,
    /// How many attempts may run at once on this node; `None`: as many as there are slots.
    pub running_max: Option<u32>,
    /// How many attempts may start per second on this node.
    pub rate: Option<Rate>,
    /// Nothing starts while this is set.
    pub paused: bool,
    /// How long an attempt may take before it is stopped and counted as failed.
    pub timeout: Duration,
    /// All tasks in one partition, so that the limits above are exact in a cluster. Decided when the queue is made:
    /// the tasks of a lane or a unique key must not lie in two partitions.
    pub pinned: bool,
    /// Each start is recorded, and waited for, before the attempt begins: no two copies, even
    /// across a change of owner.
    pub exclusive: bool,
    /// What happens to a task whose time has passed.
    pub past: Past,
    /// How long a finished task can be looked up.
    pub keep_succeeded: Duration,
    /// How long a dead task can be looked up and retried.
    pub keep_dead: Duration,
    /// How long a unique key is remembered after its task has ended; never shorter than the task itself.
    pub keep_identities: Duration,
    /// How many bytes of history are kept on this node, however young: of more than that the oldest goes first, a little
    /// more than needed, so that it need not be done with every end. `None`: any number. Unique keys are kept all the same.
    pub keep_bytes: Option<u64>,
}

impl QueueSettings {
    /// How long after its end a task that ended so can be looked up.
    pub fn keep(&self, state: EndState) -> Duration {
        if state == EndState::Dead { self.keep_dead } else { self.keep_succeeded }
    }

    /// What need not be kept any longer because of its age.
    pub fn retention(&self, now: Timestamp) -> Retention {
        let identities = self.keep_identities.max(self.keep_succeeded).max(self.keep_dead);
        Retention {
            finished_before: now - self.keep_succeeded,
            dead_before: now - self.keep_dead,
            identity_before: now - identities,
            bytes_max: None,
        }
    }
}

impl Default for QueueSettings {
    fn default() -> Self {
        QueueSettings {
            retry: RetryPolicy::DEFAULT,
            on_exhausted: OnExhausted::Block,
            priority: Priority::default(),
            running_max: None,
            rate: None,
            paused: false,
            timeout: Duration::from_secs(30),
            pinned: false,
            exclusive: false,
            past: Past::Reject,
            keep_succeeded: Duration::from_secs(24 * 3600),
            keep_dead: Duration::from_secs(7 * 24 * 3600),
            keep_identities: Duration::from_secs(14 * 24 * 3600),
            keep_bytes: Some(1 << 30),
        }
    }
}

/// At most this many starts per period, and no more than `burst` of them at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// How many starts.
    pub starts: u32,
    /// In how long.
    pub per: Duration,
    /// How many may be saved up while nothing starts.
    pub burst: u32,
}

/// What happens to a lane whose head has run out of attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnExhausted {
    /// The lane waits until a person retries or cancels the head.
    #[default]
    Block,
    /// The head is given up and the lane goes on.
    DeadLetter,
}

/// What happens to a new task whose time is further in the past than the grace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Past {
    /// It is refused.
    #[default]
    Reject,
    /// It runs at once.
    RunNow,
}

/// What happens when a task of the same identity is there already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnConflict {
    /// The new one takes its place, as long as no attempt is running.
    #[default]
    Replace,
    /// The old one stays, and is returned.
    Keep,
    /// The new one is refused, also if the old one has ended.
    Error,
}

/// The settings of all queues: shared by the engines of a node, replaced as a whole when one changes.
#[derive(Clone, Default, Debug)]
pub struct Queues {
    settings: FxHashMap<QueueId, Arc<QueueSettings>>,
    fallback: Arc<QueueSettings>,
}

impl Queues {
    /// The settings of a queue; the defaults for one that has none of its own.
    pub fn get(&self, queue: QueueId) -> &QueueSettings {
        self.settings.get(&queue).unwrap_or(&self.fallback)
    }

    /// The settings that a queue was given; `None` when it has the defaults.
    pub fn own(&self, queue: QueueId) -> Option<&QueueSettings> {
        self.settings.get(&queue).map(|settings| &**settings)
    }

    /// The queues that were given settings, in order.
    pub fn numbers(&self) -> Vec<QueueId> {
        let mut numbers: Vec<QueueId> = self.settings.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Gives a queue its settings.
    pub fn set(&mut self, queue: QueueId, settings: QueueSettings) {
        self.settings.insert(queue, Arc::new(settings));
    }
}
