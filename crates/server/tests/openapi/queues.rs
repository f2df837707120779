//! What can be asked about queues and lanes.

use punctual_client::wire;
use serde_json::Value;

use super::operation::Operation;

/// Why settings can be refused.
const NOT_SET: &[&str] = &["call_invalid", "setting_invalid", "store_full"];

pub fn all() -> Vec<Operation> {
    let queues = [put(), patch(), get(), delete(), list(), pause(), resume(), purge(), stats()];
    let lanes = [lanes(), release(), skip()];
    let queues = queues.into_iter().map(|operation| operation.tag("queues"));
    queues.chain(lanes.into_iter().map(|operation| operation.tag("lanes"))).collect()
}

fn put() -> Operation {
    let about = "Takes all settings: what is left out is the default. Makes the queue if it is not there.";
    Operation::new("put", "/v1/queues/{queue}", "putQueue", "Set a queue", about)
        .if_match("queue_changed")
        .if_none_match("Versions that it must not have; `*` if it must not be there.")
        .refuses(&["queue_exists"])
        .body::<wire::QueueSettings>(false)
        .answers::<wire::Queue>(200, "The queue.")
        .tagged(&[200])
        .refuses(NOT_SET)
}

fn patch() -> Operation {
    let about = "Takes some settings: what is left out stays, and what is `null` is the default again.";
    Operation::new("patch", "/v1/queues/{queue}", "patchQueue", "Change settings of a queue", about)
        .if_match("queue_changed")
        .if_none_match("Versions that it must not have; `*` if it must not be there.")
        .refuses(&["queue_exists"])
        .body::<wire::QueueSettings>(false)
        .answers::<wire::Queue>(200, "The queue.")
        .tagged(&[200])
        .refuses(NOT_SET)
}

fn get() -> Operation {
    Operation::new(
        "get",
        "/v1/queues/{queue}",
        "getQueue",
        "Look at a queue",
        "Its settings, and whether it is paused.",
    )
    .answers::<wire::Queue>(200, "The queue.")
    .unless_unchanged()
    .refuses(&["queue_not_found"])
}

fn delete() -> Operation {
    Operation::new(
        "delete",
        "/v1/queues/{queue}",
        "deleteQueue",
        "Remove a queue",
        "Only a queue without waiting tasks can be removed.",
    )
    .if_match("queue_changed")
    .answers_as(204, "It is gone.", Value::Null)
    .refuses(&["queue_in_use", "queue_not_empty", "queue_not_found"])
}

fn list() -> Operation {
    Operation::new("get", "/v1/queues", "listQueues", "List queues", "In order of their names.")
        .query::<wire::PageQuery>()
        .refuses(&["cursor_invalid"])
        .answers::<wire::QueuePage>(200, "A page of queues.")
}

fn pause() -> Operation {
    Operation::new(
        "post",
        "/v1/queues/{queue}:pause",
        "pauseQueue",
        "Pause a queue",
        "Nothing of it starts until it is resumed.",
    )
    .body::<wire::Nothing>(false)
    .if_match("queue_changed")
    .answers::<wire::Queue>(200, "The queue.")
    .tagged(&[200])
    .refuses(&["queue_not_found", "store_full"])
}

fn resume() -> Operation {
    Operation::new("post", "/v1/queues/{queue}:resume", "resumeQueue", "Resume a queue", "")
        .body::<wire::Nothing>(false)
        .if_match("queue_changed")
        .answers::<wire::Queue>(200, "The queue.")
        .tagged(&[200])
        .refuses(&["queue_not_found", "store_full"])
}

fn purge() -> Operation {
    let about = "Cancels what waits, and answers when all of it is done. There is never a `next`.";
    Operation::new("post", "/v1/queues/{queue}:purge", "purgeQueue", "Cancel all tasks of a queue", about)
        .body::<wire::Nothing>(false)
        .if_match("queue_changed")
        .answers::<wire::Changed>(200, "How many were cancelled, and why others were not.")
        .refuses(&["queue_not_found"])
}

fn stats() -> Operation {
    let about = "How a queue stands. Counts are maintained, never scanned for: a state that is not counted is left out.";
    Operation::new("get", "/v1/queues/{queue}/stats", "getQueueStats", "How a queue stands", about)
        .answers::<wire::QueueStats>(200, "Counts, and how late the queue is.")
        .refuses(&["queue_not_found"])
}

fn lanes() -> Operation {
    let about = "Lanes whose head waits for a person, and that task.";
    Operation::new("get", "/v1/lanes", "listLanes", "List blocked lanes", about)
        .query::<wire::LaneQuery>()
        .answers::<wire::LanePage>(200, "A page of lanes.")
        .refuses(&["cursor_invalid", "queue_name_invalid", "name_empty", "name_too_long"])
}

fn of_a_head(operation: Operation) -> Operation {
    operation
        .body::<wire::LaneName>(true)
        .answers::<wire::Progress>(200, "The head.")
        .refuses(&["lane_not_blocked", "name_empty", "name_too_long", "queue_name_invalid", "store_full"])
        .refuses(&["task_ended", "task_exists", "task_not_found", "task_running"])
}

fn release() -> Operation {
    of_a_head(Operation::new("post", "/v1/lanes:release", "releaseLane", "Try a lane's head again", ""))
}

fn skip() -> Operation {
    let about = "The lane goes on with the next task.";
    of_a_head(Operation::new("post", "/v1/lanes:skip", "skipLane", "Cancel a lane's head", about))
}
