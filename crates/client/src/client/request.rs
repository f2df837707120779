//! One request and its answer: written, sent, waited for, and read.

use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, IF_MATCH, RETRY_AFTER, USER_AGENT,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::client::legacy;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Client;
use super::error::{Cause, Error};
use super::transport::Body;
use crate::wire::Problem;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("punctual-client/", env!("CARGO_PKG_VERSION")));
/// What an error says is read up to here.
const PROBLEM_BYTES_MAX: usize = 1024 * 1024;

/// A request that is being written.
pub(crate) struct Asking {
    client: Client,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Result<Body, Error>,
    /// How long the server may keep us waiting, besides the time that an answer takes.
    wait: Duration,
}

/// What came back, read to its end.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Client {
    pub(crate) fn asking(&self, method: Method, path: String) -> Asking {
        Asking {
            client: self.clone(),
            method,
            path,
            headers: HeaderMap::new(),
            body: Ok(Body::new(Empty::new().map_err(|never| match never {}))),
            wait: Duration::ZERO,
        }
    }

    pub(crate) fn get_path(&self, path: String) -> Asking {
        self.asking(Method::GET, path)
    }

    pub(crate) fn post(&self, path: String) -> Asking {
        self.asking(Method::POST, path)
    }
}

impl Asking {
    pub fn json(mut self, body: &impl Serialize) -> Asking {
        self.headers.insert(CONTENT_TYPE, JSON);
        self.body = match serde_json::to_vec(body) {
            Ok(bytes) => Ok(Body::new(Full::from(bytes).map_err(|never| match never {}))),
            Err(error) => Err(Error::Impossible(Box::new(error))),
        };
        self
    }

    pub fn lines<S>(mut self, lines: S) -> Asking
    where
        S: Stream<Item = Result<Frame<Bytes>, std::io::Error>> + Send + 'static,
    {
        self.headers.insert(CONTENT_TYPE, NDJSON);
        self.body = Ok(Body::new(StreamBody::new(lines)));
        self
    }

    pub fn query(mut self, query: &impl Serialize) -> Asking {
        match serde_urlencoded::to_string(query) {
            Ok(query) if query.is_empty() => {}
            Ok(query) => self.path = format!("{}?{query}", self.path),
            Err(error) => self.body = Err(Error::Impossible(Box::new(error))),
        }
        self
    }

    pub fn header(mut self, name: HeaderName, value: &str) -> Asking {
        match HeaderValue::from_str(value) {
            Ok(value) => {
                self.headers.insert(name, value);
            }
            Err(error) => self.body = Err(Error::Impossible(Box::new(error))),
        }
        self
    }

    pub fn if_revision(self, revision: u32) -> Asking {
        self.header(IF_MATCH, &format!("\"{revision}\""))
    }

    pub fn wait(mut self, wait: Duration) -> Asking {
        self.wait = wait;
        self
    }

    /// Sends it, and reads the answer as JSON.
    pub async fn read<T: DeserializeOwned>(self) -> Result<T, Error> {
        self.read_with_status().await.map(|(_, value)| value)
    }

    pub async fn read_with_status<T: DeserializeOwned>(self) -> Result<(StatusCode, T), Error> {
        let answer = self.answer().await?;
        let value =
            serde_json::from_slice(&answer.body).map_err(|error| Error::Unreadable(Box::new(error)))?;
        Ok((answer.status, value))
    }

    /// Sends it, and reads the answer to its end. What is not success is an error.
    pub async fn answer(self) -> Result<Answer, Error> {
        let (client, limit) = (self.client.clone(), self.wait.saturating_add(self.client.inner.timeout));
        let whole = async {
            let response = self.send().await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), client.inner.answer_max);
            let body = body.collect().await.map_err(cut_off)?.to_bytes();
            Ok(Answer { status, body })
        };
        tokio::time::timeout(limit, whole).await.unwrap_or_else(|late| Err(Error::Unknown(Box::new(late))))
    }

    /// Sends it, and waits for the head of the answer; its body is a stream that may never end.
    pub async fn open(self) -> Result<Incoming, Error> {
        let limit = self.wait.saturating_add(self.client.inner.timeout);
        match tokio::time::timeout(limit, self.send()).await {
            Ok(response) => Ok(response?.into_body()),
            Err(late) => Err(Error::Unknown(Box::new(late))),
        }
    }

    async fn send(self) -> Result<Response<Incoming>, Error> {
        let inner = &self.client.inner;
        let base = &inner.base;
        let path = format!("{}{}", base.path().trim_end_matches('/'), self.path);
        let mut uri = http::uri::Builder::new().path_and_query(path);
        uri = base.scheme().into_iter().fold(uri, |uri, scheme| uri.scheme(scheme.clone()));
        uri = base.authority().into_iter().fold(uri, |uri, authority| uri.authority(authority.clone()));
        let uri = uri.build().map_err(|error| Error::Impossible(Box::new(error)))?;

        let mut request = Request::new(self.body?);
        *request.method_mut() = self.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers;
        request.headers_mut().insert(USER_AGENT, AGENT);
        request.headers_mut().entry(ACCEPT).or_insert(JSON);
        if let Some(key) = &inner.key {
            request.headers_mut().insert(AUTHORIZATION, key.clone());
        }
        let response = inner.transport.request(request).await.map_err(not_sent)?;
        if response.status().is_success() { Ok(response) } else { Err(problem_of(response).await) }
    }
}

fn not_sent(error: legacy::Error) -> Error {
    if error.is_connect() { Error::Unreachable(Box::new(error)) } else { Error::Unknown(Box::new(error)) }
}

fn cut_off(cause: Cause) -> Error {
    if cause.is::<LengthLimitError>() { Error::Unreadable(cause) } else { Error::Unknown(cause) }
}

/// What the server has against it. A proxy in between may say so in words of its own.
async fn problem_of(response: Response<Incoming>) -> Error {
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.and_then(|secs| secs.parse().ok()).map(Duration::from_secs);
    let body = match Limited::new(response.into_body(), PROBLEM_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let mut problem: Problem = serde_json::from_slice(&body).unwrap_or_else(|_| Problem {
        title: status.canonical_reason().unwrap_or("error").into(),
        detail: String::from_utf8_lossy(&body).chars().take(500).collect::<String>().into(),
        ..Problem::default()
    });
    problem.status = status.as_u16();
    Error::of(problem, retry_after)
}

/// A name as a part of a path: whatever has a meaning in paths is written as `%XX`.
pub(crate) fn segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for &byte in name.as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b'.' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    // Alone, dots mean another folder.
    if out.bytes().all(|byte| byte == b'.') { out.replace('.', "%2E") } else { out }
}

/// The items of a batch, as they are sent.
#[derive(Serialize)]
pub(crate) struct Items<'a, T> {
    pub tasks: &'a [T],
}
