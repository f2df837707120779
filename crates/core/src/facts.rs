//! What a store knows, as the engine is told it.

use std::time::Duration;

use crate::id::TaskId;
use crate::task::{EndState, EndedTask, Identity, Obstacle, Task, WindowId};
use crate::time::Timestamp;

/// What a new owner must know before it begins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// The windows that hold rows, or have a low-water mark.
    pub windows: Vec<WindowStanding>,
    /// Live tasks whose attempt was recorded with a lease: they may still be running somewhere.
    pub leased: Vec<Task>,
}

/// One window, as a new owner finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowStanding {
    /// Which.
    pub window: WindowId,
    /// Nothing lives before this: read from here.
    pub low_water: Timestamp,
    /// A lower bound of the first row's wake time; `None` when there is no row.
    pub first: Option<Timestamp>,
}

/// An obstacle that stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Which.
    pub obstacle: Obstacle,
    /// The task that holds the lane although its row lies elsewhere in the order.
    pub holder: Option<TaskId>,
}

/// A piece of a window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// In order; never one that has ended.
    pub tasks: Vec<Task>,
    /// A lower bound of the wake time of the first row behind them; `None` when there is none.
    pub next: Option<Timestamp>,
}

/// What to find a task by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Query {
    /// Its id.
    Id(TaskId),
    /// Its identity.
    Identity(Identity),
}

/// What is known about a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// It has not ended.
    Live(Task),
    /// It has ended, and is still in the history.
    Ended(EndedTask),
    /// It has ended and left the history; only its identity is remembered.
    Forgotten {
        /// Whose identity it was.
        id: TaskId,
        /// How it ended.
        state: EndState,
    },
}

impl Found {
    /// Whose it is.
    pub fn id(&self) -> TaskId {
        match self {
            Found::Live(task) => task.id,
            Found::Ended(ended) => ended.task.id,
            Found::Forgotten { id, .. } => *id,
        }
    }
}

/// What history to drop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// A bucket may go when everything that succeeded, was cancelled or expired in it ended before this …
    pub finished_before: Timestamp,
    /// … and everything that died in it ended before this.
    pub dead_before: Timestamp,
    /// Identities of tasks that ended before this are forgotten, by whole hours.
    pub identity_before: Timestamp,
    /// So many bytes of this queue's history are kept, as [`EndedTask::kept_bytes`] counts them; of more than that the
    /// oldest goes first. `None`: any number.
    pub bytes_max: Option<u64>,
}

/// What pruning did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// Buckets dropped, or cut because of a budget of bytes.
    pub buckets: usize,
    /// Bytes of the queue's history that are left in the partition.
    pub bytes: u64,
    /// Whether there is more to drop.
    pub more: bool,
    /// How far the times of the retention must move on, all alike, until more can go: what lets an owner wait
    /// without looking. `None` when nothing is left. Says nothing while there is `more`.
    pub next_in: Option<Duration>,
}
