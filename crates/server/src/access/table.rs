//! Every path that the server answers at, and what it takes to be answered. What has no line here is not answered at
//! all, so that a route that is new cannot be left open by mistake.

use http::Method;
use punctual_client::wire::Scope;

/// What it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing: anyone may ask.
    Nothing,
    /// A key with this scope.
    Scope(Scope),
}

const OPEN: Need = Need::Nothing;
const READ: Need = Need::Scope(Scope::Read);
const PAYLOADS: Need = Need::Scope(Scope::Payloads);
const WRITE: Need = Need::Scope(Scope::Write);
const WORK: Need = Need::Scope(Scope::Work);
const METRICS: Need = Need::Scope(Scope::Metrics);
const ADMIN: Need = Need::Scope(Scope::Admin);

/// By path as the router has it: each method, and what it takes.
pub const PATHS: &[(&str, &[(&str, Need)])] = &[
    ("/errors/{code}", &[("GET", OPEN)]),
    ("/healthz", &[("GET", OPEN)]),
    ("/metrics", &[("GET", METRICS)]),
    ("/openapi.json", &[("GET", OPEN)]),
    ("/readyz", &[("GET", OPEN)]),
    ("/schedule", &[("POST", WRITE)]),
    ("/schedule/{id}", &[("GET", READ)]),
    // A copy of everything, whatever its namespace.
    ("/v1/backup", &[("POST", ADMIN)]),
    ("/v1/clock", &[("GET", READ)]),
    ("/v1/clock:advance", &[("POST", ADMIN)]),
    ("/v1/events", &[("GET", READ)]),
    ("/v1/hold", &[("GET", ADMIN)]),
    ("/v1/hold:release", &[("POST", ADMIN)]),
    ("/v1/keys", &[("GET", ADMIN), ("POST", ADMIN)]),
    // What follows a colon is a verb, and part of this path.
    ("/v1/keys/{id}", &[("DELETE", ADMIN), ("POST", ADMIN)]),
    ("/v1/lanes", &[("GET", READ)]),
    ("/v1/lanes:release", &[("POST", WRITE)]),
    ("/v1/lanes:skip", &[("POST", WRITE)]),
    ("/v1/notifications", &[("GET", READ)]),
    ("/v1/notifications/{name}", &[("GET", READ), ("PUT", WRITE), ("DELETE", WRITE)]),
    ("/v1/queues", &[("GET", READ)]),
    (
        "/v1/queues/{queue}",
        &[("GET", READ), ("PUT", WRITE), ("PATCH", WRITE), ("DELETE", WRITE), ("POST", WRITE)],
    ),
    ("/v1/queues/{queue}/ack", &[("POST", WORK)]),
    ("/v1/queues/{queue}/bury", &[("POST", WORK)]),
    ("/v1/queues/{queue}/kick", &[("POST", WORK)]),
    ("/v1/queues/{queue}/nack", &[("POST", WORK)]),
    ("/v1/queues/{queue}/peek", &[("GET", PAYLOADS)]),
    ("/v1/queues/{queue}/release", &[("POST", WORK)]),
    ("/v1/queues/{queue}/reserve", &[("POST", WORK)]),
    ("/v1/queues/{queue}/stats", &[("GET", READ)]),
    ("/v1/queues/{queue}/tasks", &[("POST", WRITE)]),
    ("/v1/queues/{queue}/touch", &[("POST", WORK)]),
    ("/v1/tasks", &[("GET", READ)]),
    ("/v1/tasks/{id}", &[("GET", READ), ("PATCH", WRITE), ("DELETE", WRITE), ("POST", WRITE)]),
    ("/v1/tasks/{id}/ack", &[("POST", WORK)]),
    ("/v1/tasks/{id}/bury", &[("POST", WORK)]),
    ("/v1/tasks/{id}/kick", &[("POST", WORK)]),
    ("/v1/tasks/{id}/nack", &[("POST", WORK)]),
    ("/v1/tasks/{id}/release", &[("POST", WORK)]),
    ("/v1/tasks/{id}/result", &[("GET", READ)]),
    ("/v1/tasks/{id}/touch", &[("POST", WORK)]),
    ("/v1/tasks:cancel", &[("POST", WRITE)]),
    ("/v1/tasks:move", &[("POST", WRITE)]),
    ("/v1/tasks:retry", &[("POST", WRITE)]),
    ("/v1/tasks:run", &[("POST", WRITE)]),
];

/// What is answered with tasks: as much of each is shown as `view` says.
const WITH_VIEW: &[(&str, &[&str])] = &[
    ("/v1/lanes", &["GET"]),
    ("/v1/queues/{queue}/tasks", &["POST"]),
    ("/v1/tasks", &["GET"]),
    ("/v1/tasks/{id}", &["GET", "PATCH", "POST"]),
];

/// Where GET asks for more than `view` in its query.
const WITH_QUERY: &[&str] = &[
    "/v1/events",
    "/v1/keys",
    "/v1/lanes",
    "/v1/notifications",
    "/v1/queues",
    "/v1/queues/{queue}/peek",
    "/v1/tasks",
    "/v1/tasks/{id}/result",
];

/// Tasks must not be handed to a worker that has hung up: this request ends with its connection.
const RESERVE: &str = "/v1/queues/{queue}/reserve";

/// What is to be known of a path and a method before they are answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// What it takes.
    pub need: Need,
    /// Whether `view` means something there.
    pub takes_view: bool,
    /// Whether a query is read there, or is nobody's concern: probes and scrapers may send what they like.
    pub takes_query: bool,
    /// Whether something may be changed there, and is then changed whether or not somebody waits for the answer.
    pub goes_to_its_end: bool,
    /// Whether what was done is written into the audit.
    pub is_deed: bool,
}

/// What the table says of a path of the router and a method.
pub fn line(path: &str, method: &Method) -> Option<Line> {
    let (_, methods) = PATHS.iter().find(|(known, _)| *known == path)?;
    let (_, need) = methods.iter().find(|(known, _)| *known == method.as_str())?;
    let with_view = |(known, methods): &(&str, &[&str])| *known == path && methods.contains(&method.as_str());
    let is_deed = method != Method::GET;
    let takes_view = WITH_VIEW.iter().any(with_view);
    let reads_query = takes_view || (!is_deed && WITH_QUERY.contains(&path));
    Some(Line {
        need: *need,
        takes_view,
        takes_query: reads_query || matches!(*need, OPEN | METRICS),
        goes_to_its_end: is_deed && path != RESERVE,
        is_deed,
    })
}
