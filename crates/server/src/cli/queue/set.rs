//! `punctual queue set`: settings from flags. What is not named stays as it is.

use clap::Args;
use punctual_client::wire::{
    Change, Conflict, HttpTarget, OnExhausted, Past, QueueSettings, QueueTarget, Rate, Retention, Span,
    Success,
};

use super::{details_of, is_missing};
use crate::cli::Outcome;
use crate::cli::ask::Remote;
use crate::cli::named::named;
use crate::cli::task::retry;
use crate::cli::trouble::Trouble;

/// Makes a queue, or changes its settings. What is not named stays as it is; `default` puts a setting back.
#[derive(Args)]
pub struct Set {
    /// The queue
    #[arg(value_parser = named)]
    queue: String,
    /// Put everything that is not named back to its default
    #[arg(long)]
    replace: bool,
    /// Who does its tasks: worker, a URL, or handler:NAME
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// A header for the target, as curl has it; may be repeated
    #[arg(long, value_name = "HEADER", requires = "target", value_parser = crate::cli::task::header)]
    header: Vec<(String, String)>,
    /// The method for the target
    #[arg(long, value_name = "METHOD", requires = "target")]
    method: Option<String>,
    /// default, webhooks, pagerduty, schedule, or a rule such as '{"attempts": 5, "max": "10m"}'
    #[arg(long, value_name = "POLICY")]
    retry: Option<String>,
    /// What happens when the attempts of a task in a lane run out: block or dead_letter
    #[arg(long, value_name = "WHAT", value_parser = ["block", "dead_letter", "default"])]
    on_exhausted: Option<String>,
    /// 0 goes first, 9 last; decided when the queue is made
    #[arg(long, value_name = "0-9")]
    priority: Option<String>,
    /// All tasks in one partition; decided when the queue is made
    #[arg(long, value_name = "yes|no", value_parser = ["yes", "no", "default"])]
    pinned: Option<String>,
    /// How many attempts may run at once
    #[arg(long, value_name = "N")]
    concurrency: Option<String>,
    /// How many attempts may start: 100/s, 10/1m
    #[arg(long, value_name = "N/TIME")]
    rate: Option<String>,
    /// How many may start at once after a rest
    #[arg(long, value_name = "N", requires = "rate")]
    burst: Option<u32>,
    /// How long an attempt may take; for workers, their time to run
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// No two copies of a task at once, even when a node is lost
    #[arg(long, value_name = "yes|no", value_parser = ["yes", "no", "default"])]
    exclusive: Option<String>,
    /// What happens to a task whose time has passed when it comes
    #[arg(long, value_name = "WHAT", value_parser = ["reject", "run_now", "default"])]
    past: Option<String>,
    /// How long ended tasks are kept, but for dead ones
    #[arg(long, value_name = "DURATION")]
    keep_ended: Option<Span>,
    /// How long dead tasks are kept
    #[arg(long, value_name = "DURATION")]
    keep_dead: Option<Span>,
    /// How long a unique key is remembered after its task has ended
    #[arg(long, value_name = "DURATION")]
    keep_keys: Option<Span>,
    /// How many bytes of ended tasks are kept: beyond that the oldest go first
    #[arg(long, value_name = "BYTES")]
    keep_bytes: Option<u64>,
    /// What calls are signed with, whsec_… or whsk_… (ed25519); the newest first; may be repeated
    #[arg(
        long,
        value_name = "SECRET",
        env = "PUNCTUAL_QUEUE_SECRETS",
        hide_env_values = true,
        value_delimiter = ','
    )]
    secret: Vec<String>,
    /// Answers that mean success: 2xx, 204; may be repeated
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    success: Vec<String>,
    /// Answers that end all attempts; may be repeated
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    give_up: Vec<String>,
    /// When the answer 409 means that a task was done before
    #[arg(long, value_name = "WHEN", value_parser = ["repeated", "always", "never"])]
    conflict: Option<String>,
}

impl Set {
    /// Sets it.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let (queue, replace) = (self.queue.clone(), self.replace);
        let settings = self.settings()?;
        let client = remote.client()?;
        let put = || async { remote.heard(client.put_queue(&queue, &settings).await) };
        let answer = if replace {
            put().await?
        } else {
            match remote.heard(client.patch_queue(&queue, &settings).await) {
                Err(trouble) if is_missing(&trouble) => put().await?,
                answer => answer?,
            }
        };
        remote.show(&answer, details_of)
    }

    fn settings(self) -> Result<QueueSettings, Trouble> {
        let (method, headers) = (self.method, self.header.into_iter().collect());
        let burst = self.burst;
        let retention = Retention {
            succeeded: self.keep_ended,
            dead: self.keep_dead,
            identities: self.keep_keys,
            bytes: self.keep_bytes,
        };
        let listed = |codes: Vec<String>| (!codes.is_empty()).then_some(codes);
        let success = Success {
            codes: listed(self.success),
            give_up: listed(self.give_up),
            conflict: self.conflict.as_deref().map(|word| match word {
                "always" => Conflict::Always,
                "never" => Conflict::Never,
                _ => Conflict::Repeated,
            }),
        };
        Ok(QueueSettings {
            target: change("--target", self.target, |text| target(text, method.clone(), &headers))?,
            retry: change("--retry", self.retry.filter(|name| name != "default"), retry)?,
            on_exhausted: change("--on-exhausted", self.on_exhausted, |word| {
                Ok(if word == "block" { OnExhausted::Block } else { OnExhausted::DeadLetter })
            })?,
            priority: change("--priority", self.priority, number)?,
            pinned: change("--pinned", self.pinned, |word| Ok(word == "yes"))?,
            concurrency: change("--concurrency", self.concurrency, number)?,
            rate: change("--rate", self.rate, |text| rate(text, burst))?,
            timeout: change("--timeout", self.timeout, |text| {
                text.parse::<Span>().map_err(|error| error.to_string())
            })?,
            exclusive: change("--exclusive", self.exclusive, |word| Ok(word == "yes"))?,
            past: change("--past", self.past, |word| {
                Ok(if word == "reject" { Past::Reject } else { Past::RunNow })
            })?,
            retention: if retention == Retention::default() { Change::Keep } else { Change::Set(retention) },
            secrets: if self.secret.is_empty() { Change::Keep } else { Change::Set(self.secret) },
            success: if success == Success::default() { Change::Keep } else { Change::Set(success) },
        })
    }
}

/// What a flag says about a setting: nothing, `default`, or a value.
fn change<T>(
    flag: &str,
    text: Option<String>,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Change<T>, Trouble> {
    match text.as_deref() {
        None => Ok(Change::Keep),
        Some("default") => Ok(Change::Clear),
        Some(text) => {
            read(text).map(Change::Set).map_err(|why| Trouble::usage(format!("{flag} {text}: {why}")))
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "a number, or `default`".to_owned())
}

fn target(
    text: &str,
    method: Option<String>,
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<QueueTarget, String> {
    match text.split_once(':') {
        None if text == "worker" => Ok(QueueTarget::Worker),
        Some(("handler", name)) if !name.is_empty() => Ok(QueueTarget::Handler(name.into())),
        Some(("http" | "https", _)) => {
            Ok(QueueTarget::Http(HttpTarget { url: text.into(), method, headers: headers.clone() }))
        }
        _ => Err("write worker, a URL such as https://example.com/hook, or handler:NAME".into()),
    }
}

/// `100/s`, `10/1m`, `5/90s`.
fn rate(text: &str, burst: Option<u32>) -> Result<Rate, String> {
    let wrong = || "write it like 100/s or 10/1m".to_owned();
    let (starts, per) = text.split_once('/').ok_or_else(wrong)?;
    let starts = starts.trim().parse().map_err(|_| wrong())?;
    let per = per.trim();
    let per = if per.starts_with(|letter: char| letter.is_ascii_digit() || letter == 'P') {
        per.to_owned()
    } else {
        format!("1{per}")
    };
    Ok(Rate { starts, per: per.parse().map_err(|_| wrong())?, burst })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_as_people_write_them() {
        let read = |text| rate(text, None).map(|rate| (rate.starts, rate.per.to_string()));
        assert_eq!(read("100/s"), Ok((100, "PT1S".into())));
        assert_eq!(read("10 / 1m"), Ok((10, "PT1M".into())));
        assert_eq!(read("5/90s"), Ok((5, "PT1M30S".into())));
        assert!(read("fast").is_err());
        assert!(read("10/").is_err());
    }
}
