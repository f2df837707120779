//! What is asked about the server itself: whether it is well, and what a code means.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header;
use punctual::{Store, StoreError};

use super::ask::Name;
use super::failure::Failure;
use crate::app::App;
use crate::error_pages;
use crate::metrics::Looked;

/// A write may take so long.
const WRITE_MAX: Duration = Duration::from_secs(2);
/// Where it is written.
const PROBE: &str = "ready-probe";
const PROBE_KEPT: Duration = Duration::from_secs(60);

/// `GET /healthz`: the process lives.
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: it owns its partitions, its store takes writes, and it is not stopping.
pub async fn readyz(State(app): State<App>) -> Result<&'static str, Failure> {
    if app.is_stopping() {
        return Err(Failure::new("not_ready", "the server is stopping: it takes reports, and nothing new"));
    }
    let load = app.scheduler().load().await?;
    if load.partitions_owned < load.partitions {
        let detail = format!("{} of {} partitions are ours", load.partitions_owned, load.partitions);
        return Err(Failure::new("not_ready", detail));
    }
    match tokio::time::timeout(WRITE_MAX, write(&app)).await {
        Ok(Ok(())) => Ok("ready\n"),
        Ok(Err(error)) => Err(Failure::new("not_ready", format!("the store takes no writes: {error}"))),
        Err(_) => Err(Failure::new("not_ready", "the store has not taken a write for two seconds")),
    }
}

/// A write like any other: only the store itself can say whether it takes them. It is gone again after a while.
async fn write(app: &App) -> Result<(), StoreError> {
    let (store, now) = (app.scheduler().store(), app.scheduler().now());
    let version = store.get(now, PROBE).await?.map(|entry| entry.version);
    store
        .compare_and_set(now, PROBE, version, Some(Bytes::from_static(b"ready")), Some(now + PROBE_KEPT))
        .await?;
    Ok(())
}

/// `GET /metrics`
pub async fn metrics(State(app): State<App>) -> Result<Response, Failure> {
    let scheduler = app.scheduler();
    let load = scheduler.load().await?;
    let waiting_since = scheduler.waiting().await?.into_iter().map(|(_, since)| since).min();
    let looked = Looked {
        load,
        oldest_due_age: waiting_since.map_or(Duration::ZERO, |since| scheduler.now().since(since)),
        lanes_blocked: app.watch().blocked().count(),
        tasks: app.watch().counts().totals(),
        store: scheduler.store().gauges(),
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], app.watch().metrics().text(&looked)).into_response())
}

/// `GET /openapi.json`. A test makes it anew from the wire types, and compares.
pub async fn openapi() -> Response {
    let document = include_str!("../../../../docs/openapi.json");
    ([(header::CONTENT_TYPE, "application/json")], document).into_response()
}

/// `GET /errors/{code}`
pub async fn error(Name(code): Name) -> Result<Response, Failure> {
    let page = error_pages::of(&code);
    let page = page.ok_or_else(|| Failure::new("not_found", "there is no such code"))?;
    Ok(([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], page).into_response())
}
