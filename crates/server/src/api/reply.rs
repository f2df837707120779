//! How requests are answered: JSON, with an entity tag where there is something to compare.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

/// An answer in JSON.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let mut response = Response::new(Body::from(serde_json::to_vec(value).unwrap_or_default()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Adds a line of JSON. What a task carries is kept as it came, perhaps over several lines; within a JSON string no line ends.
pub fn push_line(lines: &mut Vec<u8>, value: &impl Serialize) {
    let begin = lines.len();
    serde_json::to_writer(&mut *lines, value).ok();
    lines[begin..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    lines.push(b'\n');
}

/// The same, with the version of what is answered.
pub fn tagged(status: StatusCode, version: u64, value: &impl Serialize) -> Response {
    with_tag(version, json(status, value))
}

/// Whoever asks has it already, in this version.
pub fn unchanged(version: u64) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    with_tag(version, response)
}

fn with_tag(version: u64, mut response: Response) -> Response {
    response.headers_mut().insert(header::ETAG, tag(version));
    response
}

fn tag(version: u64) -> HeaderValue {
    // Of what was just made, which is most of what is tagged.
    if version == 1 {
        return HeaderValue::from_static("\"1\"");
    }
    HeaderValue::try_from(format!("\"{version}\"")).expect("digits can stand in a header")
}
