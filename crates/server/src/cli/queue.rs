//! `punctual queue`: settings of queues, and how they stand.

mod set;

use clap::Subcommand;
use punctual_client::Client;
use punctual_client::wire::{
    ByFilter, Filter, PageQuery, Queue as WireQueue, QueuePage, QueueStats, QueueTarget, Rate,
};
use serde_json::json;

use super::Outcome;
use super::ask::{Remote, print, print_json};
use super::named::named;
use super::table::{Rows, maybe, state};
use super::trouble::{Exit, Trouble};
use super::words::{self, Here};

/// Settings of queues, and how they stand.
#[derive(Subcommand)]
pub enum Queue {
    /// Makes a queue, or changes its settings
    Set(Box<set::Set>),
    /// Shows the settings of a queue
    Get {
        /// The queue
        #[arg(value_parser = named)]
        queue: String,
    },
    /// Lists queues
    List,
    /// Starts nothing more of a queue; what runs goes on
    Pause {
        /// The queue
        #[arg(value_parser = named)]
        queue: String,
    },
    /// Starts the tasks of a queue again
    Resume {
        /// The queue
        #[arg(value_parser = named)]
        queue: String,
    },
    /// Cancels all that waits in a queue
    Purge {
        /// The queue
        #[arg(value_parser = named)]
        queue: String,
        /// Yes, cancel it all
        #[arg(long)]
        yes: bool,
    },
    /// Counts the tasks of a queue
    Stats {
        /// The queue
        #[arg(value_parser = named)]
        queue: String,
    },
    /// Deletes a queue that no task waits in
    Delete {
        /// The queue
        #[arg(value_parser = named)]
        queue: String,
    },
}

impl Queue {
    /// Does it.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let client = remote.client()?;
        match self {
            Queue::Set(set) => set.run(remote).await,
            Queue::Get { queue } => remote.show(&remote.heard(client.queue(&queue).await)?, details_of),
            Queue::List => list(remote).await,
            Queue::Pause { queue } => {
                let paused = remote.heard(client.pause_queue(&queue).await)?;
                remote.show(&paused, |_| {
                    format!("{queue} is paused: nothing starts until `punctual queue resume {queue}`.")
                })
            }
            Queue::Resume { queue } => remote
                .show(&remote.heard(client.resume_queue(&queue).await)?, |_| format!("{queue} goes on.")),
            Queue::Purge { queue, yes } => purge(remote, &queue, yes).await,
            Queue::Stats { queue } => {
                let stats = remote.heard(client.queue_stats(&queue).await)?;
                remote.show(&stats, |stats| stats_of(stats, &Here::system()))
            }
            Queue::Delete { queue } => {
                remote.heard(client.delete_queue(&queue).await)?;
                if remote.json { print_json(&json!({})) } else { print(&format!("{queue} is deleted.")) }
            }
        }
    }
}

async fn list(remote: &Remote) -> Outcome {
    let client = remote.client()?;
    let mut all = QueuePage::default();
    let mut query = PageQuery { limit: Some(1000), cursor: None };
    loop {
        let page = remote.heard(client.queues(&query).await)?;
        all.queues.extend(page.queues);
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    remote.show(&all, |all| {
        let mut rows =
            Rows::new(["QUEUE", "", "TARGET", "TIMEOUT", "CONCURRENCY", "RATE", "RETRY", "WHEN EXHAUSTED"]);
        for queue in &all.queues {
            rows.push([
                queue.name.as_str().into(),
                if queue.paused { "paused" } else { "" }.into(),
                target_of(&queue.target).into(),
                words::length(queue.timeout.into()).into(),
                maybe(queue.concurrency),
                maybe(queue.rate.map(rate_of)),
                words::json(&queue.retry).into(),
                words::json(&queue.on_exhausted).into(),
            ]);
        }
        rows.shown("No queues. The first task makes its queue, and so does `punctual queue set`.")
    })
}

async fn purge(remote: &Remote, queue: &str, yes: bool) -> Outcome {
    let client = remote.client()?;
    if !yes {
        let waiting = waiting_in(remote, &client, queue).await?;
        if waiting == 0 {
            refuse_missing(remote, &client, queue).await?;
        }
        let text = format!("this would cancel what waits in {queue}: {}", words::count(waiting, "task"));
        return Err(Trouble::usage(text)
            .hint(format!("if that is what you want: punctual queue purge {queue} --yes")));
    }
    let purged = remote.heard(client.purge_queue(queue).await)?;
    remote.show(&purged, |purged| {
        let left = purged.matched.saturating_sub(purged.changed);
        let left = if left == 0 {
            String::new()
        } else {
            format!(", {} left as they are (they run)", words::grouped(left))
        };
        format!("{} cancelled{left}.", words::count(purged.changed, "task"))
    })
}

/// Nothing waits in a queue that is not there either. A key that may not look hears nothing of it.
async fn refuse_missing(remote: &Remote, client: &Client, queue: &str) -> Outcome {
    match remote.heard(client.queue(queue).await) {
        Err(trouble) if is_missing(&trouble) => Err(trouble),
        _ => Ok(()),
    }
}

/// How many tasks wait in a queue.
async fn waiting_in(remote: &Remote, client: &Client, queue: &str) -> Result<u64, Trouble> {
    let filter = Filter { queue: Some(queue.to_owned()), ..Filter::default() };
    let mut by = ByFilter { filter, dry_run: true, ..ByFilter::default() };
    let mut waiting = 0;
    loop {
        let page = remote.heard(client.cancel_by_filter(&by).await)?;
        waiting += page.matched;
        by.cursor = page.next;
        if by.cursor.is_none() {
            return Ok(waiting);
        }
    }
}

fn stats_of(stats: &QueueStats, here: &Here) -> String {
    let mut rows = Rows::new(["", ""]);
    if let Some(waiting) = stats.waiting {
        rows.push(["waiting".into(), words::grouped(waiting).into()]);
    }
    for (name, tasks) in &stats.tasks {
        rows.push([state(*name), words::grouped(*tasks).into()]);
    }
    if let Some(at) = stats.next_at {
        rows.push(["next".into(), here.shown(at).into()]);
    }
    if let Some(lateness) = stats.lateness.filter(|lateness| *lateness > Default::default()) {
        rows.push(["late by".into(), words::length(lateness.into()).into()]);
    }
    let paused = if stats.paused { " (paused)" } else { "" };
    format!("{}{paused}\n{}", stats.queue, rows.pairs())
}

/// All settings of a queue.
fn details_of(queue: &WireQueue) -> String {
    let mut rows = Rows::new(["", ""]);
    let mut say = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            rows.push([name.into(), value.into()]);
        }
    };
    say("queue", Some(queue.name.clone()));
    say("paused", Some(yes_or_no(queue.paused)));
    say("target", Some(target_of(&queue.target)));
    say("retry", Some(words::json(&queue.retry)));
    say("when exhausted", Some(words::json(&queue.on_exhausted)));
    say("priority", Some(queue.priority.to_string()));
    say("pinned", Some(yes_or_no(queue.pinned)));
    say("concurrency", Some(queue.concurrency.map_or("no limit".into(), |limit| limit.to_string())));
    say("rate", Some(queue.rate.map_or("no limit".into(), rate_of)));
    say("timeout", Some(words::length(queue.timeout.into())));
    say("exclusive", Some(yes_or_no(queue.exclusive)));
    say("past", Some(words::json(&queue.past)));
    let kept = |span: Option<punctual_client::wire::Span>| span.map(|span| words::length(span.into()));
    say("keeps ended", kept(queue.retention.succeeded));
    say("keeps dead", kept(queue.retention.dead));
    say("keeps keys", kept(queue.retention.identities));
    say("secrets", Some(queue.secrets.to_string()));
    queue.public_keys.iter().for_each(|key| say("public key", Some(key.clone())));
    say("success", queue.success.codes.as_ref().map(|codes| codes.join(" ")));
    say("gives up at", queue.success.give_up.as_ref().map(|codes| codes.join(" ")));
    say("409 means done", queue.success.conflict.as_ref().map(words::json));
    rows.pairs()
}

fn yes_or_no(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.into()
}

fn target_of(target: &QueueTarget) -> String {
    match target {
        QueueTarget::Worker => "worker".into(),
        QueueTarget::Http(http) => format!("{} {}", http.method.as_deref().unwrap_or("POST"), http.url),
        QueueTarget::Handler(name) => format!("handler {name}"),
    }
}

fn rate_of(rate: Rate) -> String {
    let per = words::length(rate.per.into());
    let per = if matches!(&*per, "1s" | "1m" | "1h" | "1d") { &per[1..] } else { &per };
    let burst = rate.burst.filter(|burst| *burst != rate.starts).map(|burst| format!(", {burst} at once"));
    format!("{}/{per}{}", rate.starts, burst.unwrap_or_default())
}

/// Whether a queue is not there.
fn is_missing(trouble: &Trouble) -> bool {
    trouble.code() == punctual_client::wire::code::QUEUE_NOT_FOUND && trouble.exit() == Exit::NotThere
}
