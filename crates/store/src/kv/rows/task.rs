//! Tasks at rest: what was asked for, how far it has come, and how it ended.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{
    Begun, End, EndedTask, Epoch, RetryPolicy, Spec, Target, Task, TaskId, Timestamp, Waits,
};
use serde::{Deserialize, Serialize};

use super::super::raw;
#[cfg(feature = "embedded")]
use super::write_plain;
use super::{EndStateMirror, IdMirror, ObstacleMirror, Row, WaitStateMirror};

impl Row for Task {
    type Mirror<'a> = TaskMirror<'a>;

    fn mirror(&self) -> TaskMirror<'_> {
        TaskMirror { id: self.id.into(), spec: spec_mirror(&self.spec), progress: self.progress() }
    }

    fn restore(mirror: TaskMirror<'_>) -> Option<Task> {
        let (id, spec) = (mirror.id.restore()?, Arc::new(spec_from(mirror.spec)?));
        Some(mirror.progress.of(id, spec))
    }
}

/// How far a task has come: everything but what was asked for.
trait Progress {
    fn progress(&self) -> ProgressMirror<'_>;
}

impl Progress for Task {
    fn progress(&self) -> ProgressMirror<'_> {
        ProgressMirror {
            revision: self.revision,
            wake_at: self.wake_at.as_micros(),
            parked: self.parked.map(Into::into),
            state: self.state.into(),
            attempts: self.attempts,
            forgiven: self.forgiven,
            crashes: self.crashes,
            begun: self.begun.map(|begun| (begun.epoch.0, begun.lease)),
            last_error: self.last_error.as_deref(),
        }
    }
}

impl ProgressMirror<'_> {
    fn of(self, id: TaskId, spec: Arc<Spec>) -> Task {
        Task {
            id,
            spec,
            revision: self.revision,
            wake_at: Timestamp::from_micros(self.wake_at),
            parked: self.parked.map(Into::into),
            state: self.state.into(),
            attempts: self.attempts,
            forgiven: self.forgiven,
            crashes: self.crashes,
            begun: self.begun.map(|(epoch, lease)| Begun { epoch: Epoch(epoch), lease }),
            last_error: self.last_error.map(Into::into),
        }
    }
}

impl Row for EndedTask {
    type Mirror<'a> = (TaskMirror<'a>, EndMirror<'a>);

    fn mirror(&self) -> Self::Mirror<'_> {
        (self.task.mirror(), end_mirror(&self.end))
    }

    fn restore((task, end): Self::Mirror<'_>) -> Option<Self> {
        Some(EndedTask { task: Task::restore(task)?, end: end_from(end) })
    }
}

fn end_mirror(end: &End) -> EndMirror<'_> {
    EndMirror {
        state: end.state.into(),
        at: end.at.as_micros(),
        result: end.result.clone(),
        error: end.error.as_deref(),
    }
}

fn end_from(end: EndMirror<'_>) -> End {
    End {
        state: end.state.into(),
        at: Timestamp::from_micros(end.at),
        result: end.result,
        error: end.error.map(Into::into),
    }
}

/// An end, written by what differs from the task's row.
#[cfg(feature = "embedded")]
pub(crate) fn write_end(bytes: &mut Vec<u8>, task: &Task, end: &End) {
    write_plain(bytes, &(task.progress(), end_mirror(end)));
}

/// The end of the task with that row. `None`: nothing that could have been written.
#[cfg(feature = "embedded")]
pub(crate) fn read_end(bytes: &[u8], row: &Task) -> Option<EndedTask> {
    let (progress, end): (ProgressMirror<'_>, EndMirror<'_>) = postcard::from_bytes(bytes).ok()?;
    Some(EndedTask { task: progress.of(row.id, row.spec.clone()), end: end_from(end) })
}

/// That an attempt has begun, as the task's row is to know it.
#[cfg(feature = "embedded")]
pub(crate) fn write_beginning(bytes: &mut Vec<u8>, task: &Task) {
    let begun = task.begun.map(|begun| (begun.epoch.0, begun.lease));
    write_plain(bytes, &(task.attempts, task.crashes, begun));
}

/// The row of a task whose attempt has begun.
#[cfg(feature = "embedded")]
pub(crate) fn read_beginning(bytes: &[u8], row: Task) -> Option<Task> {
    let (attempts, crashes, begun): (_, _, Option<(u64, _)>) = postcard::from_bytes(bytes).ok()?;
    let begun = begun.map(|(epoch, lease)| Begun { epoch: Epoch(epoch), lease });
    Some(Task { attempts, crashes, begun, ..row })
}

#[derive(Serialize, Deserialize)]
pub(crate) struct TaskMirror<'a> {
    id: IdMirror,
    #[serde(borrow)]
    spec: SpecMirror<'a>,
    progress: ProgressMirror<'a>,
}

#[derive(Serialize, Deserialize)]
struct ProgressMirror<'a> {
    revision: u32,
    wake_at: i64,
    parked: Option<ObstacleMirror>,
    state: WaitStateMirror,
    attempts: u32,
    forgiven: u32,
    crashes: u16,
    begun: Option<(u64, Option<Duration>)>,
    last_error: Option<&'a str>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct EndMirror<'a> {
    state: EndStateMirror,
    at: i64,
    #[serde(with = "raw")]
    result: Bytes,
    error: Option<&'a str>,
}

#[derive(Serialize, Deserialize)]
struct SpecMirror<'a> {
    at: i64,
    first_at: Option<i64>,
    lane: Option<&'a str>,
    unique_key: Option<&'a str>,
    name: Option<&'a str>,
    #[serde(borrow)]
    target: TargetMirror<'a>,
    #[serde(with = "raw")]
    payload: Bytes,
    retry: Option<RetryMirror>,
    start_by: Option<i64>,
    expires_at: Option<i64>,
    timeout: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
enum TargetMirror<'a> {
    Handler(&'a str),
    Destination(&'a str),
    Worker,
    /// Any of them, with a delivery.
    Delivered(#[serde(borrow)] PlainTargetMirror<'a>, #[serde(with = "raw")] Bytes),
}

#[derive(Serialize, Deserialize)]
enum PlainTargetMirror<'a> {
    Handler(&'a str),
    Destination(&'a str),
    Worker,
}

#[derive(Serialize, Deserialize)]
struct RetryMirror {
    waits: WaitsMirror,
    attempts_max: u32,
    age_max: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
enum WaitsMirror {
    Growing { min: Duration, max: Duration, factor_percent: u32, jitter_percent: u32 },
    Listed(Vec<Duration>),
}

fn spec_mirror(spec: &Spec) -> SpecMirror<'_> {
    SpecMirror {
        at: spec.at.as_micros(),
        first_at: spec.first_at.map(Timestamp::as_micros),
        lane: spec.lane.as_deref(),
        unique_key: spec.unique_key.as_deref(),
        name: spec.name.as_deref(),
        target: target_mirror(&spec.target, &spec.delivery),
        payload: spec.payload.clone(),
        retry: spec.retry.as_ref().map(retry_mirror),
        start_by: spec.start_by.map(Timestamp::as_micros),
        expires_at: spec.expires_at.map(Timestamp::as_micros),
        timeout: spec.timeout,
    }
}

fn spec_from(mirror: SpecMirror<'_>) -> Option<Spec> {
    let retry = match mirror.retry {
        Some(retry) => Some(retry_from(retry)?),
        None => None,
    };
    let (target, delivery) = target_from(mirror.target);
    Some(Spec {
        at: Timestamp::from_micros(mirror.at),
        first_at: mirror.first_at.map(Timestamp::from_micros),
        lane: mirror.lane.map(Into::into),
        unique_key: mirror.unique_key.map(Into::into),
        name: mirror.name.map(Into::into),
        target,
        payload: mirror.payload,
        retry,
        start_by: mirror.start_by.map(Timestamp::from_micros),
        expires_at: mirror.expires_at.map(Timestamp::from_micros),
        timeout: mirror.timeout,
        delivery,
    })
}

fn target_mirror<'a>(target: &'a Target, delivery: &Bytes) -> TargetMirror<'a> {
    match (target, delivery.is_empty()) {
        (Target::Handler(name), true) => TargetMirror::Handler(name),
        (Target::Destination(name), true) => TargetMirror::Destination(name),
        (Target::Worker, true) => TargetMirror::Worker,
        (Target::Handler(name), false) => {
            TargetMirror::Delivered(PlainTargetMirror::Handler(name), delivery.clone())
        }
        (Target::Destination(name), false) => {
            TargetMirror::Delivered(PlainTargetMirror::Destination(name), delivery.clone())
        }
        (Target::Worker, false) => TargetMirror::Delivered(PlainTargetMirror::Worker, delivery.clone()),
    }
}

fn target_from(mirror: TargetMirror<'_>) -> (Target, Bytes) {
    match mirror {
        TargetMirror::Handler(name) => (Target::Handler(name.into()), Bytes::new()),
        TargetMirror::Destination(name) => (Target::Destination(name.into()), Bytes::new()),
        TargetMirror::Worker => (Target::Worker, Bytes::new()),
        TargetMirror::Delivered(PlainTargetMirror::Handler(name), delivery) => {
            (Target::Handler(name.into()), delivery)
        }
        TargetMirror::Delivered(PlainTargetMirror::Destination(name), delivery) => {
            (Target::Destination(name.into()), delivery)
        }
        TargetMirror::Delivered(PlainTargetMirror::Worker, delivery) => (Target::Worker, delivery),
    }
}

fn retry_mirror(retry: &RetryPolicy) -> RetryMirror {
    let waits = match &retry.waits {
        Waits::Growing { min, max, factor_percent, jitter_percent } => WaitsMirror::Growing {
            min: *min,
            max: *max,
            factor_percent: *factor_percent,
            jitter_percent: *jitter_percent,
        },
        Waits::Listed(waits) => WaitsMirror::Listed(waits.to_vec()),
    };
    RetryMirror { waits, attempts_max: retry.attempts_max, age_max: retry.age_max }
}

fn retry_from(mirror: RetryMirror) -> Option<RetryPolicy> {
    let waits = match mirror.waits {
        WaitsMirror::Growing { min, max, factor_percent, jitter_percent } => {
            Waits::Growing { min, max, factor_percent, jitter_percent }
        }
        WaitsMirror::Listed(waits) if waits.is_empty() => return None,
        WaitsMirror::Listed(waits) => Waits::Listed(Cow::Owned(waits)),
    };
    Some(RetryPolicy { waits, attempts_max: mirror.attempts_max, age_max: mirror.age_max })
}
