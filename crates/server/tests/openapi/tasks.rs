//! What can be asked about tasks.

use punctual_client::wire;
use serde_json::{Value, json};

use super::operation::Operation;

const TAG: &str = "tasks";
/// Why a new task can be refused.
const NOT_MADE: &[&str] = &[
    "call_invalid",
    "expires_before_due",
    "idempotency_key_in_use",
    "idempotency_key_invalid",
    "idempotency_key_reused",
    "media_type_unknown",
    "name_empty",
    "name_too_long",
    "payload_invalid",
    "payload_too_large",
    "priority_with_lane",
    "queue_name_invalid",
    "setting_invalid",
    "store_full",
    "task_due_in_past",
    "task_exists",
    "time_out_of_range",
];
/// Why a task can stay as it is.
const NOT_CHANGED: &[&str] = &["store_full", "task_ended", "task_running"];

pub fn all() -> Vec<Operation> {
    let operations =
        [create(), call_at(), get_call(), list(), get(), patch(), cancel(), run(), retry(), result()];
    operations.into_iter().chain(by_filter()).map(|operation| operation.tag(TAG)).collect()
}

fn once(operation: Operation) -> Operation {
    let schema = json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[\\x21-\\x7e]+$"});
    let about = "The same request with the same key within 24 hours gets the first answer again.";
    operation.header("Idempotency-Key", &schema, about)
}

fn create() -> Operation {
    let about = "One task, `{\"tasks\": […]}` with up to 10,000, or one from each line of `application/x-ndjson`. \
        A queue that does not exist is made. In a batch each task is answered for itself, in order: a bad one spoils no other.";
    let mut operation =
        Operation::new("post", "/v1/queues/{queue}/tasks", "createTasks", "Make tasks", about);
    let (one, many) = (operation.refer::<wire::NewTask>(), operation.refer::<wire::NewTasks>());
    let (task, id) = (operation.refer::<wire::Task>(), operation.refer::<wire::TaskId>());
    let each = operation.refer::<wire::CreateResult>();
    let body = json!({"required": true, "content": {
        "application/json": {"schema": {"oneOf": [one, many]}, "examples": {
            "call": {"value": {"delay": "2s", "http": {"url": "http://127.0.0.1:8000/", "method": "GET"}}},
            "work": {"value": {"payload": {"to": "ana"}, "lane": "ana"}},
            "batch": {"value": {"tasks": [{"payload": 1}, {"payload": 2, "at": "2099-01-01T09:00:00+01:00"}]}},
        }},
        "application/x-ndjson": {"schema": {"type": "array", "description": "One in each line, as many as you like.", "items": one}},
    }});
    let task = json!({"application/json": {"schema": {"anyOf": [task, id]}}});
    let there = json!({
        "application/json": {"schema": {"anyOf": [
            task["application/json"]["schema"]["anyOf"][0],
            id,
            {"type": "object", "required": ["results"], "properties": {"results": {"type": "array", "items": each}}},
        ]}},
        "application/x-ndjson": {"schema": {"type": "array", "description": "One in each line, in the order of the tasks.", "items": each}},
    });
    let prefer = json!({"type": "string", "enum": ["return=minimal"]});
    once(operation)
        .query::<wire::ViewQuery>()
        .header("Prefer", &prefer, "Answers have only ids.")
        .body_as(body)
        .answers_as(201, "The task is made.", task)
        .says(&[201], "Location", "The path of the task.")
        .tagged(&[201])
        .leads_to(201, of_a_task())
        .answers_as(
            200,
            "A task of the same unique key, lane and time is there already; or the results of a batch.",
            there,
        )
        .refuses(NOT_MADE)
}

/// What can be done with a task that is there.
fn of_a_task() -> Value {
    let with_id =
        |operation: &str| json!({"operationId": operation, "parameters": {"id": "$response.body#/id"}});
    json!({
        "look": with_id("getTask"),
        "change": with_id("patchTask"),
        "cancel": with_id("cancelTask"),
        "run": with_id("runTask"),
        "retry": with_id("retryTask"),
        "result": with_id("getResult"),
    })
}

fn call_at() -> Operation {
    let about = "A call at a given time, in four fields. It becomes a task of the queue `default`, or of another one.";
    let operation = Operation::new("post", "/schedule", "scheduleCall", "Call a URL at a given time", about);
    once(operation)
        .body::<wire::CallAt>(true)
        .answers::<wire::ScheduledCall>(201, "The call is scheduled.")
        .says(&[201], "Location", "The path of the call.")
        .leads_to(
            201,
            json!({"look": {"operationId": "getCall", "parameters": {"id": "$response.body#/id"}}}),
        )
        .answers::<wire::ScheduledCall>(200, "A call of the same unique key, lane and time is there already.")
        .refuses(NOT_MADE)
}

fn get_call() -> Operation {
    Operation::new("get", "/schedule/{id}", "getCall", "Look at a call", "")
        .answers::<wire::ScheduledCall>(200, "The call.")
}

fn list() -> Operation {
    let about = "In order of their time, first those that have not ended, then those that have. A page looks at 10,000 tasks at most, \
        so it can be short and still have a `next`.";
    Operation::new("get", "/v1/tasks", "listTasks", "List tasks", about)
        .query::<wire::TaskQuery>()
        .answers::<wire::TaskPage>(200, "A page of tasks.")
        .refuses(&[
            "cursor_invalid",
            "field_invalid",
            "queue_name_invalid",
            "name_empty",
            "name_too_long",
            "time_out_of_range",
        ])
}

fn get() -> Operation {
    let about = "What it carries is shown only with `view=full`.";
    Operation::new("get", "/v1/tasks/{id}", "getTask", "Look at a task", about)
        .query::<wire::ViewQuery>()
        .answers::<wire::Task>(200, "The task.")
        .unless_unchanged()
}

fn patch() -> Operation {
    let about = "Moves a task or changes it, while no attempt is live. What is left out stays; `null` takes away what is optional.";
    Operation::new("patch", "/v1/tasks/{id}", "patchTask", "Change a task", about)
        .query::<wire::ViewQuery>()
        .if_match("task_changed")
        .body::<wire::Patch>(false)
        .answers::<wire::Task>(200, "The task, changed.")
        .tagged(&[200])
        .refuses(NOT_CHANGED)
        .refuses(&[
            "call_invalid",
            "expires_before_due",
            "name_empty",
            "name_too_long",
            "payload_too_large",
            "setting_invalid",
            "task_changed",
            "task_due_in_past",
            "time_out_of_range",
        ])
}

fn cancel() -> Operation {
    Operation::new(
        "delete",
        "/v1/tasks/{id}",
        "cancelTask",
        "Cancel a task",
        "It is definite: a task that is cancelled never starts.",
    )
    .if_match("task_changed")
    .answers::<wire::Cancelled>(200, "It will not run.")
    .refuses(NOT_CHANGED)
}

fn run() -> Operation {
    Operation::new("post", "/v1/tasks/{id}:run", "runTask", "Make a task due now", "")
        .query::<wire::ViewQuery>()
        .body::<wire::Nothing>(false)
        .if_match("task_changed")
        .answers::<wire::Task>(200, "The task, due now.")
        .tagged(&[200])
        .refuses(NOT_CHANGED)
}

fn retry() -> Operation {
    let about = "Tries a dead or blocked task again, with a fresh count of attempts; one that waits for its next attempt has it now.";
    Operation::new("post", "/v1/tasks/{id}:retry", "retryTask", "Try a task again", about)
        .query::<wire::ViewQuery>()
        .body::<wire::Nothing>(false)
        .if_match("task_changed")
        .answers::<wire::Task>(200, "The task, due now.")
        .tagged(&[200])
        .refuses(NOT_CHANGED)
        .refuses(&["task_exists", "task_not_failed"])
}

fn result() -> Operation {
    let about = "Waits up to 30 s for the end, if `wait` says so.";
    Operation::new("get", "/v1/tasks/{id}/result", "getResult", "What came out of a task", about)
        .query::<wire::ResultQuery>()
        .answers::<wire::TaskResult>(200, "It has ended.")
        .answers::<wire::TaskResult>(202, "It has not ended yet.")
}

fn by_filter() -> Vec<Operation> {
    let about = "In steps of up to 1,000 tasks: ask again with `cursor` while there is a `next`. With `dry_run` it only counts.";
    let named = [
        ("/v1/tasks:cancel", "cancelTasks", "Cancel all tasks that a filter finds"),
        ("/v1/tasks:retry", "retryTasks", "Try all tasks again that a filter finds"),
        ("/v1/tasks:run", "runTasks", "Make all tasks due now that a filter finds"),
    ];
    let same = named.map(|(path, id, summary)| {
        Operation::new("post", path, id, summary, about).body::<wire::ByFilter>(true)
    });
    let moved =
        Operation::new("post", "/v1/tasks:move", "moveTasks", "Move all tasks that a filter finds", about)
            .body::<wire::MoveByFilter>(true)
            .refuses(&["time_out_of_range"]);
    let answered = |operation: Operation| {
        operation.answers::<wire::Changed>(200, "How many were changed, and why others were not.").refuses(&[
            "cursor_invalid",
            "query_invalid",
            "queue_name_invalid",
            "name_empty",
            "name_too_long",
        ])
    };
    same.into_iter().chain([moved]).map(answered).collect()
}
