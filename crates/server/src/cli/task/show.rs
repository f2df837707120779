//! How tasks look to people.

use punctual_client::wire::Task;

use crate::cli::layout;
use crate::cli::table::{Rows, maybe, state};
use crate::cli::words::{self, Here, shortened};

/// What an error may take of a line.
const ERROR_CHARS: usize = 60;

/// One line for each task.
pub fn table_of(tasks: &[Task], here: &Here) -> String {
    let mut rows =
        Rows::new(["ID", "QUEUE", "STATE", "DUE", "", "ATTEMPTS", "LANE", "NAME", "KEY", "LAST ERROR"]);
    for task in tasks {
        // When it is next tried says more than when it was first due.
        let due = task.next_at.filter(|_| !task.state.has_ended()).unwrap_or(task.at);
        rows.push([
            task.id.as_str().into(),
            task.queue.as_str().into(),
            state(task.state),
            words::local(due, &here.zone).into(),
            words::distance(here.now, due).into(),
            maybe((task.attempts > 0).then_some(task.attempts)),
            maybe(task.lane.as_ref()),
            maybe(task.name.as_ref()),
            maybe(task.unique_key.as_ref()),
            maybe(task.last_error.as_ref().map(|error| shortened(error, ERROR_CHARS))),
        ]);
    }
    rows.shown("No tasks.")
}

/// All that is known of a task.
pub fn details_of(task: &Task, here: &Here) -> String {
    let mut rows = Rows::new(["", ""]);
    let mut say = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            rows.push([name.into(), value.into()]);
        }
    };
    say("id", Some(task.id.clone()));
    say("queue", Some(task.queue.clone()));
    say("state", Some(task.state.to_string()));
    say("due", Some(here.shown(task.at)));
    say(
        "next attempt",
        task.next_at.filter(|at| *at != task.at && !task.state.has_ended()).map(|at| here.shown(at)),
    );
    say("ended", task.ended_at.map(|at| here.shown(at)));
    say("attempts", Some(task.attempts.to_string()));
    say("last error", task.last_error.clone());
    say("lane", task.lane.clone());
    say("name", task.name.clone());
    say("unique key", task.unique_key.clone());
    say("priority", (task.lane.is_none()).then(|| task.priority.to_string()));
    say("start by", task.start_by.map(|at| here.shown(at)));
    say("expires", task.expires_at.map(|at| here.shown(at)));
    say("timeout", task.timeout.map(|timeout| words::length(timeout.into())));
    say("retry", task.retry.as_ref().map(words::json));
    say("target", Some(target_of(task)));
    if let Some(http) = &task.http {
        let headers = http.headers.iter().map(|(name, value)| format!("{name}: {value}"));
        say("headers", (!http.headers.is_empty()).then(|| headers.collect::<Vec<_>>().join("\n")));
        say("body", http.body.as_ref().map(layout::indented));
        say("body", http.body_base64.as_ref().map(|bytes| words::bytes(bytes.0.len() as u64)));
    }
    say("callback", task.callback.clone());
    say("payload", task.payload.as_ref().map(layout::indented));
    say("payload", task.payload_base64.as_ref().map(|bytes| words::bytes(bytes.0.len() as u64)));
    say("result", task.result.as_ref().map(layout::indented));
    say("revision", Some(task.revision.to_string()));
    rows.pairs()
}

fn target_of(task: &Task) -> String {
    match (&task.http, &task.handler) {
        (Some(http), _) => format!("{} {}", http.method.as_deref().unwrap_or("POST"), http.url),
        (None, Some(handler)) => format!("handler {handler}"),
        (None, None) => words::json(&task.target),
    }
}
