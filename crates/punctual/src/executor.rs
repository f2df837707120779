//! How an attempt runs: the seam between the loop and whatever does the work.

use std::future::Future;
use std::pin::Pin;

use punctual_core::{Attempt, Outcome};

/// An attempt under way.
pub type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Runs attempts. Dropping the future is how an attempt is stopped.
pub trait Executor: Send + Sync + 'static {
    /// Begins an attempt.
    fn run(&self, attempt: Attempt) -> Running;

    /// The handlers it knows, by name.
    fn receivers(&self) -> Vec<Box<str>>;
}
