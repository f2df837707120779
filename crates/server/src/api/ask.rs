//! How requests are read: the body, the query, the headers, and who asks.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::extract::{FromRequest, FromRequestParts, Request};
use bytes::{Bytes, BytesMut};
use futures_util::poll;
use http::request::Parts;
use http::{HeaderMap, HeaderName, header};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use punctual::TaskId;
use punctual_client::wire;
use serde::de::DeserializeOwned;

use super::draft::Surroundings;
use super::failure::Failure;
use crate::access::{Asked, Held, Room, Who};
use crate::app::Scheduler;
use crate::units::{KIB, MIB};

/// Who asks: what they may see is in their scheduler's namespace.
pub struct Asker {
    /// The scheduler, as this asker sees it.
    pub scheduler: Scheduler,
    /// Who they are.
    pub who: Who,
}

impl FromRequestParts<Arc<Asked>> for Asker {
    type Rejection = Failure;

    async fn from_request_parts(_: &mut Parts, asked: &Arc<Asked>) -> Result<Asker, Failure> {
        let who = asked.who.clone();
        Ok(Asker { scheduler: asked.app.scheduler().in_namespace(who.namespace())?, who })
    }
}

/// What the path names.
pub struct Name(pub String);

impl FromRequestParts<Arc<Asked>> for Name {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, asked: &Arc<Asked>) -> Result<Name, Infallible> {
        Ok(Name(asked.name.clone()))
    }
}

/// The query of a request. Unknown fields are refused, as in bodies.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query<T>, Failure> {
        let query = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let query = serde_urlencoded::Deserializer::new(query);
        serde_path_to_error::deserialize(query).map(Query).map_err(|error| {
            let (field, problem) = (error.path().to_string(), error.inner().to_string());
            let problem = match wire::unknown_field(&problem) {
                Some(unknown) => return Failure::new("query_invalid", unknown.to_string()),
                None if problem.contains("digit") || problem.contains("integer") => "is no number".to_owned(),
                None => problem,
            };
            match &*field {
                "." => Failure::new("query_invalid", problem),
                field => Failure::new("query_invalid", format!("{field}: {problem}")).at(field, problem),
            }
        })
    }
}

/// Whether a request asks for all of the tasks that it is answered with.
pub struct Full(pub bool);

impl<S: Sync> FromRequestParts<S> for Full {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Full, Failure> {
        let Query(query) = Query::<wire::ViewQuery>::from_request_parts(parts, state).await?;
        Ok(Full(query.view == Some(wire::View::Full)))
    }
}

/// The task that a path names.
pub struct Task(pub TaskId);

impl FromRequestParts<Arc<Asked>> for Task {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, asked: &Arc<Asked>) -> Result<Task, Failure> {
        let asker = Asker::from_request_parts(parts, asked).await?;
        task_id(&asker.scheduler, &asked.name).map(Task)
    }
}

/// The body of a request, as long as it is not too large.
pub struct Body(pub Bytes);

impl FromRequest<Arc<Asked>> for Body {
    type Rejection = Failure;

    async fn from_request(request: Request, asked: &Arc<Asked>) -> Result<Body, Failure> {
        refuse_coded(request.headers())?;
        let access = asked.app.access();
        let limits = &access.limits;
        let mut reading = pin!(read_body(request.into_body(), limits.body_max, &asked.held, &access.room));
        // Most bodies come with their heads, and need no timer.
        if let Poll::Ready(read) = poll!(reading.as_mut()) {
            return read.map(Body);
        }
        match tokio::time::timeout(limits.body_timeout, reading).await {
            Ok(read) => read.map(Body),
            Err(_) => {
                let detail = format!("the body took longer than {} s", limits.body_timeout.as_secs_f32());
                Err(Failure::new("body_too_slow", detail))
            }
        }
    }
}

/// Refuses a body that is compressed, or sent in another way that nobody here undoes.
pub fn refuse_coded(headers: &HeaderMap) -> Result<(), Failure> {
    for (name, plain) in [(header::CONTENT_ENCODING, "identity"), (header::TRANSFER_ENCODING, "chunked")] {
        if let Some(coding) = headers.get(&name)
            && !coding.as_bytes().eq_ignore_ascii_case(plain.as_bytes())
        {
            return Err(Failure::new(
                "media_type_unknown",
                format!("{name}: {coding:?} is not read: send the body as it is"),
            ));
        }
    }
    Ok(())
}

/// A body that says nothing: none at all, or an empty object. Whoever says more expects that it is heeded.
pub struct Nothing;

impl FromRequest<Arc<Asked>> for Nothing {
    type Rejection = Failure;

    async fn from_request(request: Request, asked: &Arc<Asked>) -> Result<Nothing, Failure> {
        let Body(bytes) = Body::from_request(request, asked).await?;
        let wire::Nothing {} = body(&bytes)?;
        Ok(Nothing)
    }
}

/// Reads a body, as long as it is not too large and there is room for it.
async fn read_body(
    mut body: axum::body::Body,
    body_max: usize,
    held: &Held,
    room: &Room,
) -> Result<Bytes, Failure> {
    let declared = body.size_hint().lower().try_into().unwrap_or(usize::MAX);
    take(declared, body_max, held, room)?;
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Failure::new("body_invalid", format!("the body broke off: {error}")))?;
        let Ok(part) = frame.into_data() else { continue };
        let length = first.len() + rest.len() + part.len();
        if length > declared {
            take(length, body_max, held, room)?;
        }
        // Most come in one piece, which need not be copied.
        if first.is_empty() && rest.is_empty() {
            first = part;
            continue;
        }
        if rest.is_empty() {
            rest.reserve(length.max(declared));
            rest.extend(std::mem::take(&mut first));
        }
        rest.extend(part);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

fn take(length: usize, body_max: usize, held: &Held, room: &Room) -> Result<(), Failure> {
    if length > body_max {
        let most = match body_max {
            bytes if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
            bytes => format!("{} KiB", bytes / KIB),
        };
        return Err(Failure::new(
            "body_too_large",
            format!("{most} is the most: send it in several requests"),
        ));
    }
    if !held.hold(room, length) {
        let detail = "the server holds as much of others' requests as it may: try again in a moment";
        return Err(Failure::new("overloaded", detail));
    }
    Ok(())
}

/// A task's id, read from text. What is not of the asker's namespace is not there.
pub fn task_id(scheduler: &Scheduler, text: &str) -> Result<TaskId, Failure> {
    task_and_queue(scheduler, text).map(|(id, _)| id)
}

/// The same, and the name of its queue.
pub fn task_and_queue(scheduler: &Scheduler, text: &str) -> Result<(TaskId, Arc<str>), Failure> {
    let id = text.parse().map_err(|error: punctual::NotATaskId| punctual::Error::from(error))?;
    let queue = scheduler.queue_of(id).ok_or(punctual::Error::NotFound)?;
    Ok((id, queue))
}

/// In a path these two mean another place, so that most clients could not ask for a queue of such a name.
pub fn refuse_dots(queue: &str) -> Result<(), Failure> {
    match queue {
        "." | ".." => {
            let detail = format!("{queue:?} means another place in a path: a queue cannot be called so");
            Err(Failure::new("queue_name_invalid", detail))
        }
        _ => Ok(()),
    }
}

/// Reads a body. No body at all is an empty object.
pub fn body<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, Failure> {
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    wire::read(bytes).map_err(Failure::from)
}

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// What a request says besides its tasks.
pub fn surroundings(headers: &HeaderMap) -> Surroundings {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    // Nobody reads the state of a trace that is not there.
    let traceparent = text(&TRACEPARENT);
    let tracestate = traceparent.as_ref().and_then(|_| text(&TRACESTATE));
    Surroundings { traceparent, tracestate }
}

/// Whether no more than ids are wanted.
pub fn wants_minimal(headers: &HeaderMap) -> bool {
    let prefer = headers.get_all(&PREFER).iter().filter_map(|value| value.to_str().ok());
    prefer.flat_map(|value| value.split(',')).any(|wish| wish.trim().eq_ignore_ascii_case("return=minimal"))
}
