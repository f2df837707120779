//! Making tasks: one, many at once, or a line each.

use std::sync::Arc;

use axum::extract::{FromRequest, Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use punctual::{Found, Scheduled, TaskView};
use punctual_client::wire::{self, BATCH_MAX, CreateResult, Creation};
use punctual_core::QueueId;

use super::ask::{self, Asker, Full, refuse_dots, surroundings, wants_minimal};
use super::draft::{Drafted, Drafter, Surroundings};
use super::failure::Failure;
use super::lines;
use super::list::FULL_BYTES;
use super::once::{has_key, once, refuse_too_many_to_keep};
use super::reply::{json, tagged};
use super::view;
use crate::app::{App, Scheduler};
use crate::extras::Extras;

/// `POST /v1/queues/{queue}/tasks`
pub async fn create(
    State(app): State<App>,
    asker: Asker,
    Path(queue): Path<String>,
    Full(full): Full,
    request: Request,
) -> Result<Response, Failure> {
    let headers = request.headers().clone();
    // To give the same answer again, one must know the whole request: so with a key it is not a stream.
    if is_lines(&headers)? && !has_key(&headers) {
        return Box::pin(lines::create(app, asker, queue, full, request)).await;
    }
    let ask::Body(body) = ask::Body::from_request(request, &app).await?;
    let made = make(&app, &asker.scheduler, &queue, full, &headers, &body);
    if !has_key(&headers) {
        return made.await;
    }
    // What was answered in full is not for whoever asks for less: that takes another scope.
    let path = format!("/v1/queues/{queue}/tasks{}", if full { "?view=full" } else { "" });
    Box::pin(once(&asker.scheduler, &headers, &path, &body, made)).await
}

async fn make(
    app: &App,
    scheduler: &Scheduler,
    queue: &str,
    full: bool,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response, Failure> {
    let drafter = drafter(app, scheduler, queue, full, surroundings(headers)).await?;
    let minimal = wants_minimal(headers);
    if is_lines(headers)? {
        let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').filter(|line| !is_blank(line)).collect();
        refuse_too_many_to_keep(headers, lines.len())?;
        refuse_too_much(headers, full, lines.len())?;
        let drafted = batch(lines.len(), lines.into_iter(), &drafter)?;
        return Ok(lines_of(&Box::pin(schedule_many(scheduler, drafted, full, minimal)).await));
    }
    match Creation::read(body)? {
        Creation::One(task) => one(scheduler, drafter.draft(*task)?, full, minimal).await,
        Creation::Many(tasks) => {
            let texts = tasks.iter().map(|task| task.get().as_bytes());
            refuse_too_many_to_keep(headers, tasks.len())?;
            refuse_too_much(headers, full, tasks.len())?;
            let drafted = batch(tasks.len(), texts, &drafter)?;
            // Boxed, so that a request for one task does not carry the room for many.
            let results = Box::pin(schedule_many(scheduler, drafted, full, minimal)).await;
            Ok(json(StatusCode::OK, &wire::Results { results }))
        }
    }
}

/// Whoever makes tasks for this queue.
pub async fn drafter<'a>(
    app: &'a App,
    scheduler: &'a Scheduler,
    queue: &'a str,
    full: bool,
    surroundings: Surroundings,
) -> Result<Drafter<'a>, Failure> {
    refuse_dots(queue)?;
    let known = scheduler.find_queue(queue).await?;
    let (extras, priority) = match known {
        Some(known) => (app.extras(QueueId(known.number), &known.extras), known.settings.priority.level()),
        None => (Arc::new(Extras::default()), punctual::Priority::default().level()),
    };
    let (surroundings, _span) = app.spans().creating(queue, surroundings);
    let (now, namespace) = (scheduler.now(), scheduler.namespace());
    Ok(Drafter { queue, namespace, extras, guard: app.guard(), now, priority, full, surroundings, _span })
}

/// Schedules one task, and answers with it.
async fn one(
    scheduler: &Scheduler,
    drafted: Drafted,
    full: bool,
    minimal: bool,
) -> Result<Response, Failure> {
    let Drafted { task, preview } = drafted;
    let scheduled = scheduler.schedule(task).await?;
    let (status, task) = answered(scheduler, scheduled, preview, full).await?;
    let place = HeaderValue::from_str(&format!("/v1/tasks/{}", task.id));
    let revision = u64::from(task.revision);
    let mut response = match minimal {
        true => tagged(status, revision, &wire::TaskId { id: task.id }),
        false => tagged(status, revision, &task),
    };
    if let Ok(place) = place {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// What became of a task that was scheduled, with its status.
pub async fn answered(
    scheduler: &Scheduler,
    scheduled: Scheduled,
    preview: wire::Task,
    full: bool,
) -> Result<(StatusCode, wire::Task), Failure> {
    let id = scheduled.id();
    if let Scheduled::New(_) = scheduled {
        return Ok((StatusCode::CREATED, warned(wire::Task { id: id.to_string(), ..preview })));
    }
    let queue = preview.queue.clone();
    // Boxed, because most tasks are new, and would carry the room for it.
    let there = Box::pin(scheduler.find(id)).await?.and_then(|found| view::task(&found, &queue, full));
    Ok((StatusCode::OK, warned(there.unwrap_or_else(|| forgotten(&scheduled, preview)))))
}

/// A task with what whoever makes it should know. It is taken all the same: a program that has the handler may open the
/// data folder later.
fn warned(mut task: wire::Task) -> wire::Task {
    if task.target == wire::TargetKind::Handler && !task.state.has_ended() {
        let text = "no server runs handlers: it waits for a program that embeds Punctual and has this one";
        task.warnings.push(text.to_owned());
    }
    task
}

/// A task of the same unique key that ended long ago: no more is known than how.
fn forgotten(scheduled: &Scheduled, preview: wire::Task) -> wire::Task {
    let state = match scheduled {
        Scheduled::Ended(id, state) => {
            let found = Found::Forgotten { id: *id, state: *state };
            view::state(TaskView { found, running: None }.state())
        }
        _ => preview.state,
    };
    wire::Task { id: scheduled.id().to_string(), state, next_at: None, ..preview }
}

/// A batch has a limit.
pub fn refuse_too_many(count: usize) -> Result<(), Failure> {
    match count <= BATCH_MAX {
        true => Ok(()),
        false => {
            let detail = format!("{count} tasks are too many at once: {BATCH_MAX} is the most");
            Err(Failure::new("body_too_large", detail))
        }
    }
}

/// So many tasks are shown with what they carry, as on a page of a list.
const FULL_MAX: usize = 1_000;

/// Those that are there already may carry much more than was sent.
fn refuse_too_much(headers: &HeaderMap, full: bool, count: usize) -> Result<(), Failure> {
    if full && has_key(headers) {
        let detail = "view: the answer to an Idempotency-Key is kept, and that of a batch without payloads";
        return Err(Failure::new("query_invalid", detail));
    }
    if full && count > FULL_MAX {
        let detail = format!("{count} tasks are too many to show all of each: {FULL_MAX} is the most");
        return Err(Failure::new("body_too_large", detail));
    }
    Ok(())
}

fn batch<'a>(
    count: usize,
    tasks: impl Iterator<Item = &'a [u8]>,
    drafter: &Drafter<'_>,
) -> Result<Vec<Result<Drafted, Failure>>, Failure> {
    refuse_too_many(count)?;
    Ok(tasks.map(|task| drafter.draft(wire::read(task)?)).collect())
}

/// Schedules what is right, and answers for each in turn.
pub async fn schedule_many(
    scheduler: &Scheduler,
    drafted: Vec<Result<Drafted, Failure>>,
    full: bool,
    minimal: bool,
) -> Vec<CreateResult> {
    let (mut tasks, mut results, mut previews) = (Vec::new(), Vec::new(), Vec::new());
    for (place, drafted) in drafted.into_iter().enumerate() {
        match drafted {
            Ok(Drafted { task, preview }) => {
                tasks.push(task);
                previews.push((place, preview));
                results.push(CreateResult::default());
            }
            Err(failure) => results.push(failed(failure)),
        }
    }
    let scheduled = scheduler.schedule_many(tasks).await;
    let mut bytes = 0;
    for ((place, preview), scheduled) in previews.into_iter().zip(scheduled) {
        results[place] = match scheduled {
            Ok(Scheduled::New(id)) if minimal => {
                CreateResult { status: 201, id: Some(id.to_string()), ..CreateResult::default() }
            }
            Ok(scheduled) => {
                let fits = bytes < FULL_BYTES;
                let preview = if fits { preview } else { view::without_all(preview) };
                match answered(scheduler, scheduled, preview, full && fits).await {
                    Ok((status, task)) => {
                        bytes += view::bytes_carried(&task);
                        let view = (full && !fits && !minimal).then_some(wire::View::Basic);
                        CreateResult { view, ..done(status, task, minimal) }
                    }
                    Err(failure) => failed(failure),
                }
            }
            Err(error) => failed(error.into()),
        };
    }
    results
}

fn done(status: StatusCode, task: wire::Task, minimal: bool) -> CreateResult {
    let status = status.as_u16();
    match minimal {
        true => CreateResult { status, id: Some(task.id), ..CreateResult::default() },
        false => CreateResult { status, task: Some(task), ..CreateResult::default() },
    }
}

/// The answer for an item that failed.
pub fn failed(Failure(problem): Failure) -> CreateResult {
    CreateResult { status: problem.status, problem: Some(problem), ..CreateResult::default() }
}

fn is_lines(headers: &HeaderMap) -> Result<bool, Failure> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    // Whoever says nothing means JSON: so does `curl -d`, which names a form.
    let kind = kind.map_or("application/json", |kind| kind.split(';').next().unwrap_or_default().trim());
    match kind.to_ascii_lowercase().as_str() {
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Ok(true),
        "application/json" | "application/x-www-form-urlencoded" | "text/plain" | "" => Ok(false),
        kind if kind.ends_with("+json") => Ok(false),
        kind => {
            let detail = format!("{kind}: send application/json or application/x-ndjson");
            Err(Failure::new("media_type_unknown", detail))
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

fn lines_of(results: &[CreateResult]) -> Response {
    let mut body = Vec::with_capacity(64 * results.len());
    for result in results {
        serde_json::to_writer(&mut body, result).ok();
        body.push(b'\n');
    }
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response
}
