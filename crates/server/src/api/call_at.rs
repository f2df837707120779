//! `POST /schedule`: a call at a given time, in four fields.

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use punctual_client::wire::{self, CallAt, ScheduledCall};

use super::ask::{self, Asker, surroundings};
use super::create::{answered, drafter};
use super::draft::{Drafted, Shown};
use super::failure::Failure;
use super::once::{fingerprint, key, once};
use super::reply::json;
use super::tasks::look;
use crate::app::App;

const QUEUE: &str = "default";

/// `POST /schedule`
pub async fn schedule(
    State(app): State<App>,
    asker: Asker,
    headers: HeaderMap,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let scheduled = make(&app, &asker, &headers, &bytes);
    match key(&headers)? {
        Some(key) => once(&asker.scheduler, &key, fingerprint("/schedule", &bytes), scheduled).await,
        None => scheduled.await,
    }
}

async fn make(app: &App, asker: &Asker, headers: &HeaderMap, bytes: &Bytes) -> Result<Response, Failure> {
    let call: CallAt = ask::body(bytes)?;
    let queue = call.queue.clone().unwrap_or_else(|| QUEUE.to_owned());
    let (url, verb) = (call.url.clone(), call.verb.clone().unwrap_or_else(|| "POST".to_owned()));
    let drafter = drafter(app, &asker.scheduler, &queue, Shown::Basic, surroundings(headers)).await?;
    let Drafted { task, preview } = drafter.draft(task_of(call)).map_err(in_words_of_the_seed)?;
    let scheduled = asker.scheduler.schedule(task).await?;
    let preview = *preview.expect("more than an id is shown");
    let (status, task) = answered(&asker.scheduler, scheduled, preview, Shown::Basic).await?;
    let place = HeaderValue::from_str(&format!("/schedule/{}", task.id));
    let mut response = json(status, &call_of(task, url, verb));
    if let Ok(place) = place {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// A task's time has another name here.
fn in_words_of_the_seed(Failure(mut problem): Failure) -> Failure {
    const HERE: &str = "executionDateTime";
    for fault in problem.errors.iter_mut().filter(|fault| fault.field == "at") {
        fault.field = HERE.to_owned();
        if let Some(rest) = problem.detail.strip_prefix("at: ") {
            problem.detail = format!("{HERE}: {rest}").into();
        }
    }
    Failure(problem)
}

fn task_of(call: CallAt) -> wire::NewTask {
    let http = wire::Http {
        url: call.url,
        method: call.verb,
        headers: call.headers,
        body: call.body,
        body_base64: None,
        timeout: call.timeout,
    };
    wire::NewTask {
        at: Some(call.execution_date_time),
        timezone: call.timezone,
        lane: call.lane,
        unique_key: call.unique_key,
        on_conflict: call.on_conflict,
        name: call.name,
        http: Some(http),
        retry: call.retry,
        callback: call.callback,
        ..wire::NewTask::default()
    }
}

fn call_of(task: wire::Task, url: String, verb: String) -> ScheduledCall {
    ScheduledCall { id: task.id, url, verb, execution_date_time: task.at, status: task.state.into() }
}

/// `GET /schedule/{id}`
pub async fn get(asker: Asker, ask::Task(id): ask::Task) -> Result<Response, Failure> {
    let (mut task, _) = look(&asker.scheduler, id, true).await?;
    let http = task.http.take().ok_or(punctual::Error::NotFound)?;
    let verb = http.method.unwrap_or_else(|| "POST".to_owned());
    Ok(json(StatusCode::OK, &call_of(task, http.url, verb)))
}
