//! What is sent to others of the server's own accord, as tasks: results to callbacks, and notifications.

use std::sync::Arc;

use punctual::{NewTask, OnConflict, Past, QueueSettings, RetryPolicy, Target, TaskId, Timestamp};
use punctual_client::wire::{Event, EventData};

use crate::api::moment_of;
use crate::app::{App, Scheduler};
use crate::call::Call;
use crate::delivery::Delivery;
use crate::notifications::{self, Notification};
use crate::owed::{Callback, Owed, Told};

/// The queue of results.
const CALLBACKS: &str = "callbacks";
/// What a result may take besides, so that the whole fits into a payload.
const BODY_MAX: usize = 250 * 1024;

/// A task that is to be scheduled, and its queue.
#[derive(Clone)]
pub struct Letter {
    /// The queue.
    pub queue: String,
    /// The task.
    pub task: NewTask,
}

/// All that is to be sent because of this, each with its namespace.
pub fn all(app: &App, id: TaskId, owed: Owed) -> Vec<(Arc<str>, Letter)> {
    let place = app.scheduler().place_of(id.queue);
    let (namespace, queue) = place.unwrap_or_else(|| ("default".into(), "".into()));
    let at = Timestamp::from_micros(owed.at);
    let mut letters: Vec<Letter> =
        owed.callback.into_iter().filter_map(|it| result(it, (&namespace, &queue), at)).collect();
    if let Some(told) = owed.event {
        letters.extend(told_of(app, (&namespace, &queue), id, told, at));
    }
    letters.into_iter().map(|letter| (namespace.clone(), letter)).collect()
}

fn result(callback: Callback, (namespace, queue): (&str, &str), at: Timestamp) -> Option<Letter> {
    let Callback { url, mut sent } = callback;
    queue.clone_into(&mut sent.queue);
    let mut body = serde_json::to_vec(&sent).ok()?;
    if body.len() > BODY_MAX {
        (sent.result, sent.result_omitted) = (None, true);
        body = serde_json::to_vec(&sent).ok()?;
    }
    Some(letter((namespace, CALLBACKS), Call::post(url), &sent.id, at, body))
}

/// Those who are to be told of it. What happens to notifications themselves is told to nobody, or it would never end.
fn told_of<'a>(
    app: &'a App,
    (namespace, queue): (&'a str, &'a str),
    id: TaskId,
    told: Told,
    at: Timestamp,
) -> Vec<Letter> {
    if notifications::is_queue(queue) {
        return Vec::new();
    }
    let Told { kind, mut task } = told;
    queue.clone_into(&mut task.queue);
    let happened = task.ended_at.unwrap_or_else(|| moment_of(app.scheduler().now()));
    let (lane, unique) = (task.lane.clone(), format!("{id}.{kind}.{}", task.attempts));
    let event = Event {
        specversion: "1.0".to_owned(),
        id: unique.clone(),
        source: "/".to_owned(),
        kind,
        subject: Some(id.to_string()),
        time: happened,
        data: EventData { queue: Some(queue.to_owned()), lane, task: Some(task), ..EventData::default() },
    };
    let wanting = app.notifications().wanting(namespace, queue, kind);
    wanting.iter().filter_map(|to| notification(to, &event, &unique, at)).collect()
}

/// An event for one who is notified. The same key again is the same notification.
pub fn notification(to: &Notification, event: &Event, unique: &str, at: Timestamp) -> Option<Letter> {
    let body = serde_json::to_vec(event).ok()?;
    let mut call = Call::post(to.url.as_str());
    call.headers.push(("content-type".to_owned(), "application/cloudevents+json".to_owned()));
    let queue = notifications::queue_of(&to.name);
    Some(letter((&to.namespace, &queue), call, unique, at, body))
}

fn letter(
    (namespace, queue): (&str, &str),
    call: Call,
    unique: &str,
    at: Timestamp,
    body: Vec<u8>,
) -> Letter {
    let target = Target::Destination(call.destination(namespace).into());
    let delivery = Delivery { call: Some(call), ..Delivery::default() };
    let task = NewTask::to(target).queue(queue).retry(RetryPolicy::WEBHOOKS).unique_key(unique);
    // The same is sent once, however often it is seen to happen.
    let task = task.at(at).on_conflict(OnConflict::Keep).delivery(delivery.encode()).payload_bytes(body);
    Letter { queue: queue.to_owned(), task }
}

/// What is owed may be old by the time it is found: it goes out all the same.
pub async fn let_late_ones_in(scheduler: &Scheduler, queue: &str) {
    let written = scheduler.write_queue(
        queue,
        |_| true,
        |settings, extras| Ok((QueueSettings { past: Past::RunNow, ..settings.clone() }, extras.clone())),
    );
    if let Err(error) = written.await {
        tracing::warn!(queue, %error, "the queue for results or notifications was not made");
    }
}
