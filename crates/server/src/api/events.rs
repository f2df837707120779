//! `GET /v1/events`: what happens, as it happens, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::sse::{self, KeepAlive, Sse};
use futures_util::{Stream, StreamExt, stream};
use punctual::{Attempt, EndState, EndedTask, Found, Task, TaskId, TaskView, Timestamp, WaitState};
use punctual_client::wire::{Event, EventData, EventKind, EventQuery, Task as WireTask};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::ask::{Asker, Query};
use super::draft::moment_of;
use super::failure::Failure;
use super::view;
use crate::app::{App, Scheduler};
use crate::watch::Happening;

/// `GET /v1/events`
pub async fn events(
    State(app): State<App>,
    asker: Asker,
    Query(query): Query<EventQuery>,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Failure> {
    if let Some(queue) = &query.queue {
        punctual_core::check::queue_name(queue).map_err(punctual::Error::from)?;
    }
    let happenings = stream::unfold(app.watch().listen(), next);
    let Asker { scheduler, who } = asker;
    let sees_all = !app.access().keys.are_needed();
    let events = happenings.filter_map(move |heard| {
        let event = match heard {
            Heard::Happening(happening) => {
                event(&scheduler, &happening).filter(|event| is_wanted(&query, event))
            }
            // How much others do is not for whoever has a key.
            Heard::TooLate(missed) => Some(gap(scheduler.now(), Some(missed).filter(|_| sees_all))),
        };
        std::future::ready(event.and_then(|event| written(&event)).map(Ok))
    });
    let events = events.take_until(Box::pin(async move {
        tokio::select! {
            () = app.stopping() => {}
            () = app.access().until_shut(&who) => {}
        }
    }));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// What there is for a listener.
enum Heard {
    Happening(Arc<Happening>),
    /// It was too slow for so many of them.
    TooLate(u64),
}

async fn next(mut happenings: Receiver<Arc<Happening>>) -> Option<(Heard, Receiver<Arc<Happening>>)> {
    match happenings.recv().await {
        Ok(happening) => Some((Heard::Happening(happening), happenings)),
        Err(RecvError::Lagged(missed)) => Some((Heard::TooLate(missed), happenings)),
        Err(RecvError::Closed) => None,
    }
}

fn is_wanted(query: &EventQuery, event: &Event) -> bool {
    query.kind.is_none_or(|kind| kind == event.kind)
        && query.queue.as_deref().is_none_or(|queue| event.data.queue.as_deref() == Some(queue))
}

/// Stands where events are missing. It is told whatever is listened for: nobody knows any more what they were.
fn gap(now: Timestamp, missed: Option<u64>) -> Event {
    let kind = EventKind::EventsMissed;
    Event {
        specversion: "1.0".to_owned(),
        id: format!("{}.{}", kind.as_str(), now.as_micros()),
        source: "/".to_owned(),
        kind,
        subject: None,
        time: moment_of(now),
        data: EventData { missed, ..EventData::default() },
    }
}

fn written(event: &Event) -> Option<sse::Event> {
    let data = serde_json::to_string(event).ok()?;
    Some(sse::Event::default().id(&event.id).event(event.kind.as_str()).data(data))
}

fn event(scheduler: &Scheduler, happening: &Happening) -> Option<Event> {
    let now = scheduler.now();
    let mut lane = None;
    let (kind, id, revision, task) = match happening {
        Happening::Created(task) => (EventKind::TaskCreated, task.id, task.revision, shown(scheduler, task)),
        Happening::Waits(task) => {
            let is_blocked = task.state == WaitState::Blocked;
            let kind = if is_blocked { EventKind::LaneBlocked } else { EventKind::TaskRetrying };
            (kind, task.id, task.revision, shown(scheduler, task))
        }
        Happening::Started(Attempt { token, spec, .. }) => {
            lane = spec.lane.as_deref().map(str::to_owned);
            (EventKind::TaskStarted, token.id, token.attempt, None)
        }
        Happening::Ended(ended) => {
            let EndedTask { task, end } = ended;
            let kind = match end.state {
                EndState::Succeeded => EventKind::TaskSucceeded,
                EndState::Dead => EventKind::TaskDead,
                EndState::Cancelled => EventKind::TaskCancelled,
                EndState::Expired => EventKind::TaskExpired,
            };
            let view = TaskView { found: Found::Ended(ended.clone()), running: None };
            (kind, task.id, task.revision, of_queue(scheduler, task.id, &view))
        }
    };
    let queue = scheduler.queue_of(id)?.to_string();
    let lane = task.as_ref().map_or(lane, |task: &WireTask| task.lane.clone());
    Some(Event {
        specversion: "1.0".to_owned(),
        id: format!("{id}.{}.{revision}", kind.as_str()),
        source: "/".to_owned(),
        kind,
        subject: Some(id.to_string()),
        time: moment_of(now),
        data: EventData { queue: Some(queue), lane, task, ..EventData::default() },
    })
}

fn shown(scheduler: &Scheduler, task: &Task) -> Option<WireTask> {
    let view = TaskView { found: Found::Live(task.clone()), running: None };
    of_queue(scheduler, task.id, &view)
}

fn of_queue(scheduler: &Scheduler, id: TaskId, view: &TaskView) -> Option<WireTask> {
    view::task(view, &scheduler.queue_of(id)?, false)
}
