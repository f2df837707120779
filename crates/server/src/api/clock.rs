//! The server's clock. A virtual one, for users' tests, is set forward from moment to moment: each time something is due,
//! it is done before time goes on, so that retries and deadlines fall where they would on a real clock.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual::Timestamp;
use punctual::clock::VirtualClock;
use punctual_client::wire;

use super::ask::{self, Asker};
use super::draft::{after, moment, moment_of};
use super::failure::Failure;
use super::reply::json;
use crate::app::App;

/// Time goes on by this much at least: what is due within it has its turn together, in order.
const STEP_MIN: Duration = Duration::from_millis(1);

/// `GET /v1/clock`
pub async fn get(asker: Asker) -> Response {
    let clock = match asker.scheduler.clock().as_virtual() {
        Some(_) => wire::ClockKind::Virtual,
        None => wire::ClockKind::Real,
    };
    json(StatusCode::OK, &wire::Clock { clock, now: moment_of(asker.scheduler.now()) })
}

/// `POST /v1/clock:advance`
pub async fn advance(
    State(app): State<App>,
    asker: Asker,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let wished: wire::AdvanceClock = ask::body(&bytes)?;
    let clock = asker.scheduler.clock().as_virtual().ok_or_else(|| {
        let hint = "the machine's clock cannot be set from here: start the server with --clock virtual";
        Failure::new("clock_not_virtual", hint)
    })?;
    // Two who set it at once would each find the other's time.
    let _alone = app.advancing().await;
    let to = wanted(&wished, clock.wall())?;
    let before = app.watch().metrics().started_count();
    advance_to(&app, clock, to).await?;
    let started = app.watch().metrics().started_count() - before;
    Ok(json(StatusCode::OK, &wire::Advanced { now: moment_of(clock.wall()), started }))
}

fn wanted(wished: &wire::AdvanceClock, now: Timestamp) -> Result<Timestamp, Failure> {
    let to = match (&wished.to, wished.by) {
        (Some(_), Some(_)) => return Err(Failure::field("by", "give `to` or `by`, not both")),
        (None, None) => return Err(Failure::field("to", "give `to`, a time, or `by`, a duration")),
        (Some(to), None) => moment("to", to, wished.timezone.as_deref())?,
        (None, Some(by)) => after("by", now, by.into())?,
    };
    if to < now {
        let detail = format!("it is {} already, and time does not go back", moment_of(now));
        return Err(Failure::field("to", detail));
    }
    Ok(to)
}

async fn advance_to(app: &App, clock: &VirtualClock, to: Timestamp) -> Result<(), Failure> {
    loop {
        let quiet = app.scheduler().quiet().await?;
        // What became of it is sent before time goes on.
        if app.watch().debts().settled().await {
            continue;
        }
        let wall = clock.wall();
        let next_at = quiet.next_at.map(|at| at.max(wall + STEP_MIN)).filter(|at| *at < to);
        match next_at {
            Some(at) => clock.advance_to(at),
            None if wall < to => clock.advance_to(to),
            None => return Ok(()),
        }
    }
}
