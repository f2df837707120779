//! `punctual verify`, `backup`, `restore`: data folders that no server uses.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use punctual::{Copied, EmbeddedStore, FolderError, FolderTrouble, Found, Page, Store, Target, Verified};
use punctual_client::wire::Moment;
use serde_json::json;

use super::Outcome;
use super::ask::{Remote, print, print_json};
use super::table::{Rows, maybe};
use super::trouble::{Exit, Trouble, of_folder};
use super::words::{self, Here};

/// So many of the tasks that would fire are named.
const NAMED_MAX: usize = 10;
const PAGE: usize = 1_000;

/// Reads everything in a data folder that no server uses, and says what is wrong.
#[derive(Args)]
#[command(after_help = "Ends with 0 if all is well, 8 if anything is wrong.")]
pub struct Verify {
    /// The data folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Copies a data folder that no server uses.
#[derive(Args)]
pub struct Backup {
    /// The data folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The copy: a folder that is empty or not there yet
    #[arg(value_name = "TO")]
    to: PathBuf,
}

/// Puts a backup into a new data folder, and says what would fire.
#[derive(Args)]
pub struct Restore {
    /// The backup, or any data folder that no server uses
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The data folder to make
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// A line that shows that something goes on, for terminals only.
pub fn progress(what: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {prefix} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    bar.set_style(style);
    bar.set_prefix(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Checks a folder.
pub async fn verified(folder: &Path) -> Result<Verified, FolderError> {
    let bar = progress("reading");
    let shown = bar.clone();
    let found = punctual::verify(folder, move |report| {
        shown.set_message(words::count(report.rows, "row"));
    });
    let found = found.await;
    bar.finish_and_clear();
    found
}

impl Verify {
    /// Checks it.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let found = verified(&self.folder)
            .await
            .map_err(|error| stopped_first(&error, "to look at a server that runs, use `punctual check`"))?;
        let report = &found.rows;
        if remote.json {
            print_json(&json!({
                "rows": report.rows, "live": report.live, "ended": report.ended,
                "problems": report.problems, "described": report.described,
            }))?;
        } else {
            let rows = words::count(report.rows, "row");
            let (live, ended) = (words::count(report.live, "task"), words::grouped(report.ended));
            print(&format!("{rows} read: {live} live, {ended} ended."))?;
        }
        if report.problems == 0 {
            return if remote.json { Ok(()) } else { print("All is well.") };
        }
        let named = report.described.iter().map(|what| format!("\n  {what}")).collect::<String>();
        let text = format!("{} found:{named}", words::count(report.problems, "problem"));
        Err(Trouble::new(Exit::Folder, text)
            .hint("restore a backup, and keep this folder for whoever looks into it"))
    }
}

impl Backup {
    /// Copies it.
    pub async fn run(self, remote: &Remote) -> Outcome {
        if !self.folder.is_dir() {
            // Opening it would make it.
            let text = format!("there is no data folder at {}", self.folder.display());
            return Err(Trouble::new(Exit::NotThere, text));
        }
        let store = EmbeddedStore::open(&self.folder).await.map_err(|error| {
            stopped_first(
                &error,
                "a server cannot copy its folder while it runs yet; stop it, copy, start it again",
            )
        })?;
        let bar = progress("copying");
        let shown = bar.clone();
        let copied = store.backup(&self.to, move |copied| {
            shown.set_message(format!(
                "{}, {}",
                words::count(copied.rows, "row"),
                words::bytes(copied.bytes)
            ));
        });
        let copied = copied.await;
        bar.finish_and_clear();
        let Copied { rows, bytes } = copied.map_err(|error| of_folder(&error))?;
        if remote.json {
            return print_json(&json!({"rows": rows, "bytes": bytes, "to": self.to}));
        }
        let (rows, bytes) = (words::count(rows, "row"), words::bytes(bytes));
        print(&format!("{rows}, {bytes} copied to {}.", self.to.display()))
    }
}

impl Restore {
    /// Copies it back.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let bar = progress("copying");
        let copied = EmbeddedStore::restore(&self.from, &self.folder).await;
        bar.finish_and_clear();
        let copied = copied.map_err(|error| {
            stopped_first(&error, "restore from a backup, or from a folder that no server uses")
        })?;
        let here = Here::system();
        let due = due_in(&self.folder, here.now).await?;
        if remote.json {
            let first: Vec<_> = due
                .first
                .iter()
                .map(|task| json!({"id": task.id, "at": task.at.to_string(), "name": task.name}))
                .collect();
            return print_json(
                &json!({"bytes": copied.bytes, "to": self.folder, "waiting": due.waiting, "due": due.due, "first": first}),
            );
        }
        let folder = self.folder.display();
        print(&format!(
            "{} restored to {folder}: {} waiting.",
            words::bytes(copied.bytes),
            words::count(due.waiting, "task")
        ))?;
        if due.due == 0 {
            return print("None of them is due: nothing fires at once when a server starts on it.");
        }
        let (they_are, start) = if due.due == 1 {
            ("1 of them is".to_owned(), "starts")
        } else {
            (format!("{} of them are", words::grouped(due.due)), "start")
        };
        print(&format!("{they_are} due, and {start} as soon as a server does:\n{}", due.table(&here)))?;
        let left = due.due - due.first.len() as u64;
        if left > 0 { print(&format!("and {} more", words::grouped(left))) } else { Ok(()) }
    }
}

/// A server that runs has the folder.
pub fn stopped_first(error: &FolderError, hint: &str) -> Trouble {
    let trouble = of_folder(error);
    match error.trouble {
        FolderTrouble::InUse { .. } => trouble.hint(hint),
        _ => trouble,
    }
}

/// What a server would do at once.
#[derive(Default)]
struct Due {
    waiting: u64,
    due: u64,
    first: Vec<DueTask>,
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

/// Counts what waits in a folder, and what of it is due.
async fn due_in(folder: &Path, now: Moment) -> Result<Due, Trouble> {
    let store = EmbeddedStore::open(folder).await.map_err(|error| of_folder(&error))?;
    let (mut due, mut from) = (Due::default(), None);
    loop {
        let page = store.list(&Default::default(), from, PAGE).await;
        let page = Page::from(page.map_err(|error| Trouble::new(Exit::Folder, error))?);
        for found in page.tasks {
            let Found::Live(task) = found else { continue };
            due.waiting += 1;
            let at = Moment::from_micros(task.wake_at.as_micros());
            if at > now || task.parked.is_some() {
                continue;
            }
            due.due += 1;
            if due.first.len() < NAMED_MAX {
                due.first.push(DueTask {
                    id: task.id.to_string(),
                    at,
                    attempts: task.attempts,
                    target: match &task.spec.target {
                        Target::Worker => "worker".into(),
                        other => words::shortened(&format!("{other:?}"), 60),
                    },
                    lane: task.spec.lane.as_deref().map(Into::into),
                    name: task.spec.name.as_deref().map(Into::into),
                });
            }
        }
        from = page.next;
        if from.is_none() {
            return Ok(due);
        }
    }
}
