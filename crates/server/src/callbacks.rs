//! Sends results to those who asked for it: each is a task of its own, so that it is retried and survives a restart.

use std::time::Duration;

use punctual::{EndedTask, Error, NewTask, OnConflict, RetryPolicy, Target};
use punctual_client::wire;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::api::{moment_of, result_of, state_of};
use crate::app::App;
use crate::call::Call;
use crate::delivery::Delivery;

/// The queue of these tasks.
const QUEUE: &str = "callbacks";
/// How long to wait before a result is tried to be scheduled again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What is sent.
#[derive(Serialize)]
struct Sent {
    id: String,
    queue: String,
    state: wire::State,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    ended_at: wire::Moment,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<wire::Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Schedules a call for each task that ended and has a callback, until there are no more.
pub async fn send_results(app: App, mut ended: mpsc::Receiver<EndedTask>) {
    while let Some(ended) = ended.recv().await {
        let Some(task) = callback_of(&app, &ended) else { continue };
        // What a result says is for its own namespace.
        let Some(scheduler) = app.scheduler().in_namespace_of(ended.task.id.queue) else { continue };
        loop {
            match scheduler.schedule(task.clone()).await {
                Ok(_) | Err(Error::Refused(_) | Error::Stopped) => break,
                // It is tried until there is room: whoever waits for a result does not ask again.
                Err(_) => wait().await,
            }
        }
    }
}

fn callback_of(app: &App, ended: &EndedTask) -> Option<NewTask> {
    let EndedTask { task, end } = ended;
    let url = Delivery::decode(&task.spec.delivery)?.callback?;
    let (queue, _) = app.scheduler().delivery_of(task.id.queue)?;
    let sent = Sent {
        id: task.id.to_string(),
        queue: queue.to_string(),
        state: state_of(end.state.into()),
        name: task.spec.name.as_deref().map(str::to_owned),
        ended_at: moment_of(end.at),
        result: result_of(&end.result),
        error: end.error.as_deref().map(str::to_owned),
    };
    let call = Call::post(url);
    let target = Target::Destination(call.destination().into());
    let delivery = Delivery { call: Some(call), callback: None };
    let task = NewTask::to(target).queue(QUEUE).retry(RetryPolicy::WEBHOOKS).unique_key(&sent.id);
    // The same result is sent once, however often it is seen to end.
    let task = task.at(end.at).on_conflict(OnConflict::Keep).delivery(delivery.encode());
    task.payload(&sent).ok()
}

#[expect(clippy::disallowed_methods, reason = "nothing tells when the scheduler has room again")]
async fn wait() {
    tokio::time::sleep(AGAIN_AFTER).await;
}
