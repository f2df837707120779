//! What is on hold since the data folder was restored: nothing of it starts until somebody has looked.

use axum::response::Response;
use http::StatusCode;
use punctual::HeldQueue;
use punctual_client::wire;

use super::ask::{self, Asker};
use super::failure::Failure;
use super::reply::json;

/// `GET /v1/hold`
pub async fn get(asker: Asker) -> Result<Response, Failure> {
    Ok(json(StatusCode::OK, &shown(asker.scheduler.held().await?)))
}

/// `POST /v1/hold:release`: resumes what the restore has paused.
pub async fn release(asker: Asker, ask::Nothing: ask::Nothing) -> Result<Response, Failure> {
    Ok(json(StatusCode::OK, &shown(asker.scheduler.release_hold().await?)))
}

fn shown(queues: Vec<HeldQueue>) -> wire::Hold {
    let shown =
        |queue: HeldQueue| wire::HeldQueue { namespace: queue.namespace.into(), queue: queue.name.into() };
    wire::Hold { queues: queues.into_iter().map(shown).collect() }
}
