//! `punctual restore`: puts a backup into a new data folder, on hold, and says what would fire.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use punctual::{EmbeddedStore, Found, HeldQueue, Page, Store, Target, Task, Timestamp};
use punctual_client::wire::Moment;
use serde_json::{Value, json};

use super::Outcome;
use super::ask::{Remote, print, print_json};
use super::folder::{progress, stopped_first};
use super::table::{Rows, maybe};
use super::trouble::{Exit, Trouble, of_folder};
use super::words::{self, Here};

/// So many of the tasks that would fire are named.
const NAMED_MAX: usize = 10;
const PAGE: usize = 1_000;
/// Results may be owed that were not scheduled yet: their queue is held too, also if there was none.
const HELD_BESIDES: [&str; 1] = ["callbacks"];

/// Puts a backup into a new data folder, on hold: nothing starts until you say so. Says what would.
#[derive(Args)]
pub struct Restore {
    /// The backup, or any data folder that no server uses
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The data folder to make
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Restore {
    /// Copies it back.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let bar = progress("copying");
        let copied = EmbeddedStore::restore(&self.from, &self.folder).await;
        bar.finish_and_clear();
        let copied = copied.map_err(|error| {
            stopped_first(
                &error,
                Some(&self.from),
                "restore from a backup, or from a folder that no server uses",
            )
        })?;
        let here = Here::system();
        let due = held_and_due(&self.folder, here.now).await?;
        if remote.json {
            return print_json(&due.json(copied.bytes, &self.folder));
        }
        let bytes = words::bytes(copied.bytes);
        print(&format!(
            "{bytes} restored to {}: {} waiting.",
            self.folder.display(),
            words::count(due.waiting, "task")
        ))?;
        if due.waiting > 0 {
            print(&due.queues(&here))?;
        }
        if due.due > 0 {
            let they_are = if due.due == 1 {
                "1 of them is".to_owned()
            } else {
                format!("{} of them are", words::grouped(due.due))
            };
            print(&format!("{they_are} due, and would start at once:\n{}", due.table(&here)))?;
            let left = due.due - due.first.len() as u64;
            if left > 0 {
                print(&format!("and {} more", words::grouped(left)))?;
            }
        }
        let folder = self.folder.display();
        print(&format!(
            "All queues are on hold. `punctual serve --data {folder}` starts nothing of them until\n`punctual hold release`, or `punctual queue resume` for one queue."
        ))
    }
}

/// What a server would do at once.
#[derive(Default)]
struct Due {
    waiting: u64,
    due: u64,
    first: Vec<DueTask>,
    by_queue: BTreeMap<String, OfQueue>,
}

/// What waits in one queue.
#[derive(Default)]
struct OfQueue {
    waiting: u64,
    due: u64,
    earliest: Option<Moment>,
}

struct DueTask {
    id: String,
    at: Moment,
    attempts: u32,
    target: String,
    lane: Option<String>,
    name: Option<String>,
}

impl Due {
    fn add(&mut self, queue: &str, task: &Task, now: Moment) {
        let at = Moment::from_micros(task.wake_at.as_micros());
        let is_due = at <= now && task.parked.is_none();
        let of_queue = self.by_queue.entry(queue.to_owned()).or_default();
        of_queue.waiting += 1;
        of_queue.due += u64::from(is_due);
        of_queue.earliest = Some(of_queue.earliest.map_or(at, |earliest| earliest.min(at)));
        self.waiting += 1;
        self.due += u64::from(is_due);
        if is_due && self.first.len() < NAMED_MAX {
            self.first.push(DueTask::of(task, at));
        }
    }

    fn json(&self, bytes: u64, to: &Path) -> Value {
        let first = self.first.iter().map(|task| json!({"id": task.id, "at": task.at, "name": task.name}));
        let queues = self.by_queue.iter().map(|(queue, of)| {
            json!({"queue": queue, "waiting": of.waiting, "due": of.due, "earliest": of.earliest})
        });
        json!({
            "bytes": bytes, "to": to, "waiting": self.waiting, "due": self.due, "on_hold": true,
            "queues": queues.collect::<Vec<_>>(), "first": first.collect::<Vec<_>>(),
        })
    }

    fn queues(&self, here: &Here) -> String {
        let mut rows = Rows::new(["QUEUE", "WAITING", "DUE", "EARLIEST"]);
        for (queue, of) in &self.by_queue {
            rows.push([
                queue.as_str().into(),
                words::grouped(of.waiting).into(),
                words::grouped(of.due).into(),
                maybe(of.earliest.map(|at| here.shown(at))),
            ]);
        }
        rows.shown("")
    }

    fn table(&self, here: &Here) -> String {
        let mut rows = Rows::new(["ID", "DUE", "TARGET", "ATTEMPTS", "LANE", "NAME"]);
        for task in &self.first {
            rows.push([
                task.id.as_str().into(),
                here.shown(task.at).into(),
                task.target.as_str().into(),
                task.attempts.to_string().into(),
                maybe(task.lane.as_ref()),
                maybe(task.name.as_ref()),
            ]);
        }
        rows.shown("")
    }
}

impl DueTask {
    fn of(task: &Task, at: Moment) -> DueTask {
        DueTask {
            id: task.id.to_string(),
            at,
            attempts: task.attempts,
            target: match &task.spec.target {
                Target::Worker => "worker".into(),
                // Without whose it is.
                Target::Destination(name) => name.rsplit('/').next().unwrap_or_default().to_owned(),
                Target::Handler(name) => name.to_string(),
            },
            lane: task.spec.lane.as_deref().map(Into::into),
            name: task.spec.name.as_deref().map(Into::into),
        }
    }
}

/// Puts everything on hold, and counts what waits.
async fn held_and_due(folder: &Path, now: Moment) -> Result<Due, Trouble> {
    let failed = |error: punctual::Error| Trouble::new(Exit::Folder, error);
    let store = Arc::new(EmbeddedStore::open(folder).await.map_err(|error| of_folder(&error))?);
    let queues = punctual::hold(store.clone(), Timestamp::from_micros(now.as_micros()), &HELD_BESIDES);
    let queues = queues.await.map_err(failed)?;
    let name_of = |task: &Task| queues.iter().find(|queue| queue.number == task.id.queue).map(called);
    let (mut due, mut from) = (Due::default(), None);
    loop {
        let page = store.list(&Default::default(), from, PAGE).await.map_err(|error| failed(error.into()))?;
        let page = Page::from(page);
        for found in page.tasks {
            if let Found::Live(task) = found {
                let queue = name_of(&task).unwrap_or_else(|| format!("number {}", task.id.queue.0));
                due.add(&queue, &task, now);
            }
        }
        from = page.next;
        if from.is_none() {
            return Ok(due);
        }
    }
}

/// What a queue is called, with its namespace unless that is the usual one.
fn called(queue: &HeldQueue) -> String {
    match &*queue.namespace {
        "default" => queue.name.to_string(),
        namespace => format!("{namespace}/{}", queue.name),
    }
}
