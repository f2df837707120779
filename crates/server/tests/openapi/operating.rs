//! What those who run a server can ask of it: who is told of trouble, what is on hold, a backup, and its clock.

use punctual_client::wire;
use serde_json::{Value, json};

use super::operation::Operation;

pub fn all() -> Vec<Operation> {
    let notifications = [list(), put(), get(), delete()].map(|operation| operation.tag("notifications"));
    let server = [backup(), hold(), release(), clock(), advance()].map(|operation| operation.tag("server"));
    notifications.into_iter().chain(server).collect()
}

fn list() -> Operation {
    Operation::new("get", "/v1/notifications", "listNotifications", "List notifications", "")
        .query::<wire::PageQuery>()
        .answers::<wire::NotificationPage>(200, "A page of notifications.")
}

fn put() -> Operation {
    let about = "A webhook that is told when a task is dead, a lane is blocked, or tasks are late. It takes the place of \
                 one of the same name.";
    Operation::new("put", "/v1/notifications/{name}", "putNotification", "Be told of trouble", about)
        .body::<wire::NewNotification>(true)
        .answers::<wire::Notification>(200, "The notification.")
        .refuses(&["call_invalid", "queue_changed", "store_full"])
}

fn get() -> Operation {
    Operation::new("get", "/v1/notifications/{name}", "getNotification", "Look at a notification", "")
        .answers::<wire::Notification>(200, "The notification.")
        .refuses(&["notification_not_found"])
}

fn delete() -> Operation {
    let about = "What was to be sent is not sent any more.";
    Operation::new("delete", "/v1/notifications/{name}", "deleteNotification", "Be told no more", about)
        .answers_as(204, "It is gone.", Value::Null)
        .refuses(&["notification_not_found", "store_full"])
}

fn backup() -> Operation {
    let about = "Everything as it is at one moment, while the server goes on. `punctual backup` unpacks it.";
    Operation::new("post", "/v1/backup", "backup", "Back up", about).answers_as(
        200,
        "A tar file with a data folder.",
        json!({"application/x-tar": {"schema": {"type": "string", "format": "binary"}}}),
    )
}

fn hold() -> Operation {
    let about = "A restored data folder starts on hold.";
    Operation::new("get", "/v1/hold", "getHold", "What is on hold", about)
        .answers::<wire::Hold>(200, "The queues that the restore has paused.")
}

fn release() -> Operation {
    let about = "Resumes what the restore has paused.";
    Operation::new("post", "/v1/hold:release", "releaseHold", "Let go what is on hold", about)
        .answers::<wire::Hold>(200, "The queues that go on.")
        .refuses(&["queue_changed", "store_full"])
}

fn clock() -> Operation {
    Operation::new("get", "/v1/clock", "getClock", "What time it is for the server", "")
        .answers::<wire::Clock>(200, "The clock.")
}

fn advance() -> Operation {
    let about =
        "For tests, with `serve --clock virtual`. Answers when all that was due until then has had its turn.";
    Operation::new("post", "/v1/clock:advance", "advanceClock", "Set a virtual clock forward", about)
        .body::<wire::AdvanceClock>(true)
        .answers::<wire::Advanced>(200, "What it shows, and how much began.")
        .refuses(&["clock_not_virtual", "time_out_of_range", "timezone_missing", "timezone_unknown"])
}
