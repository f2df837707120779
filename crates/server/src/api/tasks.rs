//! One task: looking at it, changing it, cancelling it, and waiting for its result.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use punctual::{Error, Found, Spec, Target, Task, TaskId, TaskState, TaskView};
use punctual_client::wire::{self, Change};

use super::ask::{self, Asker, Full, Name, Query, task_id};
use super::draft::{body, call_of, check_zone, due, moment, payload, retry_policy};
use super::expected::{Expected, Unless};
use super::failure::Failure;
use super::reply::{json, tagged, unchanged};
use super::verbs::{TASK_VERBS, TaskVerb, name_and_verb};
use super::view;
use crate::app::{App, Scheduler};
use crate::call::Call;
use crate::delivery::Delivery;

/// Nobody waits longer in one request.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// `GET /v1/tasks/{id}`
pub async fn get(
    asker: Asker,
    ask::Task(id): ask::Task,
    Full(full): Full,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let unless = Unless::read(&headers)?;
    let (task, view) = look(&asker.scheduler, id, full).await?;
    let revision = u64::from(task.revision);
    // A task does not get another revision when an attempt begins, but is not what it was.
    match unless.names(Some(revision)) && view.running.is_none() {
        true => Ok(unchanged(revision)),
        false => Ok(tagged(StatusCode::OK, revision, &task)),
    }
}

/// A task as it is, and as it is answered.
pub async fn look(scheduler: &Scheduler, id: TaskId, full: bool) -> Result<(wire::Task, TaskView), Failure> {
    let found = scheduler.find(id).await?.ok_or(Error::NotFound)?;
    let queue = scheduler.queue_of(id).ok_or(Error::NotFound)?;
    let task = view::task(&found, &queue, full).ok_or(Error::NotFound)?;
    Ok((task, found))
}

/// Does something to a task, if it is of a revision that is expected. Compared and done in one piece: of those who expect
/// the same one, one succeeds.
async fn expecting<T, F: Future<Output = Result<T, Error>>>(
    expected: &Expected,
    deed: impl Fn(Option<u32>) -> F,
) -> Result<T, Failure> {
    let Some(revisions) = expected.revisions() else { return Ok(deed(None).await?) };
    // No task has the revision 0.
    let mut revision = revisions.first().copied().unwrap_or_default();
    loop {
        match deed(Some(revision)).await {
            // Another of the list, by now: revisions only grow, so this ends.
            Err(Error::Outdated { revision: present }) if revisions.contains(&present) => revision = present,
            done => return Ok(done?),
        }
    }
}

/// `DELETE /v1/tasks/{id}`
pub async fn cancel(asker: Asker, ask::Task(id): ask::Task, headers: HeaderMap) -> Result<Response, Failure> {
    let expected = Expected::read(&headers, "task_changed")?;
    expecting(&expected, |revision| asker.scheduler.cancel_if(id, revision)).await?;
    Ok(json(StatusCode::OK, &wire::Cancelled { state: wire::State::Cancelled }))
}

/// `POST /v1/tasks/{id}:run` and `:retry`
pub async fn act(
    asker: Asker,
    Name(path): Name,
    Full(full): Full,
    headers: HeaderMap,
    ask::Nothing: ask::Nothing,
) -> Result<Response, Failure> {
    let (id, verb) = name_and_verb(&path, TASK_VERBS)?;
    let id = task_id(&asker.scheduler, id)?;
    let expected = Expected::read(&headers, "task_changed")?;
    let task = match verb {
        TaskVerb::Run => expecting(&expected, |revision| asker.scheduler.run_now_if(id, revision)).await?,
        TaskVerb::Retry => retry(&asker.scheduler, id, &expected).await?,
    };
    Ok(changed(&asker.scheduler, task, full))
}

/// Tries a task again that has failed. One that only waits for its time must not start before it.
pub async fn retry(scheduler: &Scheduler, id: TaskId, expected: &Expected) -> Result<Task, Failure> {
    let view = scheduler.find(id).await?.ok_or(Error::NotFound)?;
    refuse_outdated(&view, expected)?;
    match view.state() {
        TaskState::Scheduled => {
            let detail = "it waits for its time: to make it due now, use `:run`";
            Err(Failure::new("task_not_failed", detail))
        }
        _ => expecting(expected, |revision| scheduler.retry_if(id, revision)).await,
    }
}

/// Before anything else is said about a task, it must be as it is expected.
fn refuse_outdated(view: &TaskView, expected: &Expected) -> Result<(), Failure> {
    let revision = match &view.found {
        Found::Live(task) => task.revision,
        Found::Ended(ended) => ended.revision(),
        // No more than its end is remembered.
        Found::Forgotten { .. } => return Ok(()),
    };
    match expected.allows(Some(u64::from(revision))) {
        true => Ok(()),
        false => Err(Error::Outdated { revision }.into()),
    }
}

fn changed(scheduler: &Scheduler, task: Task, full: bool) -> Response {
    let queue = scheduler.queue_of(task.id).unwrap_or_default();
    let revision = u64::from(task.revision);
    let view = TaskView { found: Found::Live(task), running: None };
    let task = view::task(&view, &queue, full);
    tagged(StatusCode::OK, revision, &task)
}

/// `GET /v1/tasks/{id}/result`
pub async fn result(
    asker: Asker,
    ask::Task(id): ask::Task,
    Query(query): Query<wire::ResultQuery>,
) -> Result<Response, Failure> {
    let wait = query.wait.map(Duration::from).unwrap_or_default();
    if wait > WAIT_MAX {
        return Err(Failure::new("query_invalid", "wait: must not be longer than 30 s; ask again"));
    }
    let scheduler = &asker.scheduler;
    let ended = match wait.is_zero() {
        true => None,
        false => tokio::time::timeout(wait, scheduler.result(id)).await.ok().transpose()?,
    };
    if ended.is_none() {
        let view = scheduler.find(id).await?.ok_or(Error::NotFound)?;
        if let Found::Live(_) = view.found {
            let state = view::state(view.state());
            let waiting = wire::TaskResult { state, result: None, error: None };
            return Ok(json(StatusCode::ACCEPTED, &waiting));
        }
    }
    let ended = match ended {
        Some(ended) => ended,
        None => scheduler.result(id).await?,
    };
    let state = view::state(ended.state.into());
    let error = ended.error.as_deref().map(str::to_owned);
    Ok(json(StatusCode::OK, &wire::TaskResult { state, result: view::result(&ended.result), error }))
}

/// `PATCH /v1/tasks/{id}`
pub async fn patch(
    State(app): State<App>,
    asker: Asker,
    ask::Task(id): ask::Task,
    Full(full): Full,
    headers: HeaderMap,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let scheduler = &asker.scheduler;
    let patch: wire::Patch = ask::body(&bytes)?;
    let expected = Expected::read(&headers, "task_changed")?;
    let zone = patch.timezone.clone();
    check_zone(zone.as_deref())?;
    let names_time = patch.at.is_some() || [&patch.start_by, &patch.expires_at].into_iter().any(is_set);
    if zone.is_some() && !names_time {
        let detail = "is that of `at`, `start_by` or `expires_at`: give one of them too";
        return Err(Failure::field("timezone", detail));
    }
    let at = due(scheduler.now(), patch.at.as_ref(), patch.delay.map(Into::into), zone.as_deref())?;
    let (_, view) = look(scheduler, id, false).await?;
    refuse_outdated(&view, &expected)?;
    let task = match view.found {
        Found::Live(task) => task,
        Found::Ended(ended) => return Err(Error::Ended(ended.end.state).into()),
        Found::Forgotten { state, .. } => return Err(Error::Ended(state).into()),
    };
    if let Some(attempt) = view.running {
        return Err(Error::Running { attempt }.into());
    }
    let spec = patched(&app, asker.scheduler.namespace(), &task.spec, patch)?;
    let is_changed = spec != *task.spec;
    let task = match at {
        // Whoever names a revision must not move what somebody else has changed meanwhile.
        Some(at) if is_changed || expected.revisions().is_some() => {
            scheduler.change_and_move(id, spec, at, task.revision).await?
        }
        Some(at) => scheduler.move_to(id, at).await?,
        None if is_changed => scheduler.change(id, spec, task.revision).await?,
        None => task,
    };
    Ok(changed(scheduler, task, full))
}

fn is_set<T>(change: &Change<T>) -> bool {
    matches!(change, Change::Set(_))
}

fn check_call(app: &App, field: &str, call: &Call) -> Result<(), Failure> {
    let refused = |error: String| Failure::new("call_invalid", error.clone()).at(field, error);
    call.check(app.guard()).map_err(|error| refused(error.to_string()))
}

/// What a task is to do from now on.
fn patched(app: &App, namespace: &str, before: &Spec, mut patch: wire::Patch) -> Result<Spec, Failure> {
    let zone = patch.timezone.clone();
    let time = |field: &str, change: Change<wire::Time>, old| match change {
        Change::Keep => Ok(old),
        Change::Clear => Ok(None),
        Change::Set(time) => moment(field, &time, zone.as_deref()).map(Some),
    };
    let mut spec = before.clone();
    spec.start_by = time("start_by", patch.start_by, spec.start_by)?;
    spec.expires_at = time("expires_at", patch.expires_at, spec.expires_at)?;
    spec.timeout = match patch.timeout {
        Change::Keep => spec.timeout,
        Change::Clear => None,
        Change::Set(timeout) => Some(timeout.into()),
    };
    spec.retry = match patch.retry {
        Change::Keep => spec.retry,
        Change::Clear => None,
        Change::Set(retry) => Some(retry_policy(&retry)?),
    };
    let mut delivery = Delivery::decode(&spec.delivery).unwrap_or_default();
    if let Change::Set(callback) = &patch.callback {
        check_call(app, "callback", &Call::post(callback.clone()))?;
    }
    delivery.callback = patch.callback.apply_to(delivery.callback);
    let mut carried = payload(patch.payload, patch.payload_base64)?;
    match (&mut patch.http, patch.handler) {
        (Some(_), Some(_)) => return Err(Failure::field("handler", "give `http` or `handler`, not both")),
        (Some(http), None) => {
            carried = body(http, carried)?;
            let call = call_of(http);
            check_call(app, "http", &call)?;
            spec.target = Target::Destination(call.destination(namespace).into());
            delivery.call = Some(call);
        }
        (None, Some(handler)) => {
            spec.target = Target::Handler(handler.into());
            delivery.call = None;
        }
        (None, None) => {}
    }
    spec.payload = carried.unwrap_or(spec.payload);
    spec.delivery = delivery.encode();
    Ok(spec)
}
