//! Why a request failed, as a problem: each code has one status, one title and one page.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use punctual::{Error, Refusal};
use punctual_client::wire::{BodyFault, Problem};

/// Seconds after which a request that met overload may be made again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// Why a request failed.
#[derive(Debug)]
pub struct Failure(pub Problem);

/// A code's status and title. Every code has a page in `docs/errors`.
const CODES: &[(&str, u16, &str)] = &[
    ("backup_failed", 500, "No backup could be made"),
    ("body_invalid", 400, "The body is not JSON"),
    ("body_too_large", 413, "The body is too large"),
    ("body_too_slow", 408, "The body did not come in time"),
    ("call_invalid", 422, "This cannot be called"),
    ("clock_not_virtual", 409, "The clock is the machine's own"),
    ("connections_full", 503, "Too many connections are open"),
    ("cursor_invalid", 400, "The cursor is none of ours"),
    ("etag_invalid", 400, "This is no entity tag"),
    ("expires_before_due", 422, "The task would expire before it is due"),
    ("field_invalid", 422, "A field is wrong"),
    ("head_too_large", 431, "The head is too large"),
    ("host_foreign", 421, "The server is asked under another name"),
    ("idempotency_key_in_use", 409, "The first request of this idempotency key is under way"),
    ("idempotency_key_invalid", 400, "The idempotency key is wrong"),
    ("idempotency_key_reused", 422, "This idempotency key belongs to another request"),
    ("key_invalid", 401, "The API key is unknown or has expired"),
    ("key_missing", 401, "An API key is needed"),
    ("key_needed", 409, "Nobody could manage keys without this one"),
    ("key_not_found", 404, "There is no such key"),
    ("lane_not_blocked", 404, "The lane does not wait for a person"),
    ("media_type_unknown", 415, "The media type is not known"),
    ("method_not_allowed", 405, "This path has no such method"),
    ("name_empty", 422, "A name is empty"),
    ("name_too_long", 422, "A name is too long"),
    ("namespace_invalid", 422, "The namespace's name is wrong"),
    ("not_found", 404, "There is nothing at this path"),
    ("not_owner", 503, "The task's partition is elsewhere at the moment"),
    ("not_ready", 503, "The server is not ready"),
    ("notification_not_found", 404, "There is no such notification"),
    ("origin_foreign", 403, "A page of another site asks"),
    ("outcome_unknown", 504, "It may or may not have happened"),
    ("overloaded", 429, "Too much is asked at once"),
    ("payload_invalid", 422, "The payload is not JSON"),
    ("payload_too_large", 422, "The payload is too large"),
    ("priority_with_lane", 422, "A task with a lane takes its queue's priority"),
    ("query_invalid", 400, "The query is wrong"),
    ("queue_changed", 412, "The queue was changed meanwhile"),
    ("queue_exists", 412, "The queue is there already"),
    ("queue_in_use", 409, "A notification needs the queue"),
    ("queue_name_invalid", 422, "The queue's name is wrong"),
    ("queue_not_empty", 409, "Tasks wait in the queue"),
    ("queue_not_found", 404, "There is no such queue"),
    ("rate_limited", 429, "The key asks too often"),
    ("scope_missing", 403, "The API key may not do this"),
    ("setting_invalid", 422, "A setting is wrong"),
    ("stopped", 503, "The server is stopping"),
    ("store_failed", 500, "The store did not do as asked"),
    ("store_full", 507, "The disk is full"),
    ("task_changed", 412, "The task was changed meanwhile"),
    ("task_due_in_past", 422, "The task's time is too far in the past"),
    ("task_ended", 409, "The task has ended"),
    ("task_exists", 409, "A task of the same unique key, lane and time is there"),
    ("task_id_invalid", 404, "This is no task id"),
    ("task_not_failed", 409, "The task has not failed"),
    ("task_not_found", 404, "There is no such task"),
    ("task_running", 409, "An attempt is running"),
    ("time_out_of_range", 422, "A time is out of range"),
    ("token_late", 409, "The time to run is over"),
];

/// All codes, in order.
pub fn codes() -> impl Iterator<Item = &'static str> {
    CODES.iter().map(|(code, ..)| *code)
}

impl Failure {
    /// A failure of this code.
    pub fn new(code: &'static str, detail: impl Into<String>) -> Failure {
        let place = CODES.binary_search_by_key(&code, |(code, ..)| code);
        let (status, title) = place.map_or((500, "Something went wrong"), |place| {
            let (_, status, title) = CODES[place];
            (status, title)
        });
        Failure(Problem::new(status, code, title, detail))
    }

    /// Nothing is at this path.
    pub fn no_such_path() -> Failure {
        Failure::new("not_found", "nothing of the API is at this path: see docs/protocol.md")
    }

    /// Something is at this path, but not for this method.
    pub fn no_such_method(method: &http::Method) -> Failure {
        Failure::new("method_not_allowed", format!("{method} is not for this path"))
    }

    /// A field of the request is wrong.
    pub fn field(field: &str, detail: impl Into<String>) -> Failure {
        let detail = detail.into();
        Failure::new("field_invalid", format!("{field}: {detail}")).at(field, detail)
    }

    /// Names the field at fault.
    pub fn at(self, field: &str, detail: impl Into<String>) -> Failure {
        Failure(self.0.field(field, detail))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let detail = match &error {
            // What the library calls otherwise.
            Error::Refused(Refusal::BadSetting { what: "running_max", hint }) => {
                format!("concurrency {hint}")
            }
            Error::Store(cause) => format!("{error}: {cause}"),
            Error::Payload(cause) => cause.to_string(),
            _ => error.to_string(),
        };
        Failure::new(error.code(), detail)
    }
}

impl From<BodyFault> for Failure {
    fn from(fault: BodyFault) -> Failure {
        let code = if fault.is_json { "field_invalid" } else { "body_invalid" };
        let mut failure = Failure::new(code, fault.to_string());
        failure.0.errors.extend(fault.field_error());
        failure
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Failure(problem) = self;
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = http::StatusCode::from_u16(problem.status).unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(Problem::MEDIA_TYPE));
        if matches!(problem.status, 429 | 503) {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        if problem.status == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(problem);
        response
    }
}

/// Says in a problem which path it is about: only who has seen the request knows.
pub fn name_instance(path: &str, response: &mut Response) {
    if let Some(mut problem) = response.extensions_mut().remove::<Problem>() {
        problem.instance = Some(path.into());
        *response.body_mut() = Body::from(serde_json::to_vec(&problem).unwrap_or_default());
    }
}

/// The problem of a failure that is one among others.
impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        failure.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_so_that_they_can_be_found() {
        assert!(CODES.is_sorted_by(|(one, ..), (next, ..)| one < next));
    }

    #[test]
    fn every_code_of_the_library_is_known() {
        let errors = [Error::DueInPast, Error::NotFound, Error::Full, Error::Overloaded, Error::NotOwner];
        let more = [Error::Unknown, Error::Stopped, Error::Late, Error::QueueNotEmpty, Error::QueueChanged];
        for error in errors.into_iter().chain(more) {
            assert_ne!(Failure::from(error).0.title, "Something went wrong");
        }
    }
}
