//! Making tasks: one, many at once, or a line each.

use std::sync::Arc;

use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::Either;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use punctual::{Found, Scheduled, TaskView};
use punctual_client::wire::{self, BATCH_MAX, CreateResult, Creation};
use punctual_core::QueueId;

use super::ask::{self, Asker, Full, refuse_dots, surroundings, wants_minimal};
use super::draft::{Drafted, Drafter, Shown, Surroundings};
use super::failure::Failure;
use super::lines;
use super::list::FULL_BYTES;
use super::once::{Key, NothingMade, fingerprint, key, once, refuse_too_many_to_keep};
use super::reply::{json, push_line, tagged};
use super::view;
use crate::access::Asked;
use crate::app::{App, Scheduler};
use crate::extras::Extras;

/// What the head of a request says about the tasks in its body. The head itself is let go of: as long as somebody holds
/// it, its connection cannot use that memory for what comes next.
pub struct Wishes {
    /// A task in each line.
    is_lines: bool,
    /// How much of them is answered.
    pub shown: Shown,
    key: Option<Key>,
    surroundings: Surroundings,
}

impl Wishes {
    fn read(headers: &HeaderMap, full: bool) -> Result<Wishes, Failure> {
        let shown = match full {
            _ if wants_minimal(headers) => Shown::Id,
            true => Shown::Full,
            false => Shown::Basic,
        };
        let (is_lines, key, surroundings) = (is_lines(headers)?, key(headers)?, surroundings(headers));
        Ok(Wishes { is_lines, shown, key, surroundings })
    }

    /// Whoever makes these tasks for this queue.
    pub async fn drafter<'a>(
        &self,
        app: &'a App,
        scheduler: &'a Scheduler,
        queue: &'a str,
    ) -> Result<Drafter<'a>, Failure> {
        drafter(app, scheduler, queue, self.shown, self.surroundings.clone()).await
    }
}

/// `POST /v1/queues/{queue}/tasks`
pub async fn create(
    State(asked): State<Arc<Asked>>,
    asker: Asker,
    Full(full): Full,
    request: Request,
) -> Result<Response, Failure> {
    let wishes = Wishes::read(request.headers(), full)?;
    // To give the same answer again, one must know the whole request: so with a key it is not a stream.
    if wishes.is_lines && wishes.key.is_none() {
        return Box::pin(lines::create(asked, asker, wishes, request)).await;
    }
    let ask::Body(body) = ask::Body::from_request(request, &asked).await?;
    let (app, queue) = (&asked.app, &asked.name);
    let Some(key) = &wishes.key else {
        return make(app, &asker.scheduler, queue, &wishes, body).await;
    };
    // What was answered in full is not for whoever asks for less: that takes another scope.
    let path = format!("/v1/queues/{queue}/tasks{}", if full { "?view=full" } else { "" });
    let fingerprint = fingerprint(&path, &body);
    let made = make(app, &asker.scheduler, queue, &wishes, body);
    Box::pin(once(&asker.scheduler, key, fingerprint, made)).await
}

async fn make(
    app: &App,
    scheduler: &Scheduler,
    queue: &str,
    wishes: &Wishes,
    body: Bytes,
) -> Result<Response, Failure> {
    let drafter = wishes.drafter(app, scheduler, queue).await?;
    let made = begin(scheduler, &drafter, wishes, &body)?;
    // Read, and not held while others work.
    drop(body);
    let _span = drafter.into_span();
    made.await
}

/// Reads a body, and begins to make its tasks. Boxed if they are many, so that a request for one does not carry the room.
fn begin<'a>(
    scheduler: &'a Scheduler,
    drafter: &Drafter<'_>,
    wishes: &Wishes,
    body: &[u8],
) -> Result<impl Future<Output = Result<Response, Failure>> + Send + use<'a>, Failure> {
    let shown = wishes.shown;
    if wishes.is_lines {
        let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').filter(|line| !is_blank(line)).collect();
        let count = lines.len();
        let drafted = batch(count, lines.into_iter().map(|line| Ok(wire::read(line)?)), drafter, wishes)?;
        let made = async move {
            let results = schedule_many(scheduler, drafted, shown).await;
            Ok(noting(NothingMade::of(&results), lines_of(&results)))
        };
        return Ok(Either::Left(made.boxed()));
    }
    match Creation::read(body)? {
        Creation::One(task) => Ok(Either::Right(one(scheduler, drafter.draft(*task)?, shown))),
        Creation::Many(tasks) => {
            let count = tasks.len();
            let each = tasks.each().map(|task| task.map_err(|(fault, _)| fault.into()));
            let drafted = batch(count, each, drafter, wishes)?;
            let made = async move {
                let results = schedule_many(scheduler, drafted, shown).await;
                Ok(noting(NothingMade::of(&results), json(StatusCode::OK, &wire::Results { results })))
            };
            Ok(Either::Left(made.boxed()))
        }
    }
}

/// An answer with what its key is to know of it.
fn noting(nothing: Option<NothingMade>, mut answer: Response) -> Response {
    nothing.and_then(|nothing| answer.extensions_mut().insert(nothing));
    answer
}

/// Whoever makes tasks for this queue.
pub async fn drafter<'a>(
    app: &'a App,
    scheduler: &'a Scheduler,
    queue: &'a str,
    shown: Shown,
    surroundings: Surroundings,
) -> Result<Drafter<'a>, Failure> {
    refuse_dots(queue)?;
    let known = scheduler.find_queue(queue).await?;
    let (extras, priority) = match known {
        Some(known) => (app.extras(QueueId(known.number), &known.extras), known.settings.priority.level()),
        None => (Arc::new(Extras::default()), punctual::Priority::default().level()),
    };
    let (surroundings, span) = app.spans().creating(queue, surroundings);
    let (now, namespace) = (scheduler.now(), scheduler.namespace());
    Ok(Drafter { queue, namespace, extras, guard: app.guard(), now, priority, shown, surroundings, span })
}

/// Schedules one task, and answers with it.
fn one(
    scheduler: &Scheduler,
    Drafted { task, preview }: Drafted,
    shown: Shown,
) -> impl Future<Output = Result<Response, Failure>> + Send {
    let scheduling = scheduler.schedule(task);
    async move {
        let scheduled = scheduling.await?;
        let (mut response, id) = match preview {
            None => only_id(scheduler, &scheduled).await?,
            Some(preview) => {
                let (status, task) = answered(scheduler, scheduled, *preview, shown).await?;
                (tagged(status, u64::from(task.revision), &task), task.id)
            }
        };
        if let Ok(place) = HeaderValue::try_from(["/v1/tasks/", &id].concat()) {
            response.headers_mut().insert(header::LOCATION, place);
        }
        Ok(response)
    }
}

/// The answer to whoever wants to know no more of a task than its id, and the id.
async fn only_id(scheduler: &Scheduler, scheduled: &Scheduled) -> Result<(Response, String), Failure> {
    let (status, revision) = match scheduled {
        Scheduled::New(_) => (StatusCode::CREATED, 1),
        _ => {
            let there = Box::pin(scheduler.find(scheduled.id())).await?;
            (StatusCode::OK, there.map_or(1, |there| view::revision(&there.found)))
        }
    };
    let task = wire::TaskId { id: scheduled.id().to_string() };
    Ok((tagged(status, u64::from(revision), &task), task.id))
}

/// What became of a task that was scheduled, with its status.
pub async fn answered(
    scheduler: &Scheduler,
    scheduled: Scheduled,
    preview: wire::Task,
    shown: Shown,
) -> Result<(StatusCode, wire::Task), Failure> {
    let id = scheduled.id();
    if let Scheduled::New(_) = scheduled {
        return Ok((StatusCode::CREATED, warned(wire::Task { id: id.to_string(), ..preview })));
    }
    let queue = preview.queue.clone();
    // Boxed, because most tasks are new, and would carry the room for it.
    let full = shown == Shown::Full;
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
fn refuse_too_much(wishes: &Wishes, count: usize) -> Result<(), Failure> {
    let full = wishes.shown == Shown::Full;
    if full && wishes.key.is_some() {
        let detail = "view: the answer to an Idempotency-Key is kept, and that of a batch without payloads";
        return Err(Failure::new("query_invalid", detail));
    }
    if full && count > FULL_MAX {
        let detail = format!("{count} tasks are too many to show all of each: {FULL_MAX} is the most");
        return Err(Failure::new("body_too_large", detail));
    }
    Ok(())
}

fn batch(
    count: usize,
    tasks: impl Iterator<Item = Result<wire::NewTask, Failure>>,
    drafter: &Drafter<'_>,
    wishes: &Wishes,
) -> Result<Vec<Result<Drafted, Failure>>, Failure> {
    if wishes.key.is_some() {
        refuse_too_many_to_keep(count)?;
    }
    refuse_too_much(wishes, count)?;
    refuse_too_many(count)?;
    Ok(tasks.map(|task| drafter.draft(task?)).collect())
}

/// Schedules what is right, and answers for each in turn.
pub async fn schedule_many(
    scheduler: &Scheduler,
    drafted: Vec<Result<Drafted, Failure>>,
    shown: Shown,
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
        results[place] = match (scheduled, preview) {
            (Ok(scheduled), None) => {
                let status = if let Scheduled::New(_) = scheduled { 201 } else { 200 };
                CreateResult { status, id: Some(scheduled.id().to_string()), ..CreateResult::default() }
            }
            (Ok(scheduled), Some(preview)) => {
                many_answered(scheduler, scheduled, *preview, shown, &mut bytes).await
            }
            (Err(error), _) => failed(error.into()),
        };
    }
    results
}

/// What became of one task among many. Those that are shown whole carry no more than a page of a list does, all together.
async fn many_answered(
    scheduler: &Scheduler,
    scheduled: Scheduled,
    preview: wire::Task,
    shown: Shown,
    bytes: &mut usize,
) -> CreateResult {
    let fits = shown != Shown::Full || *bytes < FULL_BYTES;
    let (preview, shown) = if fits { (preview, shown) } else { (view::without_all(preview), Shown::Basic) };
    match answered(scheduler, scheduled, preview, shown).await {
        Ok((status, task)) => {
            *bytes += view::bytes_carried(&task);
            let view = (!fits).then_some(wire::View::Basic);
            CreateResult { status: status.as_u16(), task: Some(task), view, ..CreateResult::default() }
        }
        Err(failure) => failed(failure),
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
    let is = |known: &&str| kind.eq_ignore_ascii_case(known);
    if ["application/json", "application/x-www-form-urlencoded", "text/plain", ""].iter().any(is) {
        return Ok(false);
    }
    if ["application/x-ndjson", "application/ndjson", "application/jsonl"].iter().any(is) {
        return Ok(true);
    }
    if kind.to_ascii_lowercase().ends_with("+json") {
        return Ok(false);
    }
    let detail = format!("{kind}: send application/json or application/x-ndjson");
    Err(Failure::new("media_type_unknown", detail))
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

fn lines_of(results: &[CreateResult]) -> Response {
    let mut body = Vec::with_capacity(64 * results.len());
    for result in results {
        push_line(&mut body, result);
    }
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response
}
