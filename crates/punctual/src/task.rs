//! What users say when they want something done later.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{Limits, OnConflict, Priority, Refusal, RetryPolicy, Spec, Target, Timestamp, check};
use serde::Serialize;

use crate::time::IntoTimestamp;

/// A task to be scheduled.
///
/// ```
/// use std::time::Duration;
/// use punctual::NewTask;
///
/// let task = NewTask::new("send-invoice").payload(&42)?.after(Duration::from_secs(90)).lane("customer-7");
/// # Ok::<(), punctual::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NewTask {
    queue: Cow<'static, str>,
    due: Due,
    priority: Option<u8>,
    on_conflict: OnConflict,
    spec: Spec,
}

/// When a task is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    At(Timestamp),
    After(Duration),
}

/// A task that nothing is wrong with.
pub(crate) struct Checked {
    pub queue: Cow<'static, str>,
    pub priority: Option<Priority>,
    pub on_conflict: OnConflict,
    pub spec: Arc<Spec>,
}

const BAD_PRIORITY: Refusal = Refusal::BadSetting { what: "priority", hint: "must be 0 to 9" };

impl NewTask {
    /// A task for the handler of that name, due now, in the queue `default`.
    pub fn new(handler: &str) -> NewTask {
        NewTask::to(Target::Handler(handler.into()))
    }

    /// A task for whichever worker reserves it.
    pub fn for_worker() -> NewTask {
        NewTask::to(Target::Worker)
    }

    /// A task for any target.
    pub fn to(target: Target) -> NewTask {
        NewTask {
            queue: Cow::Borrowed("default"),
            due: Due::After(Duration::ZERO),
            priority: None,
            on_conflict: OnConflict::default(),
            spec: Spec::new(target, Timestamp::MIN),
        }
    }

    /// A task of that queue, as it will be known to whoever looks it up, for programs that have all of it at hand.
    pub fn of(queue: &str, spec: Spec) -> NewTask {
        let (queue, due) = (Cow::Owned(queue.to_owned()), Due::At(spec.at));
        NewTask { queue, due, priority: None, on_conflict: OnConflict::default(), spec }
    }

    /// What the handler is given: anything that serde can write as JSON.
    pub fn payload(self, payload: &impl Serialize) -> Result<NewTask, crate::Error> {
        Ok(self.payload_bytes(serde_json::to_vec(payload).map_err(crate::Error::Payload)?))
    }

    /// What the handler is given, byte for byte.
    pub fn payload_bytes(mut self, payload: impl Into<Bytes>) -> NewTask {
        self.spec.payload = payload.into();
        self
    }

    /// The queue it waits in. A queue that does not exist yet is made, with the default settings.
    pub fn queue(mut self, queue: &str) -> NewTask {
        self.queue = Cow::Owned(queue.to_owned());
        self
    }

    /// Due at that time: a [`Timestamp`] or a [`std::time::SystemTime`].
    pub fn at(mut self, at: impl IntoTimestamp) -> NewTask {
        self.due = Due::At(at.into_timestamp());
        self
    }

    /// Due after that long.
    pub fn after(mut self, delay: Duration) -> NewTask {
        self.due = Due::After(delay);
        self
    }

    /// Tasks of one lane run one at a time, in order of their time.
    pub fn lane(mut self, lane: &str) -> NewTask {
        self.spec.lane = Some(lane.into());
        self
    }

    /// The same key, lane and time again is the same task.
    pub fn unique_key(mut self, key: &str) -> NewTask {
        self.spec.unique_key = Some(key.into());
        self
    }

    /// A name to list it by.
    pub fn name(mut self, name: &str) -> NewTask {
        self.spec.name = Some(name.into());
        self
    }

    /// 0 goes first, 9 last; not for tasks with a lane.
    pub fn priority(mut self, level: u8) -> NewTask {
        self.priority = Some(level);
        self
    }

    /// How it is retried, when not as its queue says.
    pub fn retry(mut self, policy: RetryPolicy) -> NewTask {
        self.spec.retry = Some(policy);
        self
    }

    /// Among tasks that could start, the nearest deadline goes first.
    pub fn start_by(mut self, at: impl IntoTimestamp) -> NewTask {
        self.spec.start_by = Some(at.into_timestamp());
        self
    }

    /// Not started by then, it never is.
    pub fn expires_at(mut self, at: impl IntoTimestamp) -> NewTask {
        self.spec.expires_at = Some(at.into_timestamp());
        self
    }

    /// How long an attempt may take, when not as its queue says.
    pub fn timeout(mut self, timeout: Duration) -> NewTask {
        self.spec.timeout = Some(timeout);
        self
    }

    /// How it is to be brought to its target, for whoever brings it there: up to 16 KiB that nobody else looks into.
    pub fn delivery(mut self, delivery: impl Into<Bytes>) -> NewTask {
        self.spec.delivery = delivery.into();
        self
    }

    /// What happens when a task of the same unique key, lane and time is there already.
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> NewTask {
        self.on_conflict = on_conflict;
        self
    }

    /// What was asked for, with its time, if all of it is sound.
    pub(crate) fn check(mut self, now: Timestamp, limits: &Limits) -> Result<Checked, Refusal> {
        check::queue_name(&self.queue)?;
        self.spec.at = self.due.at(now);
        check::spec(&self.spec, limits)?;
        let priority = self.priority.map(|level| Priority::new(level).ok_or(BAD_PRIORITY)).transpose()?;
        if priority.is_some() && self.spec.lane.is_some() {
            return Err(Refusal::PriorityWithLane);
        }
        Ok(Checked { queue: self.queue, priority, on_conflict: self.on_conflict, spec: Arc::new(self.spec) })
    }
}

impl Due {
    fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Due::At(at) => at,
            Due::After(delay) => crate::time::after(now, delay),
        }
    }
}
