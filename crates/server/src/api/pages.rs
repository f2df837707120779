//! What is asked about the server itself: whether it is well, and what a code means.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header;

use super::ask::Asker;
use super::failure::Failure;
use crate::app::App;
use crate::error_pages;

/// `GET /healthz`: the process lives.
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: it owns its partitions, and answers.
pub async fn readyz(asker: Asker) -> Result<&'static str, Failure> {
    asker.scheduler.load().await?;
    Ok("ready\n")
}

/// `GET /metrics`
pub async fn metrics(State(app): State<App>) -> Result<Response, Failure> {
    let load = app.scheduler().load().await?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], app.watch().metrics().text(load)).into_response())
}

/// `GET /openapi.json`. A test makes it anew from the wire types, and compares.
pub async fn openapi() -> Response {
    let document = include_str!("../../../../docs/openapi.json");
    ([(header::CONTENT_TYPE, "application/json")], document).into_response()
}

/// `GET /errors/{code}`
pub async fn error(Path(code): Path<String>) -> Result<Response, Failure> {
    let page = error_pages::of(&code);
    let page = page.ok_or_else(|| Failure::new("not_found", "there is no such code"))?;
    Ok(([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], page).into_response())
}
