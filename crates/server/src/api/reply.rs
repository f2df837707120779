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

/// The same, with the version of what is answered.
pub fn tagged(status: StatusCode, version: u64, value: &impl Serialize) -> Response {
    let mut response = json(status, value);
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}
