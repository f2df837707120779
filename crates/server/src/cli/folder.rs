//! `punctual verify` and `backup`: data folders, and a copy of everything that a server has.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use punctual::{Copied, EmbeddedStore, FolderError, FolderTrouble, Verified};
use serde_json::json;

use super::Outcome;
use super::ask::{Remote, print, print_json};
use super::received::{NotReceived, receive, refuse_full};
use super::trouble::{Exit, Trouble, of_folder, of_source};
use super::words;

/// Reads everything in a data folder that no server uses, and says what is wrong.
#[derive(Args)]
#[command(after_help = "Ends with 0 if all is well, 8 if anything is wrong.")]
pub struct Verify {
    /// The data folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Copies everything that a server has, while it runs; or, with two folders, one that no server uses.
#[derive(Args)]
#[command(override_usage = "punctual backup [OPTIONS] TO\n       punctual backup [OPTIONS] DIR TO")]
pub struct Backup {
    /// The copy: a folder that is empty or not there yet. With a data folder before it, that one is copied, and the
    /// server is not asked
    #[arg(value_name = "TO", num_args = 1..=2, required = true)]
    folders: Vec<PathBuf>,
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
        let found = verified(&self.folder).await.map_err(|error| {
            stopped_first(&error, Some(&self.folder), "to look at a server that runs, use `punctual check`")
        })?;
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
        match &self.folders[..] {
            [to] => of_server(remote, to).await,
            [folder, to, ..] => of_folder_at(remote, folder, to).await,
            [] => Err(Trouble::usage("name the folder that the copy goes to")),
        }
    }
}

async fn of_server(remote: &Remote, to: &Path) -> Outcome {
    refuse_full(to).map_err(Trouble::usage)?;
    let client = remote.client()?;
    let bar = progress("copying");
    let shown = bar.clone();
    let pieces = remote.heard(client.backup().await)?;
    let received = receive(pieces, to, move |bytes| shown.set_message(words::bytes(bytes))).await;
    bar.finish_and_clear();
    let bytes = received.map_err(|error| match error {
        NotReceived::Sent(error) => {
            Trouble::of(error, &remote.server).hint("remove what was copied, and try again")
        }
        NotReceived::Written(error) if error.kind() == io::ErrorKind::AlreadyExists => Trouble::usage(error),
        NotReceived::Written(error) => Trouble::new(Exit::Folder, format!("{}: {error}", to.display())),
    })?;
    if remote.json {
        return print_json(&json!({"bytes": bytes, "to": to}));
    }
    print(&format!("{} copied to {}.", words::bytes(bytes), to.display()))
}

async fn of_folder_at(remote: &Remote, folder: &Path, to: &Path) -> Outcome {
    let hint = format!("`punctual backup {}` asks the server for a copy while it runs", to.display());
    let store = EmbeddedStore::open_existing(folder)
        .await
        .map_err(|error| stopped_first(&error, Some(folder), &hint))?;
    let bar = progress("copying");
    let shown = bar.clone();
    let copied = store.backup(to, move |copied| {
        shown.set_message(format!("{}, {}", words::count(copied.rows, "row"), words::bytes(copied.bytes)));
    });
    let copied = copied.await;
    bar.finish_and_clear();
    let Copied { rows, bytes } = copied.map_err(|error| of_folder(&error))?;
    if remote.json {
        return print_json(&json!({"rows": rows, "bytes": bytes, "to": to}));
    }
    let (rows, bytes) = (words::count(rows, "row"), words::bytes(bytes));
    print(&format!("{rows}, {bytes} copied to {}.", to.display()))
}

/// What is wrong with a folder, and what to do if a server that runs has it. `source` is one that must be there already.
pub fn stopped_first(error: &FolderError, source: Option<&Path>, hint: &str) -> Trouble {
    let trouble = if source == Some(&error.path) { of_source(error) } else { of_folder(error) };
    match error.trouble {
        FolderTrouble::InUse { .. } => trouble.hint(hint),
        _ => trouble,
    }
}
