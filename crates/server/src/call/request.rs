//! What a called server sees: the request of one attempt.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use http_body_util::Full;
use punctual_core::{Attempt, Timestamp, Token};
use serde::de::IgnoredAny;
use xxhash_rust::xxh3::xxh3_64;

use super::Call;
use super::check::{BadCall, Place, parse_header, parse_method};
use super::rules::QueueRules;
use super::sign::signature;
use crate::api::moment_of;
use crate::trace::Trace;

const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("punctual/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const TASK: HeaderName = HeaderName::from_static("punctual-task");
const QUEUE: HeaderName = HeaderName::from_static("punctual-queue");
const ATTEMPT: HeaderName = HeaderName::from_static("punctual-attempt");
const FENCE: HeaderName = HeaderName::from_static("punctual-fence");
const SCHEDULED_FOR: HeaderName = HeaderName::from_static("punctual-scheduled-for");

/// Methods that usually have no body.
const BODILESS: [Method; 5] = [Method::GET, Method::HEAD, Method::DELETE, Method::OPTIONS, Method::TRACE];

/// The request of an attempt, as it would be sent at `now`.
pub(super) fn build(
    now: Timestamp,
    place: &Place,
    attempt: &Attempt,
    call: &Call,
    rules: &QueueRules,
) -> Result<Request<Full<Bytes>>, BadCall> {
    let method = parse_method(&call.method)?;
    let body = body(&method, attempt, call);
    let mut headers = HeaderMap::with_capacity(call.headers.len() + 12);
    for (name, value) in &call.headers {
        let (name, value) = parse_header(name, value)?;
        headers.append(name, value);
    }
    // The client would put it together from its parts.
    if let Some(host) = place.uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
        headers.insert(header::HOST, host);
    }
    headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
    if !headers.contains_key(header::CONTENT_TYPE) && is_json(&body) {
        headers.insert(header::CONTENT_TYPE, JSON);
    }
    // Where a body is usual, some servers insist on being told that there is none.
    if body.is_empty() && !BODILESS.contains(&method) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(0));
    }
    add_own(&mut headers, attempt, rules);
    add_trace(&mut headers, attempt.token, call);
    add_signature(&mut headers, now, attempt.token, rules, &body);
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = place.uri.clone();
    *request.headers_mut() = headers;
    Ok(request)
}

fn body(method: &Method, attempt: &Attempt, call: &Call) -> Bytes {
    match &call.body {
        Some(body) => body.clone(),
        None if matches!(*method, Method::GET | Method::HEAD) => Bytes::new(),
        None => attempt.spec.payload.clone(),
    }
}

fn is_json(body: &[u8]) -> bool {
    !body.is_empty() && serde_json::from_slice::<IgnoredAny>(body).is_ok()
}

fn add_own(headers: &mut HeaderMap, attempt: &Attempt, rules: &QueueRules) {
    let token = attempt.token;
    if let Ok(id) = HeaderValue::try_from(token.id.to_string()) {
        for name in [IDEMPOTENCY_KEY, WEBHOOK_ID, TASK] {
            headers.insert(name, id.clone());
        }
    }
    // What cannot be said in a header is left out.
    if let Ok(queue) = HeaderValue::from_str(&rules.queue) {
        headers.insert(QUEUE, queue);
    }
    headers.insert(ATTEMPT, token.attempt.into());
    headers.insert(FENCE, fence(token).into());
    if let Ok(at) = HeaderValue::try_from(moment_of(attempt.spec.at).to_string()) {
        headers.insert(SCHEDULED_FOR, at);
    }
}

/// One number that grows with every attempt of a task. Epochs have 24 bits at most (the numbers of tasks leave them no
/// more), so that the attempt has room below.
fn fence(token: Token) -> u64 {
    (token.epoch.0 << 32) | u64::from(token.attempt)
}

fn add_trace(headers: &mut HeaderMap, token: Token, call: &Call) {
    let parent = call.traceparent.as_deref();
    let Some(trace) = parent.and_then(|parent| Trace::read(parent, call.tracestate.as_deref())) else {
        return;
    };
    // A span of this attempt's own.
    let Ok(parent) = HeaderValue::from_str(&trace.with_span(span_of(token))) else { return };
    headers.insert("traceparent", parent);
    if let Some(state) = trace.state.and_then(|state| HeaderValue::from_str(&state).ok()) {
        headers.insert("tracestate", state);
    }
}

/// The number of an attempt's span. It follows from the attempt, so that nobody need remember it.
pub(crate) fn span_of(token: Token) -> u64 {
    let mut bytes = token.id.to_bytes().to_vec();
    bytes.extend_from_slice(&fence(token).to_be_bytes());
    // A span must not be zero.
    xxh3_64(&bytes).max(1)
}

fn add_signature(headers: &mut HeaderMap, now: Timestamp, token: Token, rules: &QueueRules, body: &[u8]) {
    if rules.secrets.is_empty() {
        return;
    }
    let seconds = now.as_micros().div_euclid(1_000_000);
    let Some(signature) = signature(&rules.secrets, &token.id.to_string(), seconds, body) else { return };
    if let Ok(signature) = HeaderValue::from_str(&signature) {
        headers.insert("webhook-timestamp", seconds.into());
        headers.insert("webhook-signature", signature);
    }
}
