//! The door: every request passes here before it is read. Who asks, may they, and not too often; and afterwards, what
//! was done is written into the audit.
//!
//! A request that changes something goes on to its end even if whoever asked hangs up: what was done is kept for its
//! `Idempotency-Key` and written into the audit, whether or not somebody hears the answer.

mod room;
mod sites;
mod table;
mod to_the_end;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef, Request};
use axum::response::{IntoResponse, Response};
use futures_util::future::{BoxFuture, Either, ready};
use http::{Method, header};
use punctual_client::wire::{Problem, Scope};

use crate::api::Failure;
use crate::app::App;
use crate::audit::{Audit, Deed};
use crate::keys::{Key, Keys, NotOpened, Scopes, Shown, id_of};
use crate::limits::Limits;

pub use room::{Held, Room};
pub use table::{Line, Need, PATHS, line};
use to_the_end::ToTheEnd;

/// The namespace of whoever needs no key.
pub(crate) const NAMESPACE: &str = "default";

/// What the door needs to know.
pub struct Access {
    /// Who may ask.
    pub keys: Keys,
    /// Where it is written what they did.
    pub audit: Audit,
    /// Whether it is written although there are no keys.
    pub is_audited: bool,
    /// How much they may ask.
    pub limits: Arc<Limits>,
    /// Room for what they send.
    pub room: Room,
}

/// How often it is looked whether a key's time is over, at least.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Who asks: a key, or whoever is on this machine while there are no keys.
#[derive(Clone)]
pub struct Who(Option<Shown>);

impl Who {
    /// Whose tasks they may see.
    pub fn namespace(&self) -> &str {
        self.key().map_or(NAMESPACE, |key| &key.namespace)
    }

    fn scopes(&self) -> Scopes {
        self.key().map_or(Scopes::ALL, |key| key.scopes)
    }

    fn key(&self) -> Option<&Key> {
        self.0.as_ref().map(|shown| &*shown.known.key)
    }
}

/// A request that was let in, as its handler knows it besides what was sent.
pub struct Asked {
    /// What all requests share.
    pub app: App,
    /// Who asks.
    pub who: Who,
    /// What the path names: a queue, a task.
    pub name: String,
    /// What the request holds of the room for bodies.
    pub held: Held,
}

impl FromRef<Arc<Asked>> for App {
    fn from_ref(asked: &Arc<Asked>) -> App {
        asked.app.clone()
    }
}

/// Answers a request that was let in.
pub type Endpoint = Box<dyn Fn(Request, Arc<Asked>) -> BoxFuture<'static, Response> + Send + Sync>;

/// An answer in the making.
pub type Answering = Either<BoxFuture<'static, Response>, ToTheEnd<Response>>;

/// Lets a request in, or says why not.
pub fn door(
    app: &App,
    (line, endpoint): (Line, &Endpoint),
    (request, name, from): (Request, String, SocketAddr),
) -> Result<Answering, Failure> {
    let wants_all = wants_all(&request);
    let access = app.access();
    let who = access.admit(line.need, wants_all == Some(true), &request).inspect_err(|failure| {
        if access.keys.are_needed() {
            let key = text_of(&request).and_then(id_of);
            access.audit.refused(|| Came::new(&request, from).deed(key, None, Some(&failure.0)));
        }
    })?;
    let refused = refused_query(line, wants_all, &request);
    let asked = Arc::new(Asked { app: app.clone(), who, name, held: Held::default() });
    if !line.is_deed {
        return refused.map_or_else(|| Ok(Either::Left(endpoint(request, asked))), Err);
    }
    let came = Came::new(&request, from);
    let under_way = line.goes_to_its_end.then(|| app.under_way());
    let answering = match refused {
        None => endpoint(request, asked.clone()),
        // Whoever was let in and asked for a change is written down, whatever becomes of it.
        Some(failure) => Box::pin(ready(failure.into_response())),
    };
    let change: BoxFuture<'static, Response> = Box::pin(async move {
        let response = change(asked, came, answering).await;
        drop(under_way);
        response
    });
    Ok(if line.goes_to_its_end { Either::Right(ToTheEnd::new(change)) } else { Either::Left(change) })
}

/// What is wrong with a query that means nothing where it was sent.
fn refused_query(line: Line, wants_all: Option<bool>, request: &Request) -> Option<Failure> {
    let query = request.uri().query().unwrap_or_default();
    if wants_all.is_some() && !line.takes_view {
        let detail = "view: no tasks are shown here, or always in the same way";
        return Some(Failure::new("query_invalid", detail));
    }
    if query.is_empty() || line.takes_query {
        return None;
    }
    let field = query.split(['=', '&']).next().unwrap_or_default();
    let detail = format!("`{field}`: nothing can be asked for in the query here");
    Some(Failure::new("query_invalid", detail))
}

/// Has a request answered that may change something, and writes down what it did.
async fn change(asked: Arc<Asked>, came: Came, answering: BoxFuture<'static, Response>) -> Response {
    let response = answering.await;
    let access = asked.app.access();
    // Looked at only now: whoever has made the first key is written down too.
    if access.is_audited || access.keys.are_needed() {
        access.audit.did(came.deed_of(&asked.who, &response)).await;
    }
    response
}

impl Access {
    fn admit(&self, need: Need, sees_payloads: bool, request: &Request) -> Result<Who, Failure> {
        let Need::Scope(scope) = need else { return Ok(Who(None)) };
        let who = self.who(request)?;
        for scope in [Some(scope), sees_payloads.then_some(Scope::Payloads)].into_iter().flatten() {
            if !who.scopes().has(scope) {
                let detail = format!("this needs a key with the scope `{scope}`");
                return Err(Failure::new("scope_missing", detail));
            }
        }
        self.not_too_often(&who)?;
        Ok(who)
    }

    /// Whether they would be let in now: what goes on for long ends with the key that began it.
    pub fn still_lets(&self, who: &Who) -> bool {
        match &who.0 {
            None => !self.keys.are_needed(),
            Some(shown) => self.keys.still_opened_by(shown),
        }
    }

    /// Returns when they would not be let in any more: their key was revoked, or its time is over, or that of the secret
    /// that they have shown.
    pub async fn until_shut(&self, who: &Who) {
        let mut changes = self.keys.changes();
        while self.still_lets(who) {
            let left = who.0.as_ref().and_then(|shown| self.keys.opened_for(shown));
            // A machine that slept, or whose clock was set, is found out soon.
            let left = left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
            tokio::time::timeout(left, changes.changed()).await.ok();
        }
    }

    fn who(&self, request: &Request) -> Result<Who, Failure> {
        if !self.keys.are_needed() {
            sites::refuse_others(request)?;
            return Ok(Who(None));
        }
        let Some(value) = request.headers().get(header::AUTHORIZATION) else {
            return Err(Failure::new("key_missing", "send `Authorization: Bearer` and your key"));
        };
        let text = bearer(value.to_str().unwrap_or_default())
            .ok_or_else(|| Failure::new("key_missing", "the authorization is not `Bearer` and a key"))?;
        let opened = self.keys.opened_by(text).map_err(|why| {
            let detail = match why {
                NotOpened::Unknown => "this server does not know the key: was it sent whole?",
                NotOpened::Expired => "the key's time is over: ask for a new one",
                NotOpened::Revoked => "the key was revoked: ask for a new one",
            };
            Failure::new("key_invalid", detail)
        });
        Ok(Who(Some(opened?)))
    }

    fn not_too_often(&self, who: &Who) -> Result<(), Failure> {
        let Some(Shown { known, .. }) = &who.0 else { return Ok(()) };
        let own = known.key.requests_per_second;
        let Some(per_second) = own.or(self.limits.requests_per_second) else { return Ok(()) };
        // A key with a rate of its own has no burst of its own.
        let burst = self.limits.requests_burst.filter(|_| own.is_none()).unwrap_or(per_second);
        if known.may_ask(self.keys.clock(), per_second, burst) {
            return Ok(());
        }
        let detail = format!("this key may make {per_second} requests in a second: send more tasks in each");
        Err(Failure::new("rate_limited", detail))
    }
}

/// Whether somebody asks for what tasks carry, if a query says how much of them is to be shown. Read as the query itself
/// is read, whatever way it is written.
fn wants_all(request: &Request) -> Option<bool> {
    let query = request.uri().query().filter(|query| query.contains('='))?;
    let views = url::form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "view");
    views.map(|(_, value)| value == "full").reduce(|one, other| one || other)
}

fn text_of(request: &Request) -> Option<&str> {
    bearer(request.headers().get(header::AUTHORIZATION)?.to_str().ok()?)
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, text) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

/// What of a request goes into the audit.
struct Came {
    method: Method,
    path: String,
    from: SocketAddr,
}

impl Came {
    fn new(request: &Request, from: SocketAddr) -> Came {
        // Copied, not shared: whoever holds part of the head keeps its connection from using that memory again.
        Came { method: request.method().clone(), path: request.uri().path().to_owned(), from }
    }

    fn deed_of(self, who: &Who, response: &Response) -> Deed {
        let mut deed = self.deed(
            who.key().map(|key| &*key.id),
            Some(who.namespace()),
            response.extensions().get::<Problem>(),
        );
        deed.status = response.status().as_u16();
        let made = response.headers().get(header::LOCATION);
        deed.made = made.and_then(|made| made.to_str().ok()).map(str::to_owned);
        deed
    }

    fn deed(&self, key: Option<&str>, namespace: Option<&str>, problem: Option<&Problem>) -> Deed {
        Deed {
            key: key.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
            from: Some(self.from.ip().to_string()),
            method: self.method.to_string(),
            path: self.path.clone(),
            status: problem.map_or(0, |problem| problem.status),
            code: problem.map(|problem| problem.code.to_string()),
            made: None,
        }
    }
}
