//! Cancels, runs, retries and moves tasks: one by one, or all that a filter finds.

use clap::Args;
use punctual_client::wire::{self, ByFilter, Cancelled, Changed, MoveByFilter, Patch, State, Time};
use punctual_client::{Client, Error};
use serde::Serialize;

use super::select::Filters;
use crate::cli::Outcome;
use crate::cli::ask::{Remote, print, print_json};
use crate::cli::named::named;
use crate::cli::trouble::Trouble;
use crate::cli::when::Chosen;
use crate::cli::words::{self, Here};

/// Which tasks are to be changed.
#[derive(Args)]
pub struct Change {
    /// Ids of tasks; without any, the tasks that the filters find
    #[arg(value_name = "ID", value_parser = named)]
    ids: Vec<String>,
    /// Only count what the filters find
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    filters: Filters,
    /// All tasks of the server
    #[arg(long, help_heading = "Which tasks")]
    all: bool,
}

/// Which tasks are to be cancelled.
#[derive(Args)]
pub struct Cancel {
    /// With --all: yes, cancel all of them
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    tasks: Change,
}

/// Which tasks are to be moved, and where to.
#[derive(Args)]
pub struct Move {
    /// When they are due, such as "tomorrow 9:00", "in 90m" or 2026-12-24T18:00+01:00
    #[arg(long, value_name = "TIME")]
    at: String,
    #[command(flatten)]
    tasks: Change,
}

/// What is done to each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Cancel,
    Run,
    Retry,
}

impl Verb {
    fn done(self) -> &'static str {
        match self {
            Verb::Cancel => "cancelled",
            Verb::Run => "due now",
            Verb::Retry => "to be tried again",
        }
    }
}

impl Change {
    /// Whether ids were given; if not, filters must be.
    fn is_by_id(&self) -> Result<bool, Trouble> {
        match (self.ids.is_empty(), self.filters.is_empty() && !self.all) {
            (false, true) if self.dry_run => {
                Err(Trouble::usage("--dry-run is for filters: an id finds one task"))
            }
            (false, true) => Ok(true),
            (true, false) => Ok(false),
            (true, true) => {
                Err(Trouble::usage("name the tasks by their ids, by filters such as --queue, or say --all"))
            }
            (false, false) => Err(Trouble::usage("name the tasks by their ids or by filters, not by both")),
        }
    }

    /// Does it to each.
    pub async fn run(self, remote: &Remote, verb: Verb) -> Outcome {
        let client = remote.client()?;
        if self.is_by_id()? {
            for id in &self.ids {
                match verb {
                    Verb::Cancel => {
                        remote.heard(client.cancel(id).await)?;
                        changed(remote, id, verb.done(), &Cancelled { state: State::Cancelled })?;
                    }
                    Verb::Run => changed(remote, id, verb.done(), &remote.heard(client.run(id).await)?)?,
                    Verb::Retry => changed(remote, id, verb.done(), &remote.heard(client.retry(id).await)?)?,
                }
            }
            return Ok(());
        }
        let sum = self.by_filter(remote, &client, verb, self.dry_run).await?;
        report(remote, &sum, self.dry_run, verb.done())
    }

    /// Does it to all that the filters find, page by page.
    async fn by_filter(
        &self,
        remote: &Remote,
        client: &Client,
        verb: Verb,
        dry_run: bool,
    ) -> Result<Changed, Trouble> {
        let filter = self.filters.query(&Here::system())?.into_filter();
        let mut by = ByFilter { filter, dry_run, ..ByFilter::default() };
        let mut sum = Changed::default();
        loop {
            let page = match verb {
                Verb::Cancel => client.cancel_by_filter(&by).await,
                Verb::Run => client.run_by_filter(&by).await,
                Verb::Retry => client.retry_by_filter(&by).await,
            };
            by.cursor = add_up(remote, &mut sum, page)?;
            if by.cursor.is_none() {
                return Ok(sum);
            }
        }
    }
}

impl Cancel {
    /// Cancels each; all of them only if that is really meant.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let Cancel { yes, tasks } = self;
        if tasks.is_by_id()? || !tasks.all || yes || tasks.dry_run {
            return tasks.run(remote, Verb::Cancel).await;
        }
        let found = tasks.by_filter(remote, &remote.client()?, Verb::Cancel, true).await?;
        let text = format!("this would cancel {}", words::count(found.matched, "task"));
        Err(Trouble::usage(text).hint("if that is what you want, say it with --yes"))
    }
}

impl Move {
    /// Moves each.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let client = remote.client()?;
        let by_id = self.tasks.is_by_id()?;
        let here = Here::system();
        let chosen = Chosen::understand("--at", &self.at, &here)?;
        chosen.echo(&here);
        let (at, delay) = (chosen.at(), chosen.delay());
        if by_id {
            return move_each(remote, &client, &self.tasks.ids, (at, delay)).await;
        }
        let filter = self.tasks.filters.query(&here)?.into_filter();
        let dry_run = self.tasks.dry_run;
        let mut by = MoveByFilter { filter, dry_run, at, delay, ..MoveByFilter::default() };
        let mut sum = Changed::default();
        loop {
            by.cursor = add_up(remote, &mut sum, client.move_by_filter(&by).await)?;
            if by.cursor.is_none() {
                return report(remote, &sum, dry_run, "moved");
            }
        }
    }
}

async fn move_each(
    remote: &Remote,
    client: &Client,
    ids: &[String],
    (at, delay): (Option<Time>, Option<wire::Span>),
) -> Outcome {
    let patch = Patch { at, delay, ..Patch::default() };
    for id in ids {
        changed(remote, id, "moved", &remote.heard(client.patch(id, &patch).await)?)?;
    }
    Ok(())
}

/// What became of one task.
fn changed(remote: &Remote, id: &str, done: &str, answer: &impl Serialize) -> Outcome {
    if remote.json { print_json(answer) } else { print(&format!("{id}  {done}")) }
}

/// Adds a page to what was done so far. Where to go on comes back.
fn add_up(
    remote: &Remote,
    sum: &mut Changed,
    page: Result<Changed, Error>,
) -> Result<Option<String>, Trouble> {
    let page = match page {
        Ok(page) => page,
        Err(error) if sum.changed > 0 => {
            let so_far =
                format!("{} changed before that; say it again to go on", words::count(sum.changed, "task"));
            return Err(Trouble::of(error, &remote.server).hint(so_far));
        }
        Err(error) => return Err(Trouble::of(error, &remote.server)),
    };
    sum.matched += page.matched;
    sum.changed += page.changed;
    sum.problems.extend(page.problems);
    sum.problems.truncate(100);
    Ok(page.next)
}

fn report(remote: &Remote, sum: &Changed, is_dry: bool, done: &str) -> Outcome {
    if remote.json {
        return print_json(sum);
    }
    for fault in &sum.problems {
        eprintln!("{}  {}", fault.id, fault.problem.detail);
    }
    let tasks = words::count(if is_dry { sum.matched } else { sum.changed }, "task");
    match (is_dry, sum.matched - sum.changed.min(sum.matched)) {
        (true, _) => print(&format!("{tasks} would be {done}.")),
        (false, 0) => print(&format!("{tasks} {done}.")),
        (false, left) => print(&format!("{tasks} {done}, {} left as they are.", words::grouped(left))),
    }
}
