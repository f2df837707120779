//! Which path leads where.
//!
//! axum reads what handlers take and writes what they give. The handler is found here, in one look-up that also says what
//! it takes to be let in: a router with a layer around it would find it, box it and carry the request three times.
//! Decision record: `docs/decisions/0021-our-own-router.md`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, Method, header};
use punctual_client::wire;

use super::failure::{Failure, name_instance};
use super::list::Verb;
use super::{
    backup, call_at, clock, create, events, hold, keys, lanes, list, notifications, pages, queues, tasks,
    verbs, work,
};
use crate::access::{Answering, Asked, Endpoint, Line, door, line};
use crate::app::App;
use crate::units::KIB;

/// The whole of the API. What it takes to be answered at each path is in `access/table.rs`. Clones are the same.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    app: App,
    routes: matchit::Router<Route>,
}

/// What is at a path.
struct Route {
    /// By method. HEAD is answered as GET.
    lines: Vec<(Method, Line, Endpoint)>,
}

impl Route {
    fn at(&self, method: &Method) -> Option<(Line, &Endpoint)> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let (_, line, endpoint) = self.lines.iter().find(|(known, ..)| known == method)?;
        Some((*line, endpoint))
    }

    /// The methods that are allowed, as a header names them.
    fn allowed(&self) -> String {
        let names = self.lines.iter().map(|(method, ..)| match method.as_str() {
            "GET" => "GET,HEAD",
            other => other,
        });
        names.collect::<Vec<_>>().join(",")
    }
}

impl Api {
    /// All of it, on what requests share.
    pub fn new(app: App) -> Api {
        let mut known = matchit::Router::new();
        for (path, endpoints) in routes() {
            // What has no line in the table is not answered at all.
            let lines = endpoints
                .into_iter()
                .filter_map(|(method, to)| Some((method.clone(), line(path, &method)?, to)));
            known.insert(path, Route { lines: lines.collect() }).expect("every path is there once");
        }
        Api(Arc::new(Inner { app, routes: known }))
    }

    /// Has a request answered.
    pub fn answer(
        &self,
        request: Request,
        from: SocketAddr,
    ) -> impl Future<Output = Response> + Send + use<> {
        // Copied, not shared: whoever holds part of the head keeps its connection from using that memory again.
        let (method, path) = (request.method().clone(), Box::<str>::from(request.uri().path()));
        let answering = self.begin(request, from);
        async move {
            let mut response = match answering {
                Ok(answering) => answering.await,
                Err(refused) => *refused,
            };
            name_instance(&path, &mut response);
            if method == Method::HEAD {
                leave_out_body(&mut response);
            }
            // Queries may hold what is nobody's concern.
            tracing::debug!(%method, %path, status = response.status().as_u16(), "answered");
            response
        }
    }

    fn begin(&self, request: Request, from: SocketAddr) -> Result<Answering, Box<Response>> {
        let Inner { app, routes } = &*self.0;
        let refused = |failure: Failure| Box::new(failure.into_response());
        let head_max = app.access().limits.head_max;
        if head_size(&request) > head_max {
            return Err(refused(head_too_large(head_max)));
        }
        let (path, method) = (request.uri().path(), request.method());
        let found = routes.at(path).map_err(|_| refused(Failure::no_such_path()))?;
        let name = found.params.iter().next().map_or("", |(_, name)| name);
        let name = decoded(name).ok_or_else(|| refused(Failure::no_such_path()))?;
        let at = found.value.at(method).filter(|_| verbs::goes_with(method, path));
        let at = at.ok_or_else(|| not_allowed(found.value, method, path))?;
        door(app, at, (request, name, from)).map_err(refused)
    }
}

fn not_allowed(route: &Route, method: &Method, path: &str) -> Box<Response> {
    let mut response = Failure::no_such_method(method).into_response();
    let allowed = verbs::allowed(path).map_or_else(|| route.allowed(), str::to_owned);
    if let Ok(allowed) = HeaderValue::try_from(allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    Box::new(response)
}

/// What HEAD is answered with: all that GET is, but for the body.
fn leave_out_body(response: &mut Response) {
    let body = std::mem::replace(response.body_mut(), Body::empty());
    if let Some(length) = body.size_hint().exact() {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
}

/// The paths that are answered. A test compares them with the document for programs.
pub fn paths() -> Vec<&'static str> {
    routes().into_iter().map(|(path, _)| path).collect()
}

type Routes = Vec<(&'static str, Vec<(Method, Endpoint)>)>;

/// A method, and what answers it.
fn on<T, H>(method: Method, handler: H) -> (Method, Endpoint)
where
    H: Handler<T, Arc<Asked>, Future = BoxFuture<'static, Response>> + Sync,
{
    (method, Box::new(move |request, asked| handler.clone().call(request, asked)))
}

macro_rules! methods {
    ($($name:ident $method:ident),*) => {
        $(fn $name<T, H>(handler: H) -> (Method, Endpoint)
        where
            H: Handler<T, Arc<Asked>, Future = BoxFuture<'static, Response>> + Sync,
        {
            on(Method::$method, handler)
        })*
    };
}

methods!(get GET, post POST, put PUT, patch PATCH, delete DELETE);

fn routes() -> Routes {
    [of_tasks(), of_queues(), of_the_rest(), of_operation()].into_iter().flatten().collect()
}

/// A head has more bytes than it may.
pub fn head_too_large(head_max: usize) -> Failure {
    Failure::new("head_too_large", format!("{} KiB is the most that a head may have", head_max / KIB))
}

/// How many bytes the head of a request has. Whoever reads it lets some pass that are a little larger than they may be.
fn head_size(request: &Request) -> usize {
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let line = request.method().as_str().len() + path + "  HTTP/1.1\r\n".len();
    let header =
        |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + ": \r\n".len();
    line + request.headers().iter().map(header).sum::<usize>() + "\r\n".len()
}

/// A part of a path as it was meant; `None` if that is no text, which every name of ours is.
fn decoded(part: &str) -> Option<String> {
    let mut pieces = part.split('%');
    let first = pieces.next().unwrap_or_default();
    if first.len() == part.len() {
        return Some(part.to_owned());
    }
    let mut bytes = first.as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&piece.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend(piece.as_bytes());
            }
        }
    }
    String::from_utf8(bytes).ok()
}

fn of_tasks() -> Routes {
    let by_filter = |verb| post(async move |asker, body| list::by_filter(asker, verb, body).await);
    vec![
        ("/v1/tasks", vec![get(list::list)]),
        ("/v1/tasks:cancel", vec![by_filter(Verb::Cancel)]),
        ("/v1/tasks:retry", vec![by_filter(Verb::Retry)]),
        ("/v1/tasks:run", vec![by_filter(Verb::Run)]),
        ("/v1/tasks:move", vec![post(list::move_by_filter)]),
        // What follows a colon is a verb, and part of this path.
        (
            "/v1/tasks/{id}",
            vec![get(tasks::get), patch(tasks::patch), delete(tasks::cancel), post(tasks::act)],
        ),
        ("/v1/tasks/{id}/result", vec![get(tasks::result)]),
        ("/v1/tasks/{id}/ack", vec![post(work::report::<wire::Ack>)]),
        ("/v1/tasks/{id}/nack", vec![post(work::report::<wire::Nack>)]),
        ("/v1/tasks/{id}/release", vec![post(work::report::<wire::Release>)]),
        ("/v1/tasks/{id}/bury", vec![post(work::report::<wire::Bury>)]),
        ("/v1/tasks/{id}/touch", vec![post(work::touch)]),
        ("/v1/tasks/{id}/kick", vec![post(work::kick)]),
    ]
}

fn of_queues() -> Routes {
    let queue = vec![
        get(queues::get),
        put(queues::put),
        patch(queues::patch),
        delete(queues::delete),
        post(queues::act),
    ];
    vec![
        ("/v1/queues", vec![get(queues::list)]),
        ("/v1/queues/{queue}", queue),
        ("/v1/queues/{queue}/stats", vec![get(queues::stats)]),
        ("/v1/queues/{queue}/tasks", vec![post(create::create)]),
        ("/v1/queues/{queue}/reserve", vec![post(work::reserve)]),
        ("/v1/queues/{queue}/peek", vec![get(work::peek)]),
        ("/v1/queues/{queue}/ack", vec![post(work::reports::<wire::AckItem>)]),
        ("/v1/queues/{queue}/nack", vec![post(work::reports::<wire::NackItem>)]),
        ("/v1/queues/{queue}/release", vec![post(work::reports::<wire::ReleaseItem>)]),
        ("/v1/queues/{queue}/bury", vec![post(work::reports::<wire::BuryItem>)]),
        ("/v1/queues/{queue}/touch", vec![post(work::touches)]),
        ("/v1/queues/{queue}/kick", vec![post(work::kicks)]),
    ]
}

fn of_the_rest() -> Routes {
    let notification = vec![get(notifications::get), put(notifications::put), delete(notifications::delete)];
    vec![
        ("/schedule", vec![post(call_at::schedule)]),
        ("/schedule/{id}", vec![get(call_at::get)]),
        ("/v1/lanes", vec![get(lanes::list)]),
        ("/v1/lanes:release", vec![post(lanes::release)]),
        ("/v1/lanes:skip", vec![post(lanes::skip)]),
        ("/v1/events", vec![get(events::events)]),
        ("/v1/notifications", vec![get(notifications::list)]),
        ("/v1/notifications/{name}", notification),
    ]
}

fn of_operation() -> Routes {
    vec![
        ("/v1/keys", vec![get(keys::list), post(keys::add)]),
        ("/v1/keys/{id}", vec![post(keys::act), delete(keys::revoke)]),
        ("/v1/backup", vec![post(backup::backup)]),
        ("/v1/hold", vec![get(hold::get)]),
        ("/v1/hold:release", vec![post(hold::release)]),
        ("/v1/clock", vec![get(clock::get)]),
        ("/v1/clock:advance", vec![post(clock::advance)]),
        ("/metrics", vec![get(pages::metrics)]),
        ("/healthz", vec![get(pages::healthz)]),
        ("/readyz", vec![get(pages::readyz)]),
        ("/errors/{code}", vec![get(pages::error)]),
        ("/openapi.json", vec![get(pages::openapi)]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_decoded_once_and_what_is_no_escape_stays() {
        for (part, name) in [("a", "a"), ("a%20b%2Fc", "a b/c"), ("%c3%a4", "ä"), ("%2525", "%25")] {
            assert_eq!(decoded(part).as_deref(), Some(name), "{part}");
        }
        for part in ["%", "%4", "%zz", "a%+1b", "%%"] {
            assert_eq!(decoded(part).as_deref(), Some(part));
        }
        assert_eq!(decoded("%ff"), None);
    }
}
