//! `punctual task`: adds tasks, looks at them, and changes them.

mod add;
mod add_lines;
mod change;
mod select;
mod show;

use std::time::Duration;

use clap::{Args, Subcommand};
use futures_util::TryStreamExt;
use punctual_client::Client;
use punctual_client::wire::{Span, State, TaskPage, TaskQuery, TaskResult};

use super::Outcome;
use super::ask::Remote;
use super::layout;
use super::named::named;
use super::trouble::{Exit, Trouble};
use super::words::{self, Here};
use select::Filters;

pub use add::{header, retry};
use show::table_of;

/// The longest that one request may wait.
const WAIT_STEP: Duration = Duration::from_secs(30);

/// Adds tasks, looks at them, and changes them.
#[derive(Subcommand)]
pub enum Task {
    /// Adds a task and prints its id
    Add(Box<add::Add>),
    /// Shows a task with all it carries
    Get {
        /// The task's id
        #[arg(value_parser = named)]
        id: String,
    },
    /// Lists tasks
    List(List),
    /// Cancels tasks, by id or by filter
    Cancel(change::Cancel),
    /// Moves tasks to another time, by id or by filter
    Move(change::Move),
    /// Makes tasks due now, by id or by filter
    Run(change::Change),
    /// Shows how a task ended
    #[command(
        after_help = "Ends with 0 if it succeeded, 5 if it is dead, cancelled or expired, 6 if it has not ended."
    )]
    Result {
        /// The task's id
        #[arg(value_parser = named)]
        id: String,
        /// Wait so long for its end
        #[arg(long, value_name = "DURATION")]
        wait: Option<Span>,
    },
    /// Tries dead or blocked tasks again, by id or by filter
    Retry(change::Change),
}

impl Task {
    /// Does it.
    pub async fn run(self, remote: &Remote) -> Outcome {
        match self {
            Task::Add(add) => add.run(remote).await,
            Task::Get { id } => get(remote, &id).await,
            Task::List(list) => list.run(remote).await,
            Task::Cancel(tasks) => tasks.run(remote).await,
            Task::Run(tasks) => tasks.run(remote, change::Verb::Run).await,
            Task::Retry(tasks) => tasks.run(remote, change::Verb::Retry).await,
            Task::Move(tasks) => tasks.run(remote).await,
            Task::Result { id, wait } => {
                result(remote, &id, wait.map_or(Duration::ZERO, Duration::from)).await
            }
        }
    }
}

async fn get(remote: &Remote, id: &str) -> Outcome {
    let task = remote.heard(remote.client()?.full_task(id).await)?;
    remote.show(&task, |task| show::details_of(task, &Here::system()))
}

/// Lists tasks.
#[derive(Args)]
pub struct List {
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Where to go on, as the page before said
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Every page, not only the first
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    all: bool,
    #[command(flatten)]
    filters: Filters,
}

impl List {
    async fn run(self, remote: &Remote) -> Outcome {
        let here = Here::system();
        let mut query = self.filters.query(&here)?;
        let client = remote.client()?;
        let page = if self.all {
            query.limit = Some(1000);
            let tasks = remote.heard(client.tasks(query).try_collect().await)?;
            TaskPage { tasks, next: None }
        } else {
            query.cursor = self.cursor;
            page_of(remote, &client, query, self.limit).await?
        };
        remote.show(&page, |page| table_of(&page.tasks, &here))?;
        if let (Some(next), false) = (&page.next, remote.json) {
            eprintln!("There are more: --cursor {next}, or --all");
        }
        Ok(())
    }
}

/// As many tasks as were asked for. The server looks at so many rows and no more, and a page of it may be short.
async fn page_of(
    remote: &Remote,
    client: &Client,
    mut query: TaskQuery,
    limit: u32,
) -> Result<TaskPage, Trouble> {
    let mut page = TaskPage::default();
    loop {
        let left = limit.saturating_sub(u32::try_from(page.tasks.len()).unwrap_or(u32::MAX));
        if left == 0 {
            return Ok(page);
        }
        query.limit = Some(left);
        let more = remote.heard(client.list(&query).await)?;
        page.tasks.extend(more.tasks);
        page.next.clone_from(&more.next);
        query.cursor = more.next;
        if query.cursor.is_none() {
            return Ok(page);
        }
    }
}

async fn result(remote: &Remote, id: &str, wait: Duration) -> Outcome {
    let client = remote.client()?;
    let mut left = wait;
    let result: TaskResult = loop {
        let step = left.min(WAIT_STEP);
        let result = remote.heard(client.result(id, step).await)?;
        left -= step;
        if result.state.has_ended() || left.is_zero() {
            break result;
        }
    };
    let state = result.state;
    remote.show(&result, |result| result.result.as_ref().map(layout::on_one_line).unwrap_or_default())?;
    let why = result.error.map(|error| format!(": {error}")).unwrap_or_default();
    match state {
        State::Succeeded => Ok(()),
        State::Blocked => {
            let trouble = Trouble::new(Exit::NotEnded, format!("the task is blocked{why}"));
            Err(trouble.hint(format!("mend the cause, then `punctual task retry {id}`")))
        }
        _ if state.has_ended() => Err(Trouble::new(Exit::NotSucceeded, format!("the task is {state}{why}"))),
        _ if wait.is_zero() => {
            let trouble = Trouble::new(Exit::NotEnded, format!("the task has not ended: it is {state}"));
            Err(trouble.hint("wait for it with --wait 5m"))
        }
        _ => {
            let wait = words::length(wait);
            Err(Trouble::new(Exit::NotEnded, format!("the task has not ended after {wait}: it is {state}")))
        }
    }
}
