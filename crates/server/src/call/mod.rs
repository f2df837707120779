//! Calls over HTTP: what is to be called, whether that may be, and what the answer means.
//!
//! ```text
//! Call ── check ──▶ kept with the task ──▶ Caller::run ──▶ request ─▶ connector ─▶ rules ─▶ Outcome
//!   (when it is made)                      (each attempt)              (guard)
//! ```
//!
//! Addresses are judged twice: when the task is made, as far as the URL tells, so that a mistake is told to whoever
//! made it; and inside the connector, on the very address that is connected to, because names change what they mean.
//!
//! HTTP/1.1 only: another version would be another connector, and nothing else would change.

mod answer;
mod at_rest;
mod caller;
mod check;
mod connector;
mod guard;
mod plain;
mod proxy;
mod request;
mod rules;
mod sign;
mod stream;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

pub use at_rest::NotACall;
pub use caller::{Caller, CallerOptions};
pub use check::{BadCall, method_of};
pub use connector::{Resolve, Resolved, SystemResolver};
pub use guard::{Blocked, Guard, Ports, USUAL_PORTS};
pub use proxy::{BadProxy, Proxy};
#[cfg(feature = "otlp")]
pub(crate) use request::span_of;
pub use rules::{BadCode, Codes, Conflict, QueueRules, RETRY_AFTER_MAX, Success, Verdict};
pub use sign::{BadSecret, Secret, signature};

/// What is to be called. Only what passed [`Call::check`] should be kept.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// Where.
    pub url: String,
    /// How.
    pub method: String,
    /// What is said besides, in order.
    pub headers: Vec<(String, String)>,
    /// What is sent. If nothing is said, the task's payload is; but not with GET or HEAD, which usually have none.
    pub body: Option<Bytes>,
    /// How long it may take in all, if that is less than an attempt may take.
    pub timeout: Option<Duration>,
    /// The trace that the task was made in, as W3C Trace Context writes it.
    pub traceparent: Option<String>,
    /// What others keep with that trace.
    pub tracestate: Option<String>,
}

impl Call {
    /// A POST to this URL, with nothing else said.
    pub fn post(url: impl Into<String>) -> Call {
        Call {
            url: url.into(),
            method: "POST".to_string(),
            headers: Vec::new(),
            body: None,
            timeout: None,
            traceparent: None,
            tracestate: None,
        }
    }
}

/// Values of headers and the body may hold secrets, and so may the path: what is logged has none of them.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("destination", &self.destination(crate::access::NAMESPACE))
            .field("headers", &names)
            .field("body", &self.body.as_ref().map(Bytes::len))
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
