//! How an attempt runs: the seam between the loop and whatever does the work.

use std::future::Future;
use std::pin::Pin;

use std::sync::Arc;

use punctual_core::{Attempt, Outcome, Target};

use crate::handlers::Handlers;

/// An attempt under way.
pub type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Runs attempts. Dropping the future is how an attempt is stopped.
pub trait Executor: Send + Sync + 'static {
    /// Begins an attempt.
    fn run(&self, attempt: Attempt) -> Running;

    /// The handlers it knows, by name.
    fn receivers(&self) -> Vec<Box<str>>;
}

/// Handlers run in this process, calls are made by whoever the program has named for that.
pub(crate) struct Executors {
    pub handlers: Handlers,
    pub calls: Option<Arc<dyn Executor>>,
}

impl Executor for Executors {
    fn run(&self, attempt: Attempt) -> Running {
        match (&attempt.spec.target, &self.calls) {
            (Target::Destination(_), Some(calls)) => calls.run(attempt),
            _ => self.handlers.run(attempt),
        }
    }

    fn receivers(&self) -> Vec<Box<str>> {
        self.handlers.receivers()
    }
}
