//! Paths that end with a verb: `POST /v1/tasks/{id}:run`.
//!
//! The router cannot match a part of a segment, so that such a path shares its route with the one without the verb. Here
//! the two are told apart again: a verb is POSTed, and nothing else is.

use http::Method;

use super::failure::Failure;

/// What can be done to one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskVerb {
    /// Make it due now.
    Run,
    /// Try it again from the beginning.
    Retry,
}

/// What can be done to one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueVerb {
    /// Nothing starts any more.
    Pause,
    /// It goes on.
    Resume,
    /// Cancel what waits.
    Purge,
}

/// What can be done to one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyVerb {
    /// Give it another secret.
    Rotate,
}

/// The verbs of a task.
pub const TASK_VERBS: &[(&str, TaskVerb)] = &[("run", TaskVerb::Run), ("retry", TaskVerb::Retry)];

/// The verbs of a queue.
pub const QUEUE_VERBS: &[(&str, QueueVerb)] =
    &[("pause", QueueVerb::Pause), ("resume", QueueVerb::Resume), ("purge", QueueVerb::Purge)];

/// The verbs of a key.
pub const KEY_VERBS: &[(&str, KeyVerb)] = &[("rotate", KeyVerb::Rotate)];

/// The name and the verb of a path's last segment.
pub fn name_and_verb<'a, V: Copy>(segment: &'a str, verbs: &[(&str, V)]) -> Result<(&'a str, V), Failure> {
    let (name, word) = segment.rsplit_once(':').unwrap_or((segment, ""));
    let verb = verbs.iter().find(|(known, _)| *known == word);
    let Some((_, verb)) = verb else {
        let known: Vec<String> = verbs.iter().map(|(known, _)| format!(":{known}")).collect();
        return Err(Failure::new("not_found", format!("there are the verbs {}", known.join(", "))));
    };
    Ok((name, *verb))
}

/// Whether a method is for this path: a verb is POSTed, and nothing but a verb is where there could be one.
pub fn goes_with(method: &Method, path: &str) -> bool {
    shared(path).is_none_or(|(segment, _)| segment.contains(':') == (method == Method::POST))
}

/// The methods that a path allows, if it may end with a verb: its route has those of the path without the verb too.
pub fn allowed(path: &str) -> Option<&'static str> {
    shared(path).map(|(segment, besides)| if segment.contains(':') { "POST" } else { besides })
}

/// The last segment of a path that may or may not end with a verb, and what is allowed when it does not.
fn shared(path: &str) -> Option<(&str, &'static str)> {
    let of = |prefix, allowed| Some((path.strip_prefix(prefix)?, allowed));
    let shared = of("/v1/tasks/", "GET,HEAD,PATCH,DELETE");
    let shared = shared.or_else(|| of("/v1/queues/", "GET,HEAD,PUT,PATCH,DELETE"));
    let shared = shared.or_else(|| of("/v1/keys/", "DELETE"));
    shared.filter(|(segment, _)| !segment.contains('/'))
}
