//! What users are told about tasks, and how they say which ones they mean.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use punctual_core::{EndState, Found, Target, TaskId, Timestamp, WaitState};
use punctual_store::PageKey;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::time::IntoTimestamp;

/// What became of a task that was scheduled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scheduled {
    /// It is new.
    New(TaskId),
    /// It took the place of a waiting task of the same identity.
    Replaced(TaskId),
    /// A task of the same identity was there, and stays.
    Kept(TaskId),
    /// A task of the same identity has ended, and will not run again.
    Ended(TaskId, EndState),
}

impl Scheduled {
    /// The task that stands for the request.
    pub fn id(&self) -> TaskId {
        match self {
            Scheduled::New(id) | Scheduled::Replaced(id) | Scheduled::Kept(id) | Scheduled::Ended(id, _) => {
                *id
            }
        }
    }
}

/// What is known about a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskView {
    /// What the store knows.
    pub found: Found,
    /// The attempt that runs at this moment.
    pub running: Option<u32>,
}

impl TaskView {
    /// Whether it is past its `expires_at`, and nobody has put its end on record.
    pub(crate) fn is_overdue(&self, now: Timestamp) -> bool {
        self.running.is_none() && matches!(&self.found, Found::Live(task) if task.has_expired(now))
    }

    /// How far it has come, in one word.
    pub fn state(&self) -> TaskState {
        match &self.found {
            Found::Live(task) => match (self.running, &task.spec.target, task.state) {
                (Some(_), Target::Worker, _) => TaskState::Reserved,
                (Some(_), _, _) => TaskState::Running,
                (None, _, WaitState::Scheduled) => TaskState::Scheduled,
                (None, _, WaitState::Retrying) => TaskState::Retrying,
                (None, _, WaitState::Blocked) => TaskState::Blocked,
            },
            Found::Ended(ended) => ended.end.state.into(),
            Found::Forgotten { state, .. } => (*state).into(),
        }
    }
}

/// How far a task has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskState {
    /// It waits for its time, or for whatever keeps it from starting.
    Scheduled,
    /// An attempt runs.
    Running,
    /// A worker has it.
    Reserved,
    /// An attempt failed; it waits for the next one.
    Retrying,
    /// Its attempts ran out, and it holds its lane until it is retried or cancelled.
    Blocked,
    /// An attempt succeeded.
    Succeeded,
    /// It was given up.
    Dead,
    /// It was cancelled.
    Cancelled,
    /// It was not started in time.
    Expired,
}

impl From<EndState> for TaskState {
    fn from(state: EndState) -> TaskState {
        match state {
            EndState::Succeeded => TaskState::Succeeded,
            EndState::Dead => TaskState::Dead,
            EndState::Cancelled => TaskState::Cancelled,
            EndState::Expired => TaskState::Expired,
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TaskState::Scheduled => "scheduled",
            TaskState::Running => "running",
            TaskState::Reserved => "reserved",
            TaskState::Retrying => "retrying",
            TaskState::Blocked => "blocked",
            TaskState::Succeeded => "succeeded",
            TaskState::Dead => "dead",
            TaskState::Cancelled => "cancelled",
            TaskState::Expired => "expired",
        })
    }
}

/// How a task ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskResult {
    /// How.
    pub state: EndState,
    /// What its handler returned, as JSON; empty for nothing.
    pub result: Bytes,
    /// What went wrong.
    pub error: Option<Arc<str>>,
}

impl TaskResult {
    /// What the handler returned; [`Error::NotSucceeded`] if the task ended in another way.
    pub fn read<R: DeserializeOwned>(&self) -> Result<R, Error> {
        if self.state != EndState::Succeeded {
            return Err(Error::NotSucceeded { state: self.state, error: self.error.clone() });
        }
        let json = if self.result.is_empty() { b"null" } else { &self.result[..] };
        serde_json::from_slice(json).map_err(Error::Payload)
    }
}

/// How busy a scheduler is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Tasks held in memory. The others lie in the store.
    pub in_memory: usize,
    /// Attempts that run.
    pub running: usize,
    /// Callers who wait for a task to end. Some may have stopped waiting, and are forgotten a little later.
    pub waiters: usize,
    /// Destinations that are left alone for a while because they failed.
    pub breakers_open: usize,
    /// Partitions that this scheduler owns.
    pub partitions_owned: usize,
    /// Partitions that there are.
    pub partitions: usize,
}

/// Nothing is left to do at this time: nothing runs but what workers hold, and all that happened is on record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quiet {
    /// What time it is.
    pub now: Timestamp,
    /// When there is something to do again, if the clocks run evenly until then.
    pub next_at: Option<Timestamp>,
}

/// Which tasks to list.
///
/// ```
/// use punctual::{EndState, Filter};
///
/// let waiting = Filter::live().queue("mail").lane("customer-7");
/// let given_up = Filter::ended().queue("mail").state(EndState::Dead);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    pub(crate) queue: Option<Box<str>>,
    pub(crate) rest: punctual_store::Filter,
}

impl Filter {
    /// Tasks that have not ended, in order of the time they wait for.
    pub fn live() -> Filter {
        Filter { queue: None, rest: punctual_store::Filter::default() }
    }

    /// Tasks that have ended, in order of their birth.
    pub fn ended() -> Filter {
        Filter { queue: None, rest: punctual_store::Filter { ended: true, ..Default::default() } }
    }

    /// Only of this queue.
    pub fn queue(mut self, name: &str) -> Filter {
        self.queue = Some(name.into());
        self
    }

    /// Only of this lane.
    pub fn lane(mut self, lane: &str) -> Filter {
        self.rest.lane = Some(lane.into());
        self
    }

    /// Only of this name.
    pub fn name(mut self, name: &str) -> Filter {
        self.rest.name = Some(name.into());
        self
    }

    /// Only those that ended so.
    pub fn state(mut self, state: EndState) -> Filter {
        self.rest.ended = true;
        self.rest.state = Some(state);
        self
    }

    /// Not before this: the time a live task waits for, or the birth of an ended one.
    pub fn from(mut self, at: impl IntoTimestamp) -> Filter {
        self.rest.from = Some(at.into_timestamp());
        self
    }

    /// Before this.
    pub fn until(mut self, at: impl IntoTimestamp) -> Filter {
        self.rest.until = Some(at.into_timestamp());
        self
    }
}

impl Default for Filter {
    fn default() -> Self {
        Filter::live()
    }
}

/// A page of tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// In order.
    pub tasks: Vec<Found>,
    /// Where the next page begins; `None` when this was the last. A page may be short and still have a next one.
    pub next: Option<PageKey>,
}

impl From<punctual_store::Page> for Page {
    fn from(page: punctual_store::Page) -> Page {
        let tasks = page.tasks.into_iter().map(|listed| match listed {
            punctual_store::Listed::Live(task) => Found::Live(task),
            punctual_store::Listed::Ended(ended) => Found::Ended(ended),
        });
        Page { tasks: tasks.collect(), next: page.next }
    }
}
