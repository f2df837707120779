//! A client for the HTTP protocol: one method for each request.

mod clock;
mod creating;
mod error;
mod events;
mod keys;
mod operation;
mod queues;
mod request;
mod tasks;
mod transport;
mod work;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::client::legacy::connect::Connect;

pub use creating::{Created, Creating};
pub use error::{Cause, Error};

use transport::Transport;

/// A server of Punctual, seen from elsewhere. Cheap to clone; clones share their connections.
///
/// A request that is dropped before its answer may or may not have happened.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Box<dyn Transport>,
    base: Uri,
    key: Option<HeaderValue>,
    timeout: Duration,
    answer_max: usize,
}

impl Client {
    /// A client of the server at that address, with the settings that suit most.
    pub fn new(url: &str) -> Result<Client, Error> {
        Client::builder(url).build()
    }

    /// A client of the server at that address, to be told more.
    pub fn builder(url: &str) -> ClientBuilder {
        ClientBuilder {
            url: url.to_owned(),
            key: None,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            idle_max: 32,
            answer_max: 256 * 1024 * 1024,
        }
    }

    /// Whether the server is ready for tasks.
    pub async fn is_ready(&self) -> Result<bool, Error> {
        let answer = self.get_path("/readyz".to_owned()).answer().await;
        match answer {
            Ok(answer) => Ok(answer.status.is_success()),
            Err(Error::Busy { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is nobody's business.
        f.debug_struct("Client").field("url", &self.inner.base).finish_non_exhaustive()
    }
}

/// What a client needs to know about its server.
#[derive(Clone)]
pub struct ClientBuilder {
    url: String,
    key: Option<String>,
    timeout: Duration,
    connect_timeout: Duration,
    idle_max: usize,
    answer_max: usize,
}

impl ClientBuilder {
    /// The key that opens the server.
    pub fn key(mut self, key: impl Into<String>) -> ClientBuilder {
        self.key = Some(key.into());
        self
    }

    /// How long an answer may take; 30 s if nothing is said. Requests that wait get their wait on top.
    pub fn timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.timeout = timeout;
        self
    }

    /// How long it may take to connect; 5 s if nothing is said.
    pub fn connect_timeout(mut self, timeout: Duration) -> ClientBuilder {
        self.connect_timeout = timeout;
        self
    }

    /// How many connections are kept that nobody uses; 32 if nothing is said.
    pub fn idle_max(mut self, connections: usize) -> ClientBuilder {
        self.idle_max = connections;
        self
    }

    /// How many bytes an answer may have; 256 MiB if nothing is said.
    pub fn answer_max(mut self, bytes: usize) -> ClientBuilder {
        self.answer_max = bytes;
        self
    }

    /// The client. Nothing is sent yet.
    pub fn build(self) -> Result<Client, Error> {
        let base = self.base()?;
        if base.scheme_str() == Some("https") && !cfg!(feature = "tls") {
            return Err(impossible("for https, build punctual-client with the feature `tls`"));
        }
        let connector = transport::connector(self.connect_timeout)?;
        self.build_over(connector)
    }

    /// The client, over connections of your own making: a Unix socket, a proxy, or memory.
    pub fn build_over<C>(self, connector: C) -> Result<Client, Error>
    where
        C: Connect + Clone + Send + Sync + 'static,
    {
        let base = self.base()?;
        let key = match &self.key {
            None => None,
            Some(key) => {
                let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
                    .map_err(|_| impossible("the key has letters that no header may have"))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let transport = Box::new(transport::pool(connector, self.idle_max));
        let (timeout, answer_max) = (self.timeout, self.answer_max);
        Ok(Client { inner: Arc::new(Inner { transport, base, key, timeout, answer_max }) })
    }

    fn base(&self) -> Result<Uri, Error> {
        let uri: Uri = self.url.parse().map_err(|error| Error::Impossible(Box::new(error)))?;
        match (uri.scheme_str(), uri.authority(), uri.path_and_query().and_then(PathAndQuery::query)) {
            (Some("http" | "https"), Some(_), None) => Ok(uri),
            _ => Err(impossible("the address must look like http://127.0.0.1:8700")),
        }
    }
}

fn impossible(why: &'static str) -> Error {
    Error::Impossible(why.into())
}
