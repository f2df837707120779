//! Notifications: who is told, by webhook, of dead tasks, blocked lanes and lateness.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use punctual::{Error, OnExhausted, Past, QueueSettings, RetryPolicy};
use punctual_client::wire::{self, EventKind};

use super::ask::{self, Asker, Name, Query};
use super::failure::Failure;
use super::list::purge;
use super::named::Named;
use super::reply::json;
use crate::app::{App, Scheduler};
use crate::call::{Call, Secret};
use crate::extras::Extras;
use crate::notifications::{Notification, queue_of};

/// The longest name: its queue's name must be one too.
const NAME_MAX: usize = 80;
const KINDS: [EventKind; 3] = [EventKind::TaskDead, EventKind::LaneBlocked, EventKind::Lateness];

/// `PUT /v1/notifications/{name}`
pub async fn put(
    State(app): State<App>,
    asker: Asker,
    Name(name): Name,
    ask::Body(bytes): ask::Body,
) -> Result<Response, Failure> {
    let wished: wire::NewNotification = ask::body(&bytes)?;
    let secret = checked(&app, &name, &wished)?;
    let scheduler = &asker.scheduler;
    let notification = Notification {
        namespace: scheduler.namespace().to_owned(),
        name,
        url: wished.url,
        events: wished.events,
        queue: wished.queue,
        lateness_over: wished.lateness_over.map(Into::into),
    };
    make_queue(scheduler, &notification.name, secret).await?;
    app.notifications().put(scheduler, &notification).await?;
    Ok(json(StatusCode::OK, &shown(scheduler, &notification).await?))
}

/// What it is signed with, if everything about it is sound.
fn checked(app: &App, name: &str, wished: &wire::NewNotification) -> Result<Option<Secret>, Failure> {
    if name.len() > NAME_MAX {
        return Err(Failure::new(
            "name_too_long",
            format!("the name of a notification has {NAME_MAX} bytes at most"),
        ));
    }
    punctual_core::check::queue_name(name).map_err(|_| {
        Failure::new(
            "queue_name_invalid",
            "the name of a notification has letters, digits, `_`, `-` and `.` only",
        )
    })?;
    Call::post(&wished.url)
        .check(app.guard())
        .map_err(|error| Failure::new("call_invalid", error.to_string()).at("url", error.to_string()))?;
    if wished.events.is_empty() {
        return Err(Failure::field("events", "say of what: task.dead, lane.blocked or lateness"));
    }
    if let Some(other) = wished.events.iter().find(|kind| !KINDS.contains(kind)) {
        let detail = format!(
            "{other} is not told by notifications (task.dead, lane.blocked, lateness): listen to /v1/events"
        );
        return Err(Failure::field("events", detail));
    }
    match (wished.events.contains(&EventKind::Lateness), wished.lateness_over) {
        (true, None) => return Err(Failure::field("lateness_over", "say how late is too late, such as 30s")),
        (false, Some(_)) => return Err(Failure::field("lateness_over", "is for `events` with lateness")),
        _ => {}
    }
    if let Some(queue) = &wished.queue {
        punctual_core::check::queue_name(queue).map_err(Error::from)?;
    }
    let secret = wished.secret.as_deref().map(Secret::parse).transpose();
    secret.map_err(|error| Failure::field("secret", error.to_string()))
}

/// Each has a queue of its own: one receiver that is down holds up no other.
async fn make_queue(scheduler: &Scheduler, name: &str, secret: Option<Secret>) -> Result<(), Failure> {
    let queue = queue_of(name);
    let written = scheduler.write_queue(
        &queue,
        |_| true,
        |before, extras| {
            let settings = QueueSettings {
                retry: RetryPolicy::WEBHOOKS,
                on_exhausted: OnExhausted::DeadLetter,
                past: Past::RunNow,
                ..before.clone()
            };
            let extras = Extras { secrets: secret.iter().cloned().collect(), ..Extras::decode(extras) };
            Ok((settings, extras.encode()))
        },
    );
    written.await?;
    Ok(())
}

async fn shown(scheduler: &Scheduler, notification: &Notification) -> Result<wire::Notification, Failure> {
    let queue = scheduler.find_queue(&queue_of(&notification.name)).await?;
    let signed = queue.is_some_and(|queue| !Extras::decode(&queue.extras).secrets.is_empty());
    let Notification { name, url, events, queue, lateness_over, .. } = notification.clone();
    Ok(wire::Notification { name, url, events, queue, lateness_over: lateness_over.map(Into::into), signed })
}

/// The notification that this queue is of, if it is of one.
pub fn of_queue(app: &App, scheduler: &Scheduler, queue: &str) -> Option<String> {
    let is_its = |one: &Notification| *queue_of(&one.name) == *queue;
    of_namespace(app, scheduler).into_iter().find(is_its).map(|one| one.name)
}

fn of_namespace(app: &App, scheduler: &Scheduler) -> Vec<Notification> {
    let ours = |one: &&Notification| one.namespace == scheduler.namespace();
    app.notifications().all().iter().filter(ours).cloned().collect()
}

/// `GET /v1/notifications/{name}`
pub async fn get(State(app): State<App>, asker: Asker, Name(name): Name) -> Result<Response, Failure> {
    let found = of_namespace(&app, &asker.scheduler).into_iter().find(|one| one.name == name);
    let found = found.ok_or_else(|| missing(&name))?;
    Ok(json(StatusCode::OK, &shown(&asker.scheduler, &found).await?))
}

/// `GET /v1/notifications`
pub async fn list(
    State(app): State<App>,
    asker: Asker,
    Query(query): Query<wire::PageQuery>,
) -> Result<Response, Failure> {
    let all = of_namespace(&app, &asker.scheduler);
    let (page, next) = Named::Notifications.page(&all, |one| &one.name, &query)?;
    let mut notifications = Vec::new();
    for one in page {
        notifications.push(shown(&asker.scheduler, one).await?);
    }
    Ok(json(StatusCode::OK, &wire::NotificationPage { notifications, next }))
}

/// `DELETE /v1/notifications/{name}`: what was to be sent is not sent any more.
pub async fn delete(State(app): State<App>, asker: Asker, Name(name): Name) -> Result<Response, Failure> {
    let scheduler = &asker.scheduler;
    if !app.notifications().remove(scheduler, &name).await? {
        return Err(missing(&name));
    }
    purge(scheduler, &queue_of(&name)).await?;
    match scheduler.remove_queue(&queue_of(&name), |_| true).await {
        // One that is on its way ends in a queue that nobody needs.
        Ok(()) | Err(Error::QueueNotEmpty | Error::QueueNotFound | Error::QueueChanged) => {}
        Err(error) => return Err(error.into()),
    }
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

fn missing(name: &str) -> Failure {
    Failure::new("notification_not_found", format!("no notification is called {name}"))
}
