//! How requests are read: the body, the query, the headers, and who asks.

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, header};
use punctual::TaskId;
use punctual_client::wire;
use serde::de::DeserializeOwned;

use super::draft::Surroundings;
use super::failure::Failure;
use crate::app::{App, Scheduler};

/// Who asks: what they may see is in their scheduler's namespace.
pub struct Asker {
    /// The scheduler, as this asker sees it.
    pub scheduler: Scheduler,
}

impl FromRequestParts<App> for Asker {
    type Rejection = Failure;

    async fn from_request_parts(_parts: &mut Parts, app: &App) -> Result<Asker, Failure> {
        Ok(Asker { scheduler: app.scheduler().clone() })
    }
}

/// The query of a request. Unknown fields are refused, as in bodies.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query<T>, Failure> {
        let query = parts.uri.query().unwrap_or_default();
        serde_urlencoded::from_str(query).map(Query).map_err(|error| match wire::unknown_field(&error) {
            Some(unknown) => Failure::new("query_invalid", unknown.to_string()),
            None => Failure::new("query_invalid", error.to_string()),
        })
    }
}

/// The task that a path names.
pub struct Task(pub TaskId);

impl<S: Send + Sync> FromRequestParts<S> for Task {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Task, Failure> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(text) = path.map_err(|error| Failure::new("not_found", error.to_string()))?;
        task_id(&text).map(Task)
    }
}

/// The body of a request, as long as it is not too large.
pub struct Body(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Body, Failure> {
        let read = Bytes::from_request(request, state).await;
        read.map(Body).map_err(|error| match error.status().as_u16() {
            413 => Failure::new("body_too_large", "32 MiB is the most: send it in several requests"),
            _ => Failure::new("body_invalid", format!("the body broke off: {error}")),
        })
    }
}

/// A task's id, read from text.
pub fn task_id(text: &str) -> Result<TaskId, Failure> {
    text.parse().map_err(|error: punctual::NotATaskId| punctual::Error::from(error).into())
}

/// Reads a body. No body at all is an empty object.
pub fn body<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, Failure> {
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    wire::read(bytes).map_err(Failure::from)
}

/// What a request says besides its tasks.
pub fn surroundings(headers: &HeaderMap) -> Surroundings {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Surroundings { traceparent: text("traceparent"), tracestate: text("tracestate") }
}

/// Whether no more than ids are wanted.
pub fn wants_minimal(headers: &HeaderMap) -> bool {
    let prefer = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    prefer.flat_map(|value| value.split(',')).any(|wish| wish.trim().eq_ignore_ascii_case("return=minimal"))
}

/// The revision that a request expects. `code` is that of whoever expects another one.
pub fn if_match(headers: &HeaderMap, code: &'static str) -> Result<Option<u64>, Failure> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let number = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    number.parse().map(Some).map_err(|_| {
        Failure::new(code, format!("If-Match {text} is no ETag of ours: send the one you were given"))
    })
}
