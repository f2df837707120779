//! Connections that are kept for the next call.
//!
//! hyper-util's pool gives each connection a task of its own, so that a call goes to and fro between two tasks.
//! Here whoever calls carries the connection along, and while it is idle nobody does.
//! Decision record: `docs/decisions/0023-callers-carry-their-connections.md`.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use punctual::clock::Clock;
use punctual_core::BootTime;
use rustc_hash::FxHashMap;

use super::answer::Answer;
use super::connector::{ConnectError, Connector};
use super::stream::Stream;

/// Idle connections are looked at so often in the time that they may be idle for.
const LOOKS: u32 = 4;

/// What is kept for how long. Clones are the same.
#[derive(Clone)]
pub(super) struct Pool(Arc<Inner>);

/// How a pool is made.
pub(super) struct Parts {
    pub connector: Connector,
    pub http: Builder,
    pub clock: Clock,
    /// How long a connection is kept when nobody uses it.
    pub idle_timeout: Duration,
    /// How many of them are kept for one host.
    pub idle_max: usize,
}

struct Inner {
    parts: Parts,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By host, the one that was used last at the end. None is empty.
    hosts: FxHashMap<Host, VecDeque<Idle>>,
    /// Somebody looks for those that have been idle for too long.
    is_watched: bool,
}

/// Who is called, as far as connections tell.
type Host = (Scheme, Authority);

struct Idle {
    line: Line,
    since: BootTime,
}

/// A connection.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    /// Nothing once it has ended: a request that it has not taken up by then comes back when it is dropped.
    connection: Option<Connection<TokioIo<Stream>, Full<Bytes>>>,
    /// It leads to a proxy, which is told whole URLs.
    is_proxied: bool,
    is_new: bool,
}

/// Why there is no answer.
pub(super) enum Broken {
    NotConnected(ConnectError),
    /// There was no answer.
    NoAnswer(hyper::Error),
    /// There was an answer, and it broke off.
    BrokeOff(hyper::Error),
}

impl Pool {
    pub fn new(parts: Parts) -> Pool {
        Pool(Arc::new(Inner { parts, kept: Mutex::default() }))
    }

    /// Makes a call: over a connection that is kept, or over a new one. Of the answer so many bytes are read, and its
    /// status is told as soon as it is known.
    pub async fn call(
        &self,
        mut request: Request<Full<Bytes>>,
        body_max: usize,
        status: &mut Option<StatusCode>,
    ) -> Result<Answer, Broken> {
        let uri = request.uri().clone();
        let host = host(&uri);
        loop {
            let mut line = match host.as_ref().and_then(|host| self.take(host)) {
                Some(line) => line,
                None => self.connect(&uri).await?,
            };
            *request.uri_mut() = if line.is_proxied { uri.clone() } else { path_of(&uri) };
            match line.exchange(request, body_max, status).await {
                Ok(answer) => {
                    if let Some(host) = host.filter(|_| !answer.truncated) {
                        self.keep_when_ready(host, line);
                    }
                    return Ok(answer);
                }
                // It was closed before anything was sent: another connection may do.
                Err((_, Some(unsent))) if !line.is_new => request = unsent,
                Err((broken, _)) => return Err(broken),
            }
        }
    }

    async fn connect(&self, uri: &Uri) -> Result<Line, Broken> {
        let Parts { connector, http, .. } = &self.0.parts;
        let stream = connector.connect(uri).await.map_err(Broken::NotConnected)?;
        let is_proxied = stream.is_proxied();
        let (sender, connection) = http.handshake(TokioIo::new(stream)).await.map_err(Broken::NoAnswer)?;
        Ok(Line { sender, connection: Some(connection), is_proxied, is_new: true })
    }

    /// The connection to this host that was used last and is still good.
    fn take(&self, host: &Host) -> Option<Line> {
        let now = self.0.parts.clock.now().boot;
        loop {
            let mut kept = self.kept();
            let idle = kept.hosts.get_mut(host)?;
            // Nobody may have looked since it has been idle for too long, and neither have those before it.
            let taken = idle.pop_back_if(|idle| !self.0.is_old(now, idle))?;
            if idle.is_empty() {
                kept.hosts.remove(host);
            }
            drop(kept);
            let Idle { mut line, .. } = taken;
            if line.is_good() {
                return Some(line);
            }
        }
    }

    fn keep_when_ready(&self, host: Host, mut line: Line) {
        if line.sender.is_ready() || line.is_good() {
            return self.keep(host, line);
        }
        if line.connection.is_none() {
            return;
        }
        // Some servers answer before they have heard all: they are told the rest.
        let (pool, patience) = (self.clone(), self.0.parts.idle_timeout);
        tokio::spawn(async move {
            if tokio::time::timeout(patience, line.gets_ready()).await == Ok(true) {
                pool.keep(host, line);
            }
        });
    }

    fn keep(&self, host: Host, mut line: Line) {
        let Parts { clock, idle_max, .. } = &self.0.parts;
        if *idle_max == 0 {
            return line.close();
        }
        line.is_new = false;
        let since = clock.now().boot;
        let mut kept = self.kept();
        let idle = kept.hosts.entry(host).or_default();
        let one_too_many = if idle.len() < *idle_max { None } else { idle.pop_front() };
        idle.push_back(Idle { line, since });
        let is_watched = std::mem::replace(&mut kept.is_watched, true);
        drop(kept);
        one_too_many.into_iter().for_each(|idle| idle.line.close());
        if !is_watched {
            tokio::spawn(watch(Arc::downgrade(&self.0), self.0.parts.idle_timeout / LOOKS));
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.kept()
    }
}

impl Inner {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("nothing panics while it is held")
    }

    /// Closes those that have been idle for too long. Whether there are others.
    fn close_idle(&self) -> bool {
        let (now, mut old) = (self.parts.clock.now().boot, Vec::new());
        let mut kept = self.kept();
        kept.hosts.retain(|_, idle| {
            let count = idle.partition_point(|idle| self.is_old(now, idle));
            old.extend(idle.drain(..count));
            !idle.is_empty()
        });
        kept.is_watched = !kept.hosts.is_empty();
        let is_watched = kept.is_watched;
        drop(kept);
        old.into_iter().for_each(|idle| idle.line.close());
        is_watched
    }

    fn is_old(&self, now: BootTime, idle: &Idle) -> bool {
        now.since(idle.since) >= self.parts.idle_timeout
    }
}

/// Closes connections that nobody uses, until there are none.
async fn watch(pool: Weak<Inner>, every: Duration) {
    loop {
        tokio::time::timeout(every, std::future::pending::<()>()).await.ok();
        if !pool.upgrade().is_some_and(|pool| pool.close_idle()) {
            return;
        }
    }
}

impl Line {
    /// Sends a request and reads its answer. If nothing was sent, the request comes back.
    async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        body_max: usize,
        status: &mut Option<StatusCode>,
    ) -> Result<Answer, (Broken, Option<Request<Full<Bytes>>>)> {
        let Line { sender, connection, .. } = self;
        let mut talk = pin!(async move {
            let response = sender.try_send_request(request).await.map_err(|mut unsent| {
                let request = unsent.take_message();
                (Broken::NoAnswer(unsent.into_error()), request)
            })?;
            *status = Some(response.status());
            Answer::read(response, body_max).await.map_err(|error| (Broken::BrokeOff(error), None))
        });
        // The request is handed over first; from then on it is the connection that goes on.
        let mut is_said = false;
        poll_fn(|context| {
            if !is_said && let Poll::Ready(done) = talk.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            is_said = true;
            go_on(connection, context);
            talk.as_mut().poll(context)
        })
        .await
    }

    /// Whether another request can be sent over it. Nobody need be woken: whoever takes it up looks again.
    fn is_good(&mut self) -> bool {
        go_on(&mut self.connection, &mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Waits until another request can be sent over it; false if that is never.
    async fn gets_ready(&mut self) -> bool {
        poll_fn(|context| {
            go_on(&mut self.connection, context);
            match (&self.connection, self.sender.is_ready()) {
                (None, _) => Poll::Ready(false),
                (Some(_), true) => Poll::Ready(true),
                (Some(_), false) => Poll::Pending,
            }
        })
        .await
    }

    /// Lets it go in good order: with TLS, the other side is told.
    fn close(self) {
        let Line { sender, mut connection, .. } = self;
        drop(sender);
        go_on(&mut connection, &mut Context::from_waker(Waker::noop()));
    }
}

/// A connection does what it can do now.
fn go_on(connection: &mut Option<Connection<TokioIo<Stream>, Full<Bytes>>>, context: &mut Context<'_>) {
    if connection.as_mut().is_some_and(|connection| Pin::new(connection).poll(context).is_ready()) {
        *connection = None;
    }
}

/// Whom a URL leads to; `None` if it says so little that no connection can be kept for it.
fn host(uri: &Uri) -> Option<Host> {
    Some((uri.scheme()?.clone(), uri.authority()?.clone()))
}

/// What a server is told that is not a proxy.
fn path_of(uri: &Uri) -> Uri {
    Uri::from(uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")))
}
