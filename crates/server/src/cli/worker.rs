//! `punctual worker`: does the tasks of a queue with a command, or posts them to a local URL.

mod post;
mod program;

use clap::Args;
use punctual_client::wire::Span;
use punctual_client::{Client, Error, Worker as Loop};
use serde_json::json;

use super::Outcome;
use super::ask::{Remote, print, print_json};
use super::named::named;
use super::serve::until_told;
use super::trouble::Trouble;
use super::words;

/// Does the tasks of a queue with a command, or posts them to a local URL.
#[derive(Args)]
#[command(
    after_help = "The command gets the payload on stdin, and in its environment PUNCTUAL_TASK, PUNCTUAL_ATTEMPT,
PUNCTUAL_TOKEN and PUNCTUAL_QUEUE, and TRACEPARENT if the task was made in a trace. What it prints
is the result. Its exit code says how it went:
  0    it is done
  75   it failed for now: again as the retry policy says (EX_TEMPFAIL)
  100  give it up
  any other: it failed; again as the retry policy says, with the last lines of stderr as the error

Example:
  punctual worker --queue thumbnails --concurrency 4 -- ./make-thumbnail --size 200"
)]
pub struct Worker {
    /// The queue
    #[arg(long, value_name = "QUEUE", value_parser = named)]
    queue: String,
    /// How many tasks at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: u32,
    /// Who it is, for people who look
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The time to run that is asked for, and asked for again as long as the command runs
    #[arg(long, value_name = "DURATION")]
    ttr: Option<Span>,
    /// How long commands may go on after the stop
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    drain: Span,
    /// Post each payload here, in place of a command: 2xx is done, 410 gives up, others are tried again
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    post: Option<String>,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Worker {
    /// Works until SIGTERM or SIGINT.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let concurrency = usize::try_from(self.concurrency).unwrap_or(usize::MAX);
        let client = remote.client_with(concurrency.max(32))?;
        let note = missing(&client, &self.queue).await;
        let mut work = Loop::new(client, &self.queue).concurrency(concurrency).drain(self.drain.into());
        let server = remote.server.clone();
        work = work.on_contact(move |news| tell(news, &server));
        if let Some(name) = &self.name {
            work = work.name(name);
        }
        if let Some(ttr) = self.ttr {
            work = work.ttr(ttr.into());
        }
        let queue = &self.queue;
        let goes_on = format!("what runs may go on for {}", words::length(self.drain.into()));
        let summary = match self.post {
            Some(url) => {
                let target = post::Target::new(&url)?;
                eprintln!("posting the tasks of {queue} to {url}; Ctrl-C stops{note}");
                let job = move |job| target.clone().post(job);
                until_told(&goes_on, |told| work.run(job, async { drop(told.await) })).await?
            }
            None => {
                let program = program::Program::new(self.command)?;
                eprintln!("doing the tasks of {queue} with {program}; Ctrl-C stops{note}");
                let job = move |job| program.clone().run(job);
                until_told(&goes_on, |told| work.run(job, async { drop(told.await) })).await?
            }
        };
        let done = summary.map_err(|error| Trouble::of(error, &remote.server))?;
        if remote.json {
            return print_json(&json!({
                "succeeded": done.succeeded, "failed": done.failed, "given_up": done.given_up,
                "released": done.released, "late": done.late, "unreported": done.unreported,
            }));
        }
        let mut parts = vec![format!("{} succeeded", words::grouped(done.succeeded))];
        let others = [
            (done.failed, "failed"),
            (done.given_up, "given up"),
            (done.released, "given back"),
            (done.late, "late"),
            (done.unreported, "not reported (they are done again)"),
        ];
        parts.extend(
            others
                .into_iter()
                .filter(|(n, _)| *n > 0)
                .map(|(n, what)| format!("{} {what}", words::grouped(n))),
        );
        print(&format!("Tasks: {}.", parts.join(", ")))
    }
}

/// Says why nothing happens while there is no server.
fn tell(news: Result<(), Error>, server: &str) {
    match news {
        Ok(()) => eprintln!("{server} is there again"),
        Err(error) => eprintln!("{}, trying again", Trouble::of(error, server).text()),
    }
}

/// What to say of a queue that is not there: its first task will make it, unless the name is mistyped. A key that may
/// not look gets no such note.
async fn missing(client: &Client, queue: &str) -> String {
    match client.queue(queue).await {
        Err(error) if error.code() == Some("queue_not_found") => {
            format!("\nthere is no queue {queue} yet: waiting for its first task (is the name right?)")
        }
        _ => String::new(),
    }
}
