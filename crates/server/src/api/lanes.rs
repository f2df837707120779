//! Lanes whose head waits for a person: which they are, and what becomes of the head.

use axum::response::Response;
use http::StatusCode;
use punctual::{Filter, Found, TaskId, WaitState};
use punctual_client::wire;

use super::ask::{self, Asker, Query};
use super::failure::Failure;
use super::list::{blocked_heads, page_limit};
use super::reply::json;
use super::tasks::look;
use crate::app::Scheduler;

/// So many tasks of a lane are looked at for its head.
const HEAD_LOOK_MAX: usize = 1_000;

/// `GET /v1/lanes`
pub async fn list(asker: Asker, Query(query): Query<wire::LaneQuery>) -> Result<Response, Failure> {
    if query.blocked == Some(false) {
        return Err(Failure::new("query_invalid", "blocked: only lanes that are blocked can be listed"));
    }
    let limit = page_limit(query.limit)?;
    let full = query.view == Some(wire::View::Full);
    let cursor = query.cursor.as_deref();
    let (heads, next) = blocked_heads(&asker.scheduler, query.queue, cursor, limit, full).await?;
    let lanes = heads.into_iter().filter_map(|head| {
        let (queue, lane) = (head.queue.clone(), head.lane.clone()?);
        Some(wire::Lane { queue, lane, blocked: true, head: Some(head) })
    });
    Ok(json(StatusCode::OK, &wire::LanePage { lanes: lanes.collect(), next }))
}

/// `POST /v1/lanes:release`: tries the head again.
pub async fn release(asker: Asker, ask::Body(bytes): ask::Body) -> Result<Response, Failure> {
    let head = head(&asker.scheduler, &ask::body(&bytes)?).await?;
    asker.scheduler.retry(head).await?;
    let (task, _) = look(&asker.scheduler, head, false).await?;
    Ok(json(StatusCode::OK, &task))
}

/// `POST /v1/lanes:skip`: cancels the head, so that the lane goes on.
pub async fn skip(asker: Asker, ask::Body(bytes): ask::Body) -> Result<Response, Failure> {
    let head = head(&asker.scheduler, &ask::body(&bytes)?).await?;
    asker.scheduler.cancel(head).await?;
    let (task, _) = look(&asker.scheduler, head, false).await?;
    Ok(json(StatusCode::OK, &task))
}

/// The head of a lane, if it waits for a person.
async fn head(scheduler: &Scheduler, name: &wire::LaneName) -> Result<TaskId, Failure> {
    let filter = Filter::live().queue(&name.queue).lane(&name.lane);
    let mut from = None;
    loop {
        let page = scheduler.list(&filter, from, HEAD_LOOK_MAX).await?;
        let blocked = page.tasks.iter().find_map(|found| match found {
            Found::Live(task) if task.state == WaitState::Blocked => Some(task.id),
            _ => None,
        });
        match (blocked, page.next) {
            (Some(head), _) => return Ok(head),
            (None, Some(next)) => from = Some(next),
            (None, None) => {
                let detail =
                    format!("no head of lane {} in queue {} waits for a person", name.lane, name.queue);
                return Err(Failure::new("lane_not_blocked", detail));
            }
        }
    }
}
