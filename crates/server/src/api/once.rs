//! `Idempotency-Key`: the same request again gets the first answer again.
//!
//! What was answered lies in the store's map for a day, beside a fingerprint of the request. While the first request is
//! under way its key is taken, for a minute at most: if its server dies, the key is free again, and what the request
//! made may be made twice. Whoever cannot have that gives the tasks a `unique_key`.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use punctual::{Error, Store};
use punctual_client::wire::CreateResult;
use punctual_store::Swap;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::failure::Failure;
use crate::app::Scheduler;
use crate::units::MIB;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const KEY_MAX: usize = 255;
/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// How long a request may be under way.
const UNDER_WAY_MAX: Duration = Duration::from_secs(60);
/// A request with a key can make so many tasks and no more: the answer is kept, whatever it says of each.
const TASKS_MAX: usize = 1_000;
/// Larger than what can be said of so many tasks.
const ANSWER_MAX: usize = 16 * MIB;
const OUTCOME_UNKNOWN: &str = "outcome_unknown";
/// What is kept of an answer's head.
const KEPT_HEADERS: [HeaderName; 3] = [header::CONTENT_TYPE, header::LOCATION, header::ETAG];

#[derive(Serialize, Deserialize)]
struct Kept {
    fingerprint: u128,
    /// Nothing while the request is under way.
    answer: Option<KeptAnswer>,
}

#[derive(Serialize, Deserialize)]
struct KeptAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// The key that a request names.
pub struct Key(String);

/// What tells a request from another with the same key.
pub fn fingerprint(path: &str, body: &[u8]) -> u128 {
    xxh3_128(body) ^ xxh3_128(path.as_bytes())
}

/// A request whose answer could not be kept must not be begun: the key would promise what is not so.
pub fn refuse_too_many_to_keep(count: usize) -> Result<(), Failure> {
    if count <= TASKS_MAX {
        return Ok(());
    }
    let detail = format!(
        "{count} tasks are too many for one Idempotency-Key: {TASKS_MAX} is the most; send several requests, each with its own key, \
         or give each task a `unique_key`"
    );
    Err(Failure::new("body_too_large", detail))
}

/// Has a request answered, or answers as it was answered before.
pub async fn once(
    scheduler: &Scheduler,
    Key(key): &Key,
    fingerprint: u128,
    answer: impl Future<Output = Result<Response, Failure>>,
) -> Result<Response, Failure> {
    let key = format!("idempotency/{}/{key}", scheduler.namespace());
    let version = match take(scheduler, &key, fingerprint).await? {
        Taken::Before(answer) => return Ok(again(answer)),
        Taken::Now(version) => version,
    };
    let answer = answer.await;
    // Nothing was done, so that the key is free; unless nobody knows whether something was.
    let is_free = match &answer {
        Ok(response) => response.extensions().get::<NothingMade>().is_some(),
        Err(failure) => failure.0.code != OUTCOME_UNKNOWN,
    };
    match answer {
        Ok(response) if !is_free => keep(scheduler, &key, version, fingerprint, response).await,
        answer => {
            if is_free {
                let now = scheduler.now();
                scheduler.store().compare_and_set(now, &key, Some(version), None, None).await.ok();
            }
            answer
        }
    }
}

/// Stands beside the answer to a batch of which nothing was made, and something only for the moment: whoever sends it again
/// may hear something else.
#[derive(Clone)]
pub struct NothingMade;

impl NothingMade {
    /// Whether these results say so.
    pub fn of(results: &[CreateResult]) -> Option<NothingMade> {
        let refused = |result: &CreateResult| {
            result.problem.as_ref().is_some_and(|problem| problem.code != OUTCOME_UNKNOWN)
        };
        let for_the_moment = |result: &CreateResult| result.status == 429 || result.status >= 500;
        (results.iter().all(refused) && results.iter().any(for_the_moment)).then_some(NothingMade)
    }
}

enum Taken {
    /// The first request was answered so.
    Before(KeptAnswer),
    /// This is the first; the key is taken, at this version.
    Now(u64),
}

/// The key that a head names, if it names one.
pub fn key(headers: &HeaderMap) -> Result<Option<Key>, Failure> {
    let Some(value) = headers.get(&KEY) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    // The draft has it as a quoted string; most send it bare.
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    if text.is_empty() || text.len() > KEY_MAX {
        return Err(Failure::new("idempotency_key_invalid", "it must have 1 to 255 printable characters"));
    }
    Ok(Some(Key(text.to_owned())))
}

async fn take(scheduler: &Scheduler, key: &str, fingerprint: u128) -> Result<Taken, Failure> {
    let now = scheduler.now();
    let value = written(&Kept { fingerprint, answer: None });
    let until = Some(now + UNDER_WAY_MAX);
    let swap = scheduler.store().compare_and_set(now, key, None, Some(value), until).await;
    let there = match swap.map_err(Error::from)? {
        Swap::Done(version) => return Ok(Taken::Now(version.unwrap_or_default())),
        Swap::Conflict(there) => there,
    };
    let kept: Option<Kept> = there.and_then(|entry| postcard::from_bytes(&entry.value).ok());
    match kept {
        Some(kept) if kept.fingerprint != fingerprint => Err(Failure::new(
            "idempotency_key_reused",
            "the first request with this key had another path or body: use a new key",
        )),
        Some(Kept { answer: Some(answer), .. }) => Ok(Taken::Before(answer)),
        _ => Err(Failure::new("idempotency_key_in_use", "wait, and send the same request again")),
    }
}

fn written(kept: &Kept) -> Bytes {
    postcard::to_stdvec(kept).expect("plain fields can always be written").into()
}

async fn keep(
    scheduler: &Scheduler,
    key: &str,
    version: u64,
    fingerprint: u128,
    response: Response,
) -> Result<Response, Failure> {
    let (head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    if body.len() <= ANSWER_MAX {
        let text = |name: &HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
        let headers = KEPT_HEADERS.iter().filter_map(|name| Some((name.to_string(), text(name)?.to_owned())));
        let answer =
            KeptAnswer { status: head.status.as_u16(), headers: headers.collect(), body: body.to_vec() };
        let value = written(&Kept { fingerprint, answer: Some(answer) });
        let (now, store) = (scheduler.now(), scheduler.store());
        // If it cannot be kept, the tasks are there all the same, and that is what was asked.
        store.compare_and_set(now, key, Some(version), Some(value), Some(now + KEPT)).await.ok();
    }
    Ok(Response::from_parts(head, Body::from(body)))
}

fn again(answer: KeptAnswer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or_default();
    for (name, value) in answer.headers {
        let (name, value) = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = (name, value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
