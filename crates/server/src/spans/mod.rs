//! Spans for a collector (OTLP), so that a task can be followed from whoever made it to whoever was called.
//!
//! Two spans belong to a task: the request that makes it, as part of the trace that the request says it is in, and the
//! call of each attempt, as a child of the first. The task itself carries the first one's `traceparent`, so that they
//! are joined however much later the call is, and whatever happens to the server in between.
//!
//! They are there with the feature `otlp`, and only when an endpoint is named. Otherwise this is nothing at all: the
//! same face, with nothing behind it.

#[cfg(feature = "otlp")]
mod collector;
#[cfg(feature = "otlp")]
mod exported;
#[cfg(not(feature = "otlp"))]
mod none;

#[cfg(feature = "otlp")]
pub use exported::{CreateSpan, Spans};
#[cfg(not(feature = "otlp"))]
pub use none::{CreateSpan, Spans};

/// Why no spans can be told.
#[derive(Debug)]
pub struct NoSpans(pub String);

impl std::fmt::Display for NoSpans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "otlp_endpoint: {}", self.0)
    }
}

impl std::error::Error for NoSpans {}
