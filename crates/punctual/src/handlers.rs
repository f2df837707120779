//! Rust functions, registered by name, that run tasks in this process.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{Attempt, Outcome, Target, TaskId, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::executor::{Executor, Running};

/// What a handler is given.
#[derive(Clone, Debug)]
pub struct Job<P> {
    /// What the task carries.
    pub payload: P,
    /// The task. The same for every attempt: use it as idempotency key.
    pub id: TaskId,
    /// From 1.
    pub attempt: u32,
    /// Grows with every attempt: whoever keeps the highest one seen can refuse a latecomer.
    pub fence: (u64, u32),
    /// When the task was due.
    pub at: Timestamp,
    /// Its lane.
    pub lane: Option<Box<str>>,
}

/// Why an attempt failed. Anything that is an error becomes one with `?`.
#[derive(Debug)]
pub struct Failure(Kind);

#[derive(Debug)]
enum Kind {
    Retry { error: String, after: Option<Duration> },
    GiveUp(String),
}

impl Failure {
    /// Try again as the retry policy says.
    pub fn retry(error: impl Into<String>) -> Failure {
        Failure(Kind::Retry { error: error.into(), after: None })
    }

    /// Try again, but not before that long.
    pub fn retry_after(error: impl Into<String>, after: Duration) -> Failure {
        Failure(Kind::Retry { error: error.into(), after: Some(after) })
    }

    /// Never try again.
    pub fn give_up(error: impl Into<String>) -> Failure {
        Failure(Kind::GiveUp(error.into()))
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::retry(error.to_string())
    }
}

/// A buffer that grew beyond this is not kept.
const BUFFER_MAX: usize = 64 * 1024;

type Handler = Arc<dyn Fn(Attempt) -> Running + Send + Sync>;

/// The handlers of one process.
#[derive(Clone, Default)]
pub struct Handlers {
    by_name: Arc<RwLock<BTreeMap<Box<str>, Handler>>>,
}

impl Handlers {
    /// Registers a handler, in place of an earlier one of that name.
    pub fn register<P, R, F, Fut>(&self, name: &str, handler: F)
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize,
        F: Fn(Job<P>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let run: Handler = Arc::new(move |attempt| {
            let handler = handler.clone();
            Box::pin(async move {
                match job(attempt) {
                    Ok(job) => outcome(handler(job).await),
                    Err(error) => Outcome::GaveUp(format!("the payload cannot be read: {error}").into()),
                }
            })
        });
        self.by_name.write().expect("registering cannot panic").insert(name.into(), run);
    }
}

impl Executor for Handlers {
    fn run(&self, attempt: Attempt) -> Running {
        let handler = match &attempt.spec.target {
            Target::Handler(name) => {
                self.by_name.read().expect("registering cannot panic").get(&**name).cloned()
            }
            Target::Destination(_) | Target::Worker => None,
        };
        match handler {
            Some(handler) => handler(attempt),
            None => Box::pin(std::future::ready(Outcome::NoReceiver)),
        }
    }

    fn receivers(&self) -> Vec<Box<str>> {
        self.by_name.read().expect("registering cannot panic").keys().cloned().collect()
    }
}

fn job<P: DeserializeOwned>(attempt: Attempt) -> Result<Job<P>, serde_json::Error> {
    let token = attempt.token;
    // No payload is the JSON value `null`, so that `()` and `Option` can be asked for.
    let payload = if attempt.spec.payload.is_empty() { b"null" } else { &attempt.spec.payload[..] };
    Ok(Job {
        payload: serde_json::from_slice(payload)?,
        id: token.id,
        attempt: token.attempt,
        fence: (token.epoch.0, token.attempt),
        at: attempt.spec.at,
        lane: attempt.spec.lane.clone(),
    })
}

fn outcome<R: Serialize>(result: Result<R, Failure>) -> Outcome {
    match result {
        Ok(result) => match written(&result) {
            Ok(result) => Outcome::Succeeded(result),
            Err(error) => Outcome::GaveUp(format!("the result cannot be written: {error}").into()),
        },
        Err(Failure(Kind::Retry { error, after })) => {
            Outcome::Failed { error: error.into(), retry_after: after }
        }
        Err(Failure(Kind::GiveUp(error))) => Outcome::GaveUp(error.into()),
    }
}

/// A result as JSON. Nothing (`null`) is no bytes at all, and most results are that: they must not cost a buffer.
fn written(result: &impl Serialize) -> Result<Bytes, serde_json::Error> {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    // Taken rather than borrowed: writing one result may call code that writes another.
    let mut buffer = BUFFER.take();
    buffer.clear();
    let written = serde_json::to_writer(&mut buffer, result);
    let bytes = if buffer == b"null" { Bytes::new() } else { Bytes::copy_from_slice(&buffer) };
    if buffer.capacity() <= BUFFER_MAX {
        BUFFER.set(buffer);
    }
    written.map(|()| bytes)
}
