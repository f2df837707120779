//! What workers can ask.

use punctual_client::wire;
use serde_json::json;
use utoipa::ToSchema;

use super::operation::Operation;

pub fn all() -> Vec<Operation> {
    let operations = [
        reserve(),
        peek(),
        report::<wire::Ack>("/v1/tasks/{id}/ack", "ackTask", "It is done", "Ends the task, with a result."),
        report::<wire::Nack>(
            "/v1/tasks/{id}/nack",
            "nackTask",
            "It failed",
            "Again as the retry policy says, but not before `delay`.",
        ),
        report::<wire::Release>(
            "/v1/tasks/{id}/release",
            "releaseTask",
            "Give it back",
            "Back to where it was: it was not an attempt.",
        ),
        report::<wire::Bury>("/v1/tasks/{id}/bury", "buryTask", "Give it up", "Without further attempts."),
        touch(),
        kick(),
        reports::<wire::AckItem>("/v1/queues/{queue}/ack", "ackTasks", "Many are done"),
        reports::<wire::NackItem>("/v1/queues/{queue}/nack", "nackTasks", "Many failed"),
        reports::<wire::ReleaseItem>("/v1/queues/{queue}/release", "releaseTasks", "Give many back"),
        reports::<wire::BuryItem>("/v1/queues/{queue}/bury", "buryTasks", "Give many up"),
        reports::<wire::TouchItem>("/v1/queues/{queue}/touch", "touchTasks", "More time for many"),
        reports::<wire::KickItem>("/v1/queues/{queue}/kick", "kickTasks", "Try many again"),
    ];
    operations.into_iter().map(|operation| operation.tag("workers")).collect()
}

fn reserve() -> Operation {
    let about = "Up to 1,000 tasks, one if nothing is said. Waits up to 30 s for the first, if `wait` says so, and answers without tasks if none came. \
        The time to run of each begins now.";
    let with_token = |operation: &str| {
        json!({
            "operationId": operation,
            "parameters": {"id": "$response.body#/tasks/0/id"},
            "requestBody": {"token": "$response.body#/tasks/0/token"},
        })
    };
    Operation::new("post", "/v1/queues/{queue}/reserve", "reserveTasks", "Take tasks to work on", about)
        .body::<wire::Reserve>(false)
        .answers::<wire::Reserved>(200, "Tasks, perhaps none.")
        .leads_to(
            200,
            json!({
                "ack": with_token("ackTask"),
                "nack": with_token("nackTask"),
                "touch": with_token("touchTask"),
                "release": with_token("releaseTask"),
                "bury": with_token("buryTask"),
            }),
        )
        .refuses(&["setting_invalid", "queue_not_found", "store_full"])
}

fn peek() -> Operation {
    Operation::new(
        "get",
        "/v1/queues/{queue}/peek",
        "peekTasks",
        "What is next in a queue",
        "Nothing is reserved.",
    )
    .query::<wire::PeekQuery>()
    .answers::<wire::TaskPage>(200, "The first tasks that wait.")
}

/// A report on one task, by the token of its attempt.
fn report<T: ToSchema>(path: &'static str, id: &str, summary: &str, about: &str) -> Operation {
    Operation::new("post", path, id, summary, about)
        .body::<T>(true)
        .answers::<wire::Progress>(200, "How the task stands now.")
        .refuses(&[
            "payload_too_large",
            "setting_invalid",
            "store_full",
            "task_ended",
            "time_out_of_range",
            "token_late",
        ])
}

fn touch() -> Operation {
    let about = "More time, from now on: as much as `ttr` says.";
    Operation::new("post", "/v1/tasks/{id}/touch", "touchTask", "More time", about)
        .body::<wire::Touch>(true)
        .answers::<wire::Touched>(200, "Until when the token is good.")
        .refuses(&["setting_invalid", "store_full", "token_late"])
}

fn kick() -> Operation {
    Operation::new("post", "/v1/tasks/{id}/kick", "kickTask", "Try a dead or blocked task again", "")
        .body::<wire::Kick>(false)
        .if_match("task_changed")
        .answers::<wire::Progress>(200, "How the task stands now.")
        .refuses(&["store_full", "task_ended", "task_exists", "task_not_failed", "task_running"])
}

/// Reports on many tasks, each answered for itself.
fn reports<T: ToSchema>(path: &'static str, id: &str, summary: &str) -> Operation {
    let about = "Each is answered for itself, in order: a bad one spoils no other.";
    Operation::new("post", path, id, summary, about)
        .batch::<T>()
        .answers_each::<wire::ReportResult>("What became of each.")
}
