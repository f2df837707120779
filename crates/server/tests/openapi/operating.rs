//! What those ask who run a server: who is notified, its clock, a backup, and what is on hold.

use punctual_client::wire;
use serde_json::json;

use super::operation::Operation;

pub fn all() -> Vec<Operation> {
    let notifications = [put(), get(), list(), delete()].map(|operation| operation.tag("notifications"));
    let server = [clock(), advance(), backup(), hold(), release()].map(|operation| operation.tag("server"));
    notifications.into_iter().chain(server).collect()
}

const ONE: &str = "/v1/notifications/{name}";

fn put() -> Operation {
    let about = "Has a URL told of dead tasks, blocked lanes or lateness. Without `secret` it is not signed.";
    Operation::new("put", ONE, "putNotification", "Make or replace a notification", about)
        .body::<wire::NewNotification>(true)
        .answers::<wire::Notification>(200, "The notification.")
        .refuses(&["call_invalid", "queue_changed", "setting_invalid", "store_full"])
}

fn get() -> Operation {
    Operation::new("get", ONE, "getNotification", "Look at a notification", "")
        .answers::<wire::Notification>(200, "The notification.")
        .refuses(&["notification_not_found"])
}

fn list() -> Operation {
    let about = "In order of their names.";
    Operation::new("get", "/v1/notifications", "listNotifications", "List notifications", about)
        .query::<wire::PageQuery>()
        .refuses(&["cursor_invalid"])
        .answers::<wire::NotificationPage>(200, "A page of notifications.")
}

fn delete() -> Operation {
    let about = "What was to be sent is not sent any more.";
    Operation::new("delete", ONE, "deleteNotification", "Delete a notification", about)
        .answers_as(204, "It is gone.", json!(null))
        .refuses(&["notification_not_found", "store_full"])
}

fn clock() -> Operation {
    Operation::new("get", "/v1/clock", "getClock", "What time it is", "")
        .answers::<wire::Clock>(200, "What the server's clock shows.")
}

fn advance() -> Operation {
    let about =
        "For a server with a virtual clock. Answers when all that was due until then has had its turn.";
    Operation::new("post", "/v1/clock:advance", "advanceClock", "Set a virtual clock forward", about)
        .body::<wire::AdvanceClock>(true)
        .answers::<wire::Advanced>(200, "What the clock shows, and how many attempts began.")
        .refuses(&["clock_not_virtual", "time_out_of_range"])
}

fn backup() -> Operation {
    let about = "Everything as it is at one moment, while the server goes on.";
    Operation::new("post", "/v1/backup", "backup", "Make a backup", about)
        .body::<wire::Nothing>(false)
        .answers_as(200, "A tar file of a data folder.", json!({"application/x-tar": {}}))
        .refuses(&["backup_failed"])
}

fn hold() -> Operation {
    let about = "Queues that are paused since the data folder was restored.";
    Operation::new("get", "/v1/hold", "getHold", "What is on hold", about)
        .answers::<wire::Hold>(200, "The queues.")
}

fn release() -> Operation {
    Operation::new("post", "/v1/hold:release", "releaseHold", "Resume what is on hold", "")
        .body::<wire::Nothing>(false)
        .answers::<wire::Hold>(200, "The queues that were resumed.")
        .refuses(&["queue_changed", "store_full"])
}
