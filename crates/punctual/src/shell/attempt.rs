//! One attempt: begun beside the loop, guarded against its own panics, stopped by being dropped.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable};
use punctual_core::{Attempt, Outcome, Token};
use punctual_store::Store;

use super::{Done, Shell};
use crate::executor::{Executor, Running};
use crate::observer::Note;

/// What is kept of the text of an error, in bytes.
const ERROR_MAX: usize = 4 * 1024;

impl<S: Store> Shell<S> {
    pub(super) fn start(&mut self, attempt: Attempt) {
        self.observer.observe(Note::Started(&attempt));
        let token = attempt.token;
        let (abort, aborted) = AbortHandle::new_pair();
        let running = Abortable::new(run_guarded(&self.executor, attempt), aborted);
        self.attempts.insert(token, abort);
        let result_max = self.settings.limits.payload_max;
        if self.inline {
            return self.calls.push(Box::pin(async move {
                match running.await {
                    Ok(outcome) => Done::Reported(token, fit(outcome, result_max)),
                    Err(_) => Done::StillTrying,
                }
            }));
        }
        let report_to = self.report_to.clone();
        tokio::spawn(async move {
            if let Ok(outcome) = running.await {
                // The loop is gone: then nobody waits for the report either.
                report_to.send((token, fit(outcome, result_max))).await.ok();
            }
        });
    }

    pub(super) fn stop_attempt(&mut self, token: Token) {
        if let Some(abort) = self.attempts.remove(&token) {
            abort.abort();
        }
    }
}

/// A handler that panics has failed, and nothing else has.
fn run_guarded(executor: &Arc<dyn Executor>, attempt: Attempt) -> Running {
    let executor = executor.clone();
    Box::pin(async move {
        let guarded = AssertUnwindSafe(async { executor.run(attempt).await }).catch_unwind();
        guarded
            .await
            .unwrap_or_else(|panic| Outcome::Failed { error: panic_text(&*panic).into(), retry_after: None })
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", text.unwrap_or("without a message"))
}

/// What an attempt says is stored, so it has a limit. A result that is too large would be so again.
fn fit(outcome: Outcome, result_max: usize) -> Outcome {
    match outcome {
        Outcome::Succeeded(result) if result.len() > result_max => Outcome::GaveUp(
            format!("it ran, but its result has {} bytes, and {result_max} is the most", result.len()).into(),
        ),
        Outcome::Failed { error, retry_after } => Outcome::Failed { error: cut(error), retry_after },
        Outcome::GaveUp(error) => Outcome::GaveUp(cut(error)),
        outcome => outcome,
    }
}

fn cut(error: Arc<str>) -> Arc<str> {
    if error.len() <= ERROR_MAX { error } else { error[..error.floor_char_boundary(ERROR_MAX)].into() }
}
