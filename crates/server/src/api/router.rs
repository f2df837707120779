//! Which path leads where.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use http::{HeaderName, HeaderValue, Method};
use punctual_client::wire;

use super::failure::{Failure, name_instance};
use super::list::Verb;
use super::{
    backup, call_at, clock, create, events, hold, keys, lanes, list, notifications, pages, queues, tasks,
    verbs, work,
};
use crate::access::door;
use crate::app::App;
use crate::units::KIB;

/// The whole of the API. What it takes to be answered at each path is in `access/table.rs`.
pub fn router(app: App) -> Router {
    routes()
        .router
        .fallback(async || Failure::no_such_path())
        .method_not_allowed_fallback(async |method: Method| Failure::no_such_method(&method))
        .layer(from_fn_with_state(app.clone(), surround))
        .with_state(app)
}

/// The paths that the router knows. A test compares them with the document for programs.
pub fn paths() -> Vec<&'static str> {
    routes().paths
}

/// A router that remembers its paths.
#[derive(Default)]
struct Routes {
    router: Router<App>,
    paths: Vec<&'static str>,
}

impl Routes {
    fn route(mut self, path: &'static str, to: MethodRouter<App>) -> Routes {
        self.router = self.router.route(path, to);
        self.paths.push(path);
        self
    }

    fn merge(mut self, other: Routes) -> Routes {
        self.router = self.router.merge(other.router);
        self.paths.extend(other.paths);
        self
    }
}

fn routes() -> Routes {
    let notification = get(notifications::get).put(notifications::put).delete(notifications::delete);
    Routes::default()
        .merge(of_tasks())
        .merge(of_queues())
        .route("/schedule", post(call_at::schedule))
        .route("/schedule/{id}", get(call_at::get))
        .route("/v1/lanes", get(lanes::list))
        .route("/v1/lanes:release", post(lanes::release))
        .route("/v1/lanes:skip", post(lanes::skip))
        .route("/v1/keys", get(keys::list).post(keys::add))
        .route("/v1/keys/{id}", post(keys::act).delete(keys::revoke))
        .route("/v1/events", get(events::events))
        .route("/v1/notifications", get(notifications::list))
        .route("/v1/notifications/{name}", notification)
        .route("/v1/backup", post(backup::backup))
        .route("/v1/hold", get(hold::get))
        .route("/v1/hold:release", post(hold::release))
        .route("/v1/clock", get(clock::get))
        .route("/v1/clock:advance", post(clock::advance))
        .route("/metrics", get(pages::metrics))
        .route("/healthz", get(pages::healthz))
        .route("/readyz", get(pages::readyz))
        .route("/errors/{code}", get(pages::error))
        .route("/openapi.json", get(pages::openapi))
}

/// A head has more bytes than it may.
pub fn head_too_large(head_max: usize) -> Failure {
    Failure::new("head_too_large", format!("{} KiB is the most that a head may have", head_max / KIB))
}

/// What happens around every request, in one layer: each would cost a few allocations of its own.
async fn surround(State(app): State<App>, request: Request, next: Next) -> Response {
    // Copied, not shared: whoever holds part of the head keeps its connection from using that memory again.
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let head_max = app.access().limits.head_max;
    let mut response = match verbs::refuse(&request) {
        _ if head_size(&request) > head_max => head_too_large(head_max).into_response(),
        _ if path.contains('%') && !is_text(&path) => Failure::no_such_path().into_response(),
        Some(refused) => refused,
        None => door(&app, request, next).await,
    };
    verbs::allow_only_what_is_there(&path, &mut response);
    name_instance(&path, &mut response);
    // Queries may hold what is nobody's concern.
    tracing::debug!(%method, path, status = response.status().as_u16(), "answered");
    response
}

/// How many bytes the head of a request has. Whoever reads it lets some pass that are a little larger than they may be.
fn head_size(request: &Request) -> usize {
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let line = request.method().as_str().len() + path + "  HTTP/1.1\r\n".len();
    let header =
        |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + ": \r\n".len();
    line + request.headers().iter().map(header).sum::<usize>() + "\r\n".len()
}

/// Whether a path, decoded, is UTF-8: every name of ours is.
fn is_text(path: &str) -> bool {
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[2..]);
            }
            None => bytes.extend(part.as_bytes()),
        }
    }
    std::str::from_utf8(&bytes).is_ok()
}

fn of_tasks() -> Routes {
    Routes::default()
        .route("/v1/tasks", get(list::list))
        .route("/v1/tasks:cancel", post(async |asker, body| list::by_filter(asker, Verb::Cancel, body).await))
        .route("/v1/tasks:retry", post(async |asker, body| list::by_filter(asker, Verb::Retry, body).await))
        .route("/v1/tasks:run", post(async |asker, body| list::by_filter(asker, Verb::Run, body).await))
        .route("/v1/tasks:move", post(list::move_by_filter))
        // What follows a colon is a verb, and part of this path.
        .route("/v1/tasks/{id}", get(tasks::get).patch(tasks::patch).delete(tasks::cancel).post(tasks::act))
        .route("/v1/tasks/{id}/result", get(tasks::result))
        .route("/v1/tasks/{id}/ack", post(work::report::<wire::Ack>))
        .route("/v1/tasks/{id}/nack", post(work::report::<wire::Nack>))
        .route("/v1/tasks/{id}/release", post(work::report::<wire::Release>))
        .route("/v1/tasks/{id}/bury", post(work::report::<wire::Bury>))
        .route("/v1/tasks/{id}/touch", post(work::touch))
        .route("/v1/tasks/{id}/kick", post(work::kick))
}

fn of_queues() -> Routes {
    let queue = get(queues::get).put(queues::put).patch(queues::patch).delete(queues::delete);
    Routes::default()
        .route("/v1/queues", get(queues::list))
        .route("/v1/queues/{queue}", queue.post(queues::act))
        .route("/v1/queues/{queue}/stats", get(queues::stats))
        .route("/v1/queues/{queue}/tasks", post(create::create))
        .route("/v1/queues/{queue}/reserve", post(work::reserve))
        .route("/v1/queues/{queue}/peek", get(work::peek))
        .route("/v1/queues/{queue}/ack", post(work::reports::<wire::AckItem>))
        .route("/v1/queues/{queue}/nack", post(work::reports::<wire::NackItem>))
        .route("/v1/queues/{queue}/release", post(work::reports::<wire::ReleaseItem>))
        .route("/v1/queues/{queue}/bury", post(work::reports::<wire::BuryItem>))
        .route("/v1/queues/{queue}/touch", post(work::touches))
        .route("/v1/queues/{queue}/kick", post(work::kicks))
}
