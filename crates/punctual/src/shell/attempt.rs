//! One attempt: guarded against its own panics, stopped by being dropped, and held to what may be stored.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable};
use punctual_core::{Attempt, Now, Outcome, Token};
use punctual_store::Store;

use super::workers::is_for_worker;
use super::{Done, Shell};
use crate::observer::Note;

/// What is kept of the text of the last error, in bytes.
const ERROR_MAX: usize = 64 * 1024;

impl<S: Store> Shell<S> {
    pub(super) fn start(&mut self, now: Now, attempt: Attempt) {
        self.observer.observe(Note::Started(&attempt));
        if is_for_worker(&attempt) {
            self.hand_out(now, attempt);
        } else if self.inline {
            self.start_inline(attempt);
        } else {
            self.starting.push(attempt);
        }
    }

    fn start_inline(&mut self, attempt: Attempt) {
        let token = attempt.token;
        let (abort, aborted) = AbortHandle::new_pair();
        self.inline_attempts.insert(token, abort);
        let (executor, result_max) = (self.executor.clone(), self.settings.limits.payload_max);
        let running = AssertUnwindSafe(async move { executor.run(attempt).await }).catch_unwind();
        let running = Abortable::new(running, aborted);
        self.calls.push(Box::pin(async move {
            match running.await {
                Ok(Ok(outcome)) => Done::Reported(token, fit(outcome, result_max)),
                Ok(Err(panic)) => Done::Reported(token, panicked(&*panic)),
                Err(_) => Done::StillTrying,
            }
        }));
    }

    pub(super) fn stop_attempt(&mut self, now: Now, token: Token) {
        if self.take_away(now, token) {
            return;
        }
        if !self.inline {
            return self.runners.stop(token);
        }
        if let Some(abort) = self.inline_attempts.remove(&token) {
            abort.abort();
        }
    }

    pub(super) fn stop_all_attempts(&mut self) {
        self.runners.stop_all();
        for abort in self.inline_attempts.values() {
            abort.abort();
        }
    }
}

/// A handler that panics has failed, and nothing else has.
pub(super) fn panicked(panic: &(dyn std::any::Any + Send)) -> Outcome {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = format!("the handler panicked: {}", text.unwrap_or("without a message"));
    Outcome::Failed { error: cut(text.into()), retry_after: None }
}

/// What an attempt says is stored, so it has a limit. A result that is too large would be so again.
pub(super) fn fit(outcome: Outcome, result_max: usize) -> Outcome {
    match outcome {
        Outcome::Succeeded(result) if result.len() > result_max => Outcome::GaveUp(
            format!("it ran, but its result has {} bytes, and {result_max} is the most", result.len()).into(),
        ),
        Outcome::Failed { error, retry_after } => Outcome::Failed { error: cut(error), retry_after },
        Outcome::Refused { error, retry_after, is_busy } => {
            Outcome::Refused { error: cut(error), retry_after, is_busy }
        }
        Outcome::GaveUp(error) => Outcome::GaveUp(cut(error)),
        outcome => outcome,
    }
}

fn cut(error: Arc<str>) -> Arc<str> {
    if error.len() <= ERROR_MAX { error } else { error[..error.floor_char_boundary(ERROR_MAX)].into() }
}
