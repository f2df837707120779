//! A loop for workers: takes tasks as it has hands for them, does them, and reports.
//!
//! ```text
//! reserve ──► job ──► ack, nack or bury        (in batches, as they come)
//!              │
//!              └─ half of the time to run is over ──► touch
//! ```
//!
//! One loop owns everything and waits for one thing at a time; only the jobs run beside it. A server that cannot be
//! reached is asked again later and later, and what is to be reported is kept until it can be.

mod backoff;
mod outbox;
mod run;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{Client, Error};
use crate::wire::{Json, ReservedTask};

/// A server waits no longer for the first task, and hands out no more at once.
const WAIT_MAX: Duration = Duration::from_secs(30);
const RESERVE_MAX: u32 = 1_000;
/// What is longer than this in an error, nobody reads.
const ERROR_CHARS_MAX: usize = 4_000;

/// A worker: does the tasks of a queue, as many at once as it is told to.
///
/// ```no_run
/// use punctual_client::{Client, Failure, Job, Worker};
///
/// async fn send_mail(job: Job) -> Result<(), Failure> {
///     let address: String = job.payload()?;
///     println!("a letter to {address}");
///     Ok(())
/// }
///
/// # async fn example(stop: tokio::sync::oneshot::Receiver<()>) -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new("http://127.0.0.1:8700")?;
/// let stop = async { drop(stop.await) };
/// Worker::new(client, "mail").concurrency(8).run(send_mail, stop).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Worker {
    client: Client,
    queue: String,
    name: String,
    concurrency: usize,
    batch: u32,
    ttr: Option<Duration>,
    wait: Duration,
    drain: Duration,
    contact: Contact,
}

impl Worker {
    /// A worker of that queue, with one hand.
    pub fn new(client: Client, queue: impl Into<String>) -> Worker {
        Worker {
            client,
            queue: queue.into(),
            name: format!("worker-{}", std::process::id()),
            concurrency: 1,
            batch: 100,
            ttr: None,
            wait: WAIT_MAX,
            drain: Duration::from_secs(30),
            contact: Contact::default(),
        }
    }

    /// Who it is, for people who look.
    pub fn name(mut self, name: impl Into<String>) -> Worker {
        self.name = name.into();
        self
    }

    /// How many jobs run at once; one if nothing is said.
    pub fn concurrency(mut self, jobs: usize) -> Worker {
        self.concurrency = jobs.max(1);
        self
    }

    /// How many tasks are taken at once, 1 to 1,000; 100 if nothing is said. Never more than there are free hands.
    pub fn batch(mut self, tasks: u32) -> Worker {
        self.batch = tasks.clamp(1, RESERVE_MAX);
        self
    }

    /// The time to run; as the tasks and their queue say if nothing is said. At half of it, more is asked for: it is
    /// how long a task of a worker that was lost is out of reach, not how long a job may take.
    pub fn ttr(mut self, ttr: Duration) -> Worker {
        self.ttr = Some(ttr);
        self
    }

    /// How long the server is made to wait for a task, up to 30 s.
    pub fn wait(mut self, wait: Duration) -> Worker {
        self.wait = wait.min(WAIT_MAX);
        self
    }

    /// How long jobs may go on after the stop; 30 s if nothing is said. What is not done by then goes back.
    pub fn drain(mut self, drain: Duration) -> Worker {
        self.drain = drain;
        self
    }

    /// Who is told when the server is lost, with the error, and when it is there again. A worker tries again by itself:
    /// this is for people who wonder why nothing happens.
    pub fn on_contact(mut self, tell: impl Fn(Result<(), Error>) + Send + Sync + 'static) -> Worker {
        self.contact = Contact(Some(Arc::new(tell)));
        self
    }

    /// Works until `stop` is ready, and then until what was begun is done or given back.
    ///
    /// A job whose time to run is lost is stopped where it waits: someone else may have its task by now. An error is
    /// one that no waiting mends, such as a wrong key.
    pub async fn run<F, J, R>(self, job: F, stop: impl Future<Output = ()>) -> Result<Summary, Error>
    where
        F: Fn(Job) -> J + Send + Sync + 'static,
        J: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Serialize + Send + 'static,
    {
        run::Run::new(self, job).until(stop).await
    }
}

/// Who is told whether the server can be reached.
#[derive(Clone, Default)]
struct Contact(Option<Arc<Tell>>);

type Tell = dyn Fn(Result<(), Error>) + Send + Sync;

impl Contact {
    fn tell(&self, news: Result<(), Error>) {
        if let Some(tell) = &self.0 {
            tell(news);
        }
    }
}

impl fmt::Debug for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Contact").field(&self.0.is_some()).finish()
    }
}

/// What a worker has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Jobs that failed, and are tried again as the retry policy says.
    pub failed: u64,
    /// Jobs that were given up.
    pub given_up: u64,
    /// Tasks that went back undone when the worker stopped.
    pub released: u64,
    /// Jobs whose time to run was lost: someone else does them.
    pub late: u64,
    /// Jobs that ended and could not be reported. They are done again.
    pub unreported: u64,
}

/// A task to be done.
#[derive(Clone, Debug)]
pub struct Job {
    task: ReservedTask,
}

impl Job {
    /// The task's id. It is the same for every attempt.
    pub fn id(&self) -> &str {
        &self.task.id
    }

    /// The first is 1. From the second on, the job may have been done before.
    pub fn attempt(&self) -> u32 {
        self.task.attempt
    }

    /// What the task carries, read from JSON. A task that carries nothing carries `null`.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(match self.payload_bytes() {
            [] => b"null",
            bytes => bytes,
        })
    }

    /// What the task carries, byte for byte.
    pub fn payload_bytes(&self) -> &[u8] {
        match (&self.task.payload, &self.task.payload_base64) {
            (Some(json), _) => json.text().as_bytes(),
            (None, Some(bytes)) => &bytes.0,
            (None, None) => &[],
        }
    }

    /// All that is known of the task.
    pub fn task(&self) -> &ReservedTask {
        &self.task
    }
}

/// Why a job failed. Any error becomes one with `?`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    error: String,
    delay: Option<Duration>,
    give_up: bool,
}

impl Failure {
    /// It failed for this reason, and is tried again as the retry policy says.
    pub fn new(error: impl fmt::Display) -> Failure {
        let error = error.to_string().chars().take(ERROR_CHARS_MAX).collect();
        Failure { error, delay: None, give_up: false }
    }

    /// Not again before that long.
    pub fn not_before(mut self, delay: Duration) -> Failure {
        self.delay = Some(delay);
        self
    }

    /// Not again at all.
    pub fn give_up(mut self) -> Failure {
        self.give_up = true;
        self
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Failure::new(text)
    }
}

/// How a job ended: with what came out, if that is more than nothing.
type Outcome = Result<Option<Json>, Failure>;

/// What came out, as it is reported.
fn written(result: &impl Serialize) -> Outcome {
    let json = Json::of(result)?;
    Ok(Some(json).filter(|json| json.text() != "null"))
}
