//! From what the scheduler knows of a task to how it looks over the wire.

use std::time::Duration;

use bytes::Bytes;
use punctual::{EndedTask, Found, RetryPolicy, Target, Task, TaskState, TaskView, Waits};
use punctual_client::wire::{self, Json, Retry, RetryPreset, RetryRule};

use super::draft::{kind, moment_of};
use crate::delivery::Delivery;

/// A task as it is answered; `None` if no more than its end is remembered.
pub fn task(view: &TaskView, queue: &str, full: bool) -> Option<wire::Task> {
    let state = state(view.state());
    match &view.found {
        Found::Live(live) => {
            // That the one that runs has begun may not be on record yet.
            let attempts = live.attempts.max(view.running.unwrap_or_default());
            Some(wire::Task { attempts, ..live_task(live, state, queue, full) })
        }
        Found::Ended(ended) => Some(ended_task(ended, state, queue, full)),
        Found::Forgotten { .. } => None,
    }
}

/// Of which revision it is, as far as that is known.
pub fn revision(found: &Found) -> u32 {
    match found {
        Found::Live(task) => task.revision,
        Found::Ended(ended) => ended.revision(),
        Found::Forgotten { .. } => 1,
    }
}

/// A task that has not ended.
pub fn live_task(task: &Task, state: wire::State, queue: &str, full: bool) -> wire::Task {
    let next_at = (state != wire::State::Blocked).then(|| moment_of(task.due_at()));
    wire::Task { next_at, ..shown(task, state, queue, full) }
}

/// A task that has ended.
pub fn ended_task(ended: &EndedTask, state: wire::State, queue: &str, full: bool) -> wire::Task {
    let EndedTask { task, end } = ended;
    // The task has the beginning of it.
    let whole = end.error.as_deref().filter(|error| full || error.len() <= Task::ERROR_MAX);
    let error = whole.or(task.last_error.as_deref());
    wire::Task {
        ended_at: Some(moment_of(end.at)),
        last_error: error.map(str::to_owned),
        result: full.then(|| result(&end.result)).flatten(),
        revision: ended.revision(),
        ..shown(task, state, queue, full)
    }
}

fn shown(task: &Task, state: wire::State, queue: &str, full: bool) -> wire::Task {
    let spec = &task.spec;
    let plain = wire::Task {
        id: task.id.to_string(),
        queue: queue.to_owned(),
        state,
        at: moment_of(spec.at),
        next_at: None,
        lane: spec.lane.as_deref().map(str::to_owned),
        unique_key: spec.unique_key.as_deref().map(str::to_owned),
        name: spec.name.as_deref().map(str::to_owned),
        priority: task.id.priority.level(),
        attempts: task.attempts,
        target: kind(&spec.target),
        start_by: spec.start_by.map(moment_of),
        expires_at: spec.expires_at.map(moment_of),
        timeout: spec.timeout.map(Into::into),
        last_error: task.last_error.as_deref().map(str::to_owned),
        ended_at: None,
        revision: task.revision,
        warnings: Vec::new(),
        payload: None,
        payload_base64: None,
        http: None,
        handler: None,
        callback: None,
        result: None,
        retry: None,
    };
    if !full {
        return plain;
    }
    let delivery = Delivery::decode(&spec.delivery).unwrap_or_default();
    with_all(plain, &spec.target, &spec.payload, delivery, spec.retry.as_ref())
}

/// What is shown only to those who ask for it: it may be large, or nobody's business.
pub fn with_all(
    task: wire::Task,
    target: &Target,
    payload: &Bytes,
    Delivery { call, callback, .. }: Delivery,
    policy: Option<&RetryPolicy>,
) -> wire::Task {
    let http = call.map(|call| wire::Http {
        url: call.url,
        method: Some(call.method),
        headers: call.headers.into_iter().collect(),
        body: None,
        body_base64: None,
        timeout: call.timeout.map(Into::into),
    });
    let handler = match target {
        Target::Handler(name) => Some(name.to_string()),
        Target::Destination(_) | Target::Worker => None,
    };
    let (payload, payload_base64) = carried(payload);
    let retry = policy.map(retry);
    wire::Task { payload, payload_base64, http, handler, callback, retry, ..task }
}

/// The same without any of it.
pub fn without_all(task: wire::Task) -> wire::Task {
    wire::Task {
        payload: None,
        payload_base64: None,
        http: None,
        handler: None,
        callback: None,
        result: None,
        retry: None,
        ..task
    }
}

/// How many bytes of a task are what it carries, as it is shown.
pub fn bytes_carried(task: &wire::Task) -> usize {
    let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.text().len());
    let bytes = task.payload_base64.as_ref().map_or(0, |payload| payload.0.len());
    json(&task.payload) + json(&task.result) + bytes
}

/// What a task carries: JSON as it is, anything else as base64.
pub fn carried(payload: &Bytes) -> (Option<Json>, Option<wire::Base64>) {
    if payload.is_empty() {
        return (None, None);
    }
    match std::str::from_utf8(payload).ok().and_then(|text| Json::from_text(text).ok()) {
        Some(json) => (Some(json), None),
        None => (None, Some(wire::Base64(payload.to_vec()))),
    }
}

/// What came out of a task: JSON as it is, other text as a string, bytes as base64.
pub fn result(result: &Bytes) -> Option<Json> {
    if result.is_empty() {
        return None;
    }
    match std::str::from_utf8(result) {
        Ok(text) => Json::from_text(text).or_else(|_| Json::of(text)).ok(),
        Err(_) => Json::of(&wire::Base64(result.to_vec())).ok(),
    }
}

/// How far a task has come.
pub fn state(state: TaskState) -> wire::State {
    match state {
        TaskState::Scheduled => wire::State::Scheduled,
        TaskState::Running => wire::State::Running,
        TaskState::Reserved => wire::State::Reserved,
        TaskState::Retrying => wire::State::Retrying,
        TaskState::Blocked => wire::State::Blocked,
        TaskState::Succeeded => wire::State::Succeeded,
        TaskState::Dead => wire::State::Dead,
        TaskState::Cancelled => wire::State::Cancelled,
        TaskState::Expired => wire::State::Expired,
    }
}

/// How a failed task is tried again, by name if it has one. Of a list of waits that has none, the first and the longest
/// are told.
pub fn retry(policy: &RetryPolicy) -> Retry {
    let named = [
        (RetryPolicy::DEFAULT, RetryPreset::Default),
        (RetryPolicy::WEBHOOKS, RetryPreset::Webhooks),
        (RetryPolicy::PAGERDUTY, RetryPreset::Pagerduty),
        (RetryPolicy::SCHEDULE, RetryPreset::Schedule),
    ];
    if let Some((_, preset)) = named.into_iter().find(|(known, _)| known == policy) {
        return Retry::Preset(preset);
    }
    let (min, max, factor) = match &policy.waits {
        Waits::Growing { min, max, factor_percent, .. } => {
            (*min, *max, Some(f64::from(*factor_percent) / 100.0))
        }
        Waits::Listed(waits) => {
            let (first, longest) = (waits.first().copied(), waits.iter().max().copied());
            (first.unwrap_or_default(), longest.unwrap_or_default(), None)
        }
    };
    Retry::Rule(RetryRule {
        min: Some(min.into()),
        max: Some(max.into()),
        factor,
        attempts: Some(policy.attempts_max),
        max_age: policy.age_max.map(|age: Duration| age.into()),
    })
}
