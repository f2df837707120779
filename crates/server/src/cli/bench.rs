//! `punctual bench`: how many tasks a server takes or hands out in a second, and how long it takes to answer.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use futures_util::{StreamExt, stream};
use hdrhistogram::Histogram;
use punctual::clock::Clock;
use punctual_client::wire::{Ack, AckItem, NewTask, Reserve, TaskQuery};
use punctual_client::{Client, Error};
use punctual_core::BootTime;
use serde_json::{Value, json};

use super::Outcome;
use super::ask::{Remote, print, print_json};
use super::folder::progress;
use super::named::named;
use super::serve::Signals;
use super::trouble::Trouble;
use super::words;

/// The longest answer that is told apart, in microseconds.
const ANSWER_MICROS_MAX: u64 = 60_000_000;
/// So many tasks are put in at once before they are taken out again.
const FILL_BATCH: u64 = 1_000;
const FILL_AT_ONCE: usize = 8;
/// Nothing that is listed comes due meanwhile.
const FAR_AHEAD: Duration = Duration::from_secs(365 * 24 * 3600);

/// Measures how many tasks a server takes or hands out in a second.
#[derive(Args)]
#[command(after_help = "The tasks stay in the queue: punctual queue purge bench --yes")]
pub struct Bench {
    /// How many requests are under way at once
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
    /// How long it takes
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// How many tasks are in a request
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    batch: u32,
    /// What is measured
    #[arg(long, value_enum, default_value_t = Mode::Enqueue)]
    mode: Mode,
    /// The queue that is used
    #[arg(long, value_name = "QUEUE", default_value = "bench", value_parser = named)]
    queue: String,
    /// How many bytes each task carries
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    payload: usize,
    /// So many tasks are put in first; with --mode reserve 100,000 if nothing is said, with --mode list 1,000,000
    #[arg(long, value_name = "N")]
    fill: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Mode {
    /// Tasks are put in
    Enqueue,
    /// Tasks are taken out and acknowledged
    Reserve,
    /// The first page of all that wait is listed, 100 to a page
    List,
}

impl Mode {
    fn fill(self) -> u64 {
        match self {
            Mode::Enqueue => 0,
            Mode::Reserve => 100_000,
            Mode::List => 1_000_000,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Mode::Enqueue => "enqueued",
            Mode::Reserve => "reserved and acknowledged",
            Mode::List => "listed",
        }
    }
}

/// What all connections share.
struct Run {
    client: Client,
    queue: String,
    batch: u32,
    task: NewTask,
    clock: Clock,
    is_over: AtomicBool,
    tasks: AtomicU64,
}

/// What one connection has seen.
struct Seen {
    answers: Histogram<u64>,
    /// When the last answer came.
    last: BootTime,
    failures: u64,
    first_failure: Option<Error>,
}

impl Bench {
    /// Measures, and shows what came out.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let client = remote.client_with(self.connections.into())?;
        remote.heard(client.is_ready().await)?;
        let payload = "x".repeat(self.payload.saturating_sub(2));
        let task = NewTask::new().payload(&payload).map_err(Trouble::usage)?;
        // What is listed must wait.
        let task = if self.mode == Mode::List { task.after(FAR_AHEAD) } else { task };
        let run = Arc::new(Run {
            client,
            queue: self.queue.clone(),
            batch: self.batch,
            task,
            clock: Clock::system(),
            is_over: AtomicBool::new(false),
            tasks: AtomicU64::new(0),
        });
        fill(&run, self.fill.unwrap_or(self.mode.fill()), remote).await?;
        let (seen, took) = self.measure(&run).await?;
        if let (Some(error), 0) = (seen.first_failure, run.tasks.load(Ordering::Relaxed)) {
            return Err(Trouble::of(error, &remote.server));
        }
        self.report(remote, &run, (&seen.answers, seen.failures), took)
    }

    async fn measure(&self, run: &Arc<Run>) -> Result<(Seen, Duration), Trouble> {
        let began = run.clock.now().boot;
        let mode = self.mode;
        let hands: Vec<_> = (0..self.connections).map(|_| tokio::spawn(work(run.clone(), mode))).collect();
        let bar = progress(match mode {
            Mode::Enqueue => "enqueueing",
            Mode::Reserve => "reserving",
            Mode::List => "listing",
        });
        let mut signals = Signals::listen()?;
        let mut before = 0;
        for second in 1..=self.seconds {
            if tokio::time::timeout(Duration::from_secs(1), signals.next()).await.is_ok() {
                break;
            }
            let tasks = run.tasks.load(Ordering::Relaxed);
            let rate = words::grouped(tasks - before);
            bar.set_message(format!(
                "{second}/{} s  {rate} tasks/s  {} in all",
                self.seconds,
                words::grouped(tasks)
            ));
            if hands.iter().all(|hand| hand.is_finished()) {
                break;
            }
            before = tasks;
        }
        run.is_over.store(true, Ordering::Relaxed);
        let mut all = Seen::new();
        for hand in hands {
            let seen = hand.await.map_err(|died| Trouble::failed(format!("a connection died: {died}")))?;
            all.answers.add(&seen.answers).ok();
            all.last = all.last.max(seen.last);
            all.failures += seen.failures;
            all.first_failure = all.first_failure.or(seen.first_failure);
        }
        bar.finish_and_clear();
        let took = all.last.since(began).max(Duration::from_millis(1));
        Ok((all, took))
    }

    fn report(
        &self,
        remote: &Remote,
        run: &Run,
        (answers, failures): (&Histogram<u64>, u64),
        took: Duration,
    ) -> Outcome {
        let tasks = run.tasks.load(Ordering::Relaxed);
        let rate = tasks as f64 / took.as_secs_f64();
        let marks = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];
        let marks = marks.map(|(name, part)| (name, answers.value_at_quantile(part)));
        if remote.json {
            let latency: serde_json::Map<String, Value> =
                marks.iter().map(|(name, micros)| (format!("{name}_us"), json!(micros))).collect();
            return print_json(&json!({
                "mode": format!("{:?}", self.mode).to_lowercase(), "tasks": tasks, "seconds": took.as_secs_f64(),
                "tasks_per_second": rate, "requests": answers.len(), "failures": failures, "latency": latency,
                "connections": self.connections, "batch": self.batch, "payload_bytes": self.payload,
            }));
        }
        let marks = marks.map(|(name, micros)| format!("{name} {}", millis(micros)));
        let verb = self.mode.verb();
        let failed = if failures == 0 {
            String::new()
        } else {
            format!("\n{} failed", words::count(failures, "request"))
        };
        print(&format!(
            "{} {verb} in {:.1} s: {} tasks/s
{} connections, {} to a request, {} each
answers  {}{failed}",
            words::count(tasks, "task"),
            took.as_secs_f64(),
            words::grouped(rate as u64),
            self.connections,
            words::count(self.batch.into(), "task"),
            words::bytes(self.payload as u64),
            marks.join("  "),
        ))
    }
}

fn millis(micros: u64) -> String {
    format!("{:.1} ms", micros as f64 / 1_000.0)
}

/// Puts in what is to be taken out.
async fn fill(run: &Run, tasks: u64, remote: &Remote) -> Outcome {
    let bar = progress("putting tasks in");
    let batches = (0..tasks.div_ceil(FILL_BATCH)).map(|n| (tasks - n * FILL_BATCH).min(FILL_BATCH));
    let puts = stream::iter(batches).map(async |size| {
        let batch = vec![run.task.clone(); size as usize];
        run.client.creating(&run.queue).minimal().many(&batch).await.map(|_| size)
    });
    let (mut puts, mut left) = (pin!(puts.buffer_unordered(FILL_AT_ONCE)), tasks);
    while let Some(put) = puts.next().await {
        left -= remote.heard(put)?;
        bar.set_message(format!("{} left", words::grouped(left)));
    }
    bar.finish_and_clear();
    Ok(())
}

impl Seen {
    fn new() -> Seen {
        let answers =
            Histogram::new_with_bounds(1, ANSWER_MICROS_MAX, 3).expect("the bounds are constant and right");
        Seen { answers, last: BootTime::default(), failures: 0, first_failure: None }
    }
}

/// One connection: a request after the other.
async fn work(run: Arc<Run>, mode: Mode) -> Seen {
    let mut seen = Seen::new();
    while !run.is_over.load(Ordering::Relaxed) {
        let began = run.clock.now().boot;
        let done = match mode {
            Mode::Enqueue => run.enqueue().await,
            Mode::Reserve => run.reserve().await,
            Mode::List => run.list().await,
        };
        match done {
            // There is nothing left to take out.
            Ok(0) => return seen,
            Ok(tasks) => {
                seen.last = run.clock.now().boot;
                let micros = seen.last.since(began).as_micros();
                seen.answers.saturating_record(u64::try_from(micros).unwrap_or(u64::MAX));
                run.tasks.fetch_add(tasks, Ordering::Relaxed);
            }
            Err(error) => {
                seen.failures += 1;
                let is_passing = matches!(error, Error::Busy { .. });
                seen.first_failure.get_or_insert(error);
                if !is_passing {
                    return seen;
                }
            }
        }
    }
    seen
}

impl Run {
    async fn enqueue(&self) -> Result<u64, Error> {
        let creating = self.client.creating(&self.queue).minimal();
        if self.batch == 1 {
            creating.one_id(&self.task).await?;
            return Ok(1);
        }
        let tasks = vec![self.task.clone(); self.batch as usize];
        let results = creating.many(&tasks).await?;
        Ok(results.iter().filter(|result| result.id().is_ok()).count() as u64)
    }

    async fn list(&self) -> Result<u64, Error> {
        let query = TaskQuery { queue: Some(self.queue.clone()), ..TaskQuery::default() };
        Ok(self.client.list(&query).await?.tasks.len() as u64)
    }

    /// The time for both is the time of an answer.
    async fn reserve(&self) -> Result<u64, Error> {
        let reserve = Reserve { max: Some(self.batch), ..Reserve::default() };
        let tasks = self.client.reserve(&self.queue, &reserve).await?;
        if tasks.is_empty() {
            return Ok(0);
        }
        let acks: Vec<AckItem> =
            tasks.into_iter().map(|task| Ack { token: task.token, result: None }.of(task.id)).collect();
        let results = self.client.ack_many(&self.queue, &acks).await?;
        Ok(results.iter().filter(|result| result.problem.is_none()).count() as u64)
    }
}
