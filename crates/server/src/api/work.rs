//! Workers: they reserve tasks, and report on each by its token.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, StatusCode};
use punctual::{Afterwards, Found, Report, Reserved, TaskId, Timestamp, Token};
use punctual_client::wire::{self, Json, ReportResult};
use punctual_core::{Epoch, Limits};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::ask::{self, Asker, Name, Query, task_and_queue};
use super::create::refuse_too_many;
use super::draft::{after, moment_of};
use super::expected::Expected;
use super::failure::Failure;
use super::list::{next_of, page_limit};
use super::reply::json;
use super::tasks::retry;
use super::view;
use crate::app::{App, Scheduler};
use crate::delivery::Delivery;
use crate::trace::Trace;

/// What a worker gets when it asks for more time and says nothing of how much.
const TOUCH: Duration = Duration::from_secs(30);

/// `POST /v1/queues/{queue}/reserve`
pub async fn reserve(
    State(app): State<App>,
    asker: Asker,
    Name(queue): Name,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let wire::Reserve { max, wait, ttr, worker: _ } = ask::body(&bytes)?;
    let (wait, ttr) = (wait.map(Duration::from).unwrap_or_default(), ttr.map(Duration::from));
    let reserved = asker.scheduler.reserve(&queue, max.unwrap_or(1) as usize, wait, ttr).await?;
    // Whoever waited may have lost the key meanwhile: the tasks go back to where they were.
    if !app.access().still_lets(&asker.who) {
        let back = reserved.into_iter().map(|reserved| (reserved.token, Report::Released)).collect();
        asker.scheduler.report_many(back).await;
        return Err(Failure::new("key_invalid", "the key is not good any more: ask for a new one"));
    }
    let now = asker.scheduler.now();
    let tasks = reserved.iter().map(|reserved| reserved_task(reserved, &queue, now)).collect();
    Ok(json(StatusCode::OK, &wire::Reserved { tasks }))
}

fn reserved_task(reserved: &Reserved, queue: &str, now: Timestamp) -> wire::ReservedTask {
    let Reserved { token, spec, time_to_run } = reserved;
    let (payload, payload_base64) = view::carried(&spec.payload);
    let (traceparent, tracestate) = match Delivery::trace_of(&spec.delivery) {
        Some(Trace { parent, state }) => (Some(parent), state),
        None => (None, None),
    };
    wire::ReservedTask {
        id: token.id.to_string(),
        token: token_text(*token),
        queue: queue.to_owned(),
        payload,
        payload_base64,
        attempt: token.attempt,
        at: moment_of(spec.at),
        lane: spec.lane.as_deref().map(str::to_owned),
        name: spec.name.as_deref().map(str::to_owned),
        ttr_until: moment_of(now + *time_to_run),
        ttr: Some((*time_to_run).into()),
        traceparent,
        tracestate,
    }
}

/// `GET /v1/queues/{queue}/peek`
pub async fn peek(
    asker: Asker,
    Name(queue): Name,
    Query(query): Query<wire::PeekQuery>,
) -> Result<Response, Failure> {
    let limit = page_limit(query.limit.or(Some(1)))?;
    let tasks = next_of(&asker.scheduler, &queue, limit).await?;
    Ok(json(StatusCode::OK, &wire::TaskPage { tasks, next: None }))
}

/// Names an attempt of a task that is named beside it.
pub fn token_text(token: Token) -> String {
    format!("{}.{}", token.epoch.0, token.attempt)
}

fn token(id: TaskId, text: &str) -> Result<Token, Failure> {
    let parts = text.split_once('.');
    let parts = parts.and_then(|(epoch, attempt)| Some((epoch.parse().ok()?, attempt.parse().ok()?)));
    match parts {
        Some((epoch, attempt)) => Ok(Token { id, epoch: Epoch(epoch), attempt }),
        None => Err(Failure::field("token", "is none of ours: send the one that came with the task")),
    }
}

/// What a worker says of a task, in one of five ways.
pub trait Says: DeserializeOwned {
    /// The token, and what it means at this time.
    fn says(self, now: Timestamp) -> Result<(String, Report), Failure>;
}

impl Says for wire::Ack {
    fn says(self, _: Timestamp) -> Result<(String, Report), Failure> {
        let result: Bytes = self.result.map(Json::into_bytes).unwrap_or_default().into();
        // The scheduler would give the task up for it. Whoever reports can still say something shorter.
        let (bytes, max) = (result.len(), Limits::default().payload_max);
        if bytes > max {
            let detail = format!("the result has {bytes} bytes, and {max} is the most");
            return Err(Failure::new("payload_too_large", format!("result: {detail}")).at("result", detail));
        }
        Ok((self.token, Report::Done(result)))
    }
}

impl Says for wire::Nack {
    fn says(self, now: Timestamp) -> Result<(String, Report), Failure> {
        let error = self.error.unwrap_or_else(|| "the worker gave no reason".to_owned()).into();
        let delay = self.delay.map(Duration::from);
        delay.map(|delay| after("delay", now, delay)).transpose()?;
        Ok((self.token, Report::Failed { error, delay }))
    }
}

impl Says for wire::Release {
    fn says(self, _: Timestamp) -> Result<(String, Report), Failure> {
        Ok((self.token, Report::Released))
    }
}

impl Says for wire::Bury {
    fn says(self, _: Timestamp) -> Result<(String, Report), Failure> {
        let error = self.error.unwrap_or_else(|| "the worker gave no reason".to_owned()).into();
        Ok((self.token, Report::Buried(error)))
    }
}

/// `POST /v1/tasks/{id}/ack`, `nack`, `release` and `bury`
pub async fn report<R: Says>(
    asker: Asker,
    ask::Task(id): ask::Task,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let (text, report) = ask::body::<R>(&bytes)?.says(asker.scheduler.now())?;
    let token = token(id, &text)?;
    let after = asker.scheduler.report(token, report).await?;
    Ok(json(StatusCode::OK, &progress(id, after)))
}

/// `POST /v1/tasks/{id}/touch`
pub async fn touch(
    asker: Asker,
    ask::Task(id): ask::Task,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let touch: wire::Touch = ask::body(&bytes)?;
    Ok(json(StatusCode::OK, &touch_one(&asker.scheduler, id, touch).await?))
}

async fn touch_one(scheduler: &Scheduler, id: TaskId, touch: wire::Touch) -> Result<wire::Touched, Failure> {
    let token = token(id, &touch.token)?;
    let more = touch.ttr.map_or(TOUCH, Into::into);
    let until = scheduler.now() + more;
    scheduler.touch(token, more).await?;
    Ok(wire::Touched { ttr_until: moment_of(until), ttr: Some(more.into()) })
}

/// `POST /v1/tasks/{id}/kick`
pub async fn kick(
    asker: Asker,
    ask::Task(id): ask::Task,
    headers: HeaderMap,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let wire::Kick {} = ask::body(&bytes)?;
    let expected = Expected::read(&headers, "task_changed")?;
    Ok(json(StatusCode::OK, &kick_one(&asker.scheduler, id, &expected).await?))
}

async fn kick_one(scheduler: &Scheduler, id: TaskId, expected: &Expected) -> Result<wire::Progress, Failure> {
    let task = retry(scheduler, id, expected).await?;
    let next_at = Some(moment_of(task.due_at()));
    let view = punctual::TaskView { found: Found::Live(task), running: None };
    Ok(wire::Progress { id: id.to_string(), state: view::state(view.state()), next_at })
}

fn progress(id: TaskId, after: Afterwards) -> wire::Progress {
    let next_at = after.next_at.map(moment_of);
    wire::Progress { id: id.to_string(), state: view::state(after.state), next_at }
}

/// An item of a batch: a task's id, and what is said of it.
pub trait Item: DeserializeOwned {
    /// What is said.
    type Report: Says;
    /// The two of them.
    fn parts(self) -> (String, Self::Report);
}

macro_rules! item {
    ($item:ident, $report:ident) => {
        impl Item for wire::$item {
            type Report = wire::$report;

            fn parts(self) -> (String, wire::$report) {
                self.into_parts()
            }
        }
    };
}

item!(AckItem, Ack);
item!(NackItem, Nack);
item!(ReleaseItem, Release);
item!(BuryItem, Bury);

/// `POST /v1/queues/{queue}/ack`, `nack`, `release` and `bury`
pub async fn reports<I: Item>(
    asker: Asker,
    Name(queue): Name,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let items = items::<I>(&bytes)?;
    let mut results: Vec<ReportResult> = Vec::with_capacity(items.len());
    let (mut places, mut reports) = (Vec::new(), Vec::new());
    for (place, item) in items.into_iter().enumerate() {
        let (text, report) = match item {
            Ok(item) => item.parts(),
            Err(result) => {
                results.push(*result);
                continue;
            }
        };
        results.push(about(&text));
        match read_report(&asker.scheduler, &queue, &text, report) {
            Ok(report) => {
                places.push(place);
                reports.push(report);
            }
            Err(failure) => fail(&mut results[place], failure),
        }
    }
    let answers = asker.scheduler.report_many(reports).await;
    for (place, answer) in places.into_iter().zip(answers) {
        let result = &mut results[place];
        match answer {
            Ok(after) => {
                result.state = Some(view::state(after.state));
                result.next_at = after.next_at.map(moment_of);
            }
            Err(error) => fail(result, error.into()),
        }
    }
    Ok(json(StatusCode::OK, &wire::Results { results }))
}

/// The items of a batch. One that cannot be read is answered for itself, and spoils no other.
fn items<I: DeserializeOwned>(bytes: &Bytes) -> Result<Vec<Result<I, Box<ReportResult>>>, Failure> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        id: String,
    }
    let items = wire::Items::<I>::read(bytes)?;
    refuse_too_many(items.len())?;
    let spoiled = |(fault, text): (wire::BodyFault, &str)| {
        let id = wire::read::<Named>(text.as_bytes()).map(|named| named.id).unwrap_or_default();
        let mut result = about(&id);
        fail(&mut result, fault.into());
        Box::new(result)
    };
    Ok(items.each().map(|item| item.map_err(spoiled)).collect())
}

fn about(id: &str) -> ReportResult {
    ReportResult { status: 200, id: id.to_owned(), ..ReportResult::default() }
}

fn read_report(
    scheduler: &Scheduler,
    queue: &str,
    id: &str,
    report: impl Says,
) -> Result<(Token, Report), Failure> {
    let id = task_in(scheduler, queue, id)?;
    let (text, report) = report.says(scheduler.now())?;
    Ok((token(id, &text)?, report))
}

/// A task of this queue. Whoever names one of another has mixed something up, and should hear of it.
fn task_in(scheduler: &Scheduler, queue: &str, id: &str) -> Result<TaskId, Failure> {
    match task_and_queue(scheduler, id)? {
        (id, its) if *its == *queue => Ok(id),
        (_, its) => {
            let detail = format!("the task is in the queue {its}, not in {queue}: report on it there");
            Err(Failure::new("task_not_found", detail))
        }
    }
}

fn fail(result: &mut ReportResult, Failure(problem): Failure) {
    result.status = problem.status;
    result.problem = Some(problem);
}

/// `POST /v1/queues/{queue}/touch`
pub async fn touches(
    asker: Asker,
    Name(queue): Name,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let scheduler = &asker.scheduler;
    let touched = items::<wire::TouchItem>(&bytes)?.into_iter().map(async |item| {
        let (text, touch) = match item {
            Ok(item) => item.into_parts(),
            Err(result) => return *result,
        };
        let mut result = about(&text);
        let touched = match task_in(scheduler, &queue, &text) {
            Ok(id) => touch_one(scheduler, id, touch).await,
            Err(failure) => Err(failure),
        };
        match touched {
            Ok(touched) => (result.ttr_until, result.ttr) = (Some(touched.ttr_until), touched.ttr),
            Err(failure) => fail(&mut result, failure),
        }
        result
    });
    Ok(json(StatusCode::OK, &wire::Results { results: join_all(touched).await }))
}

/// `POST /v1/queues/{queue}/kick`
pub async fn kicks(
    asker: Asker,
    Name(queue): Name,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let scheduler = &asker.scheduler;
    let kicked = items::<wire::KickItem>(&bytes)?.into_iter().map(async |item| {
        let wire::KickItem { id } = match item {
            Ok(item) => item,
            Err(result) => return *result,
        };
        let mut result = about(&id);
        let kicked = match task_in(scheduler, &queue, &id) {
            Ok(id) => kick_one(scheduler, id, &Expected::Anything).await,
            Err(failure) => Err(failure),
        };
        match kicked {
            Ok(progress) => (result.state, result.next_at) = (Some(progress.state), progress.next_at),
            Err(failure) => fail(&mut result, failure),
        }
        result
    });
    Ok(json(StatusCode::OK, &wire::Results { results: join_all(kicked).await }))
}
