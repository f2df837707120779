//! No spans: this was built without the feature `otlp`.

use punctual::{Attempt, Outcome};

use super::NoSpans;
use crate::api::Surroundings;
use crate::call::Call;

/// Nobody is told.
#[derive(Clone, Default)]
pub struct Spans;

/// The making of tasks.
pub struct CreateSpan;

/// An attempt.
pub struct AttemptSpan;

impl Spans {
    /// Nothing, if nothing is asked for.
    pub fn open(endpoint: Option<&str>) -> Result<Spans, NoSpans> {
        Spans::check(endpoint).map(|()| Spans)
    }

    /// Whether this can be had.
    pub fn check(endpoint: Option<&str>) -> Result<(), NoSpans> {
        match endpoint {
            None => Ok(()),
            Some(_) => Err(NoSpans(
                "this was built without spans: build it with `--features otlp`, or leave the setting out"
                    .into(),
            )),
        }
    }

    /// Tasks are being made: they are part of the trace that their request is part of.
    pub fn creating(&self, _: &str, surroundings: Surroundings) -> (Surroundings, CreateSpan) {
        (surroundings, CreateSpan)
    }

    /// A call is about to be made.
    pub fn attempt(&self, _: &Attempt, _: &Call, _: &str) -> AttemptSpan {
        AttemptSpan
    }

    /// Nothing is left to be told.
    pub async fn close(&self) {}
}

impl AttemptSpan {
    /// It ended.
    pub fn end(self, _: &Outcome) {}
}
