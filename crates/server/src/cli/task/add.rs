//! `punctual task add`: a task from flags, files and stdin.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use punctual_client::wire::{self, Base64, Http, Json, NewTask, OnConflict, Retry, Span};

use super::add_lines::add_lines;
use crate::cli::Outcome;
use crate::cli::ask::{Remote, print, print_json};
use crate::cli::named::named;
use crate::cli::trouble::Trouble;
use crate::cli::when::Chosen;
use crate::cli::words::Here;

/// Adds a task and prints its id.
#[derive(Args)]
#[command(after_help = "Examples:
  punctual task add mail --payload '{\"to\": \"ana@example.com\"}' --at 'tomorrow 9:00 Europe/Paris'
  punctual task add reports --url https://example.com/report --at 'next monday 8:30'
  generate | punctual task add print --file - --delay 90s
  punctual task add mail --ndjson - <<< '{\"payload\": {\"to\": \"ana\"}, \"delay\": \"90s\"}'")]
pub struct Add {
    /// The queue it goes to; made if it is not there
    #[arg(value_parser = named)]
    queue: String,
    /// When it is due, such as "tomorrow 9:00", "in 90m", "next monday 8:30 Europe/Paris" or
    /// 2026-12-24T18:00+01:00; now if nothing is said
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// So long from now, such as 90s or 1h30m
    #[arg(long, value_name = "DURATION", conflicts_with = "at")]
    delay: Option<Span>,
    /// Tasks of one lane run one at a time, in order of their time
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
    /// A name to find it by
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The same key, lane and time again is the same task. Give a fixed time with --at, too: now, and so long from now,
    /// are another time each time
    #[arg(long, value_name = "KEY")]
    unique_key: Option<String>,
    /// What happens when that task is there already
    #[arg(long, value_name = "WHAT", value_parser = ["replace", "keep", "error"], requires = "unique_key")]
    on_conflict: Option<String>,
    /// 0 goes first, 9 last; not with a lane
    #[arg(long, value_name = "0-9", conflicts_with = "lane", value_parser = clap::value_parser!(u8).range(0..=9))]
    priority: Option<u8>,
    /// default, webhooks, pagerduty, schedule, or a rule such as '{"attempts": 5, "max": "10m"}'
    #[arg(long, value_name = "POLICY", value_parser = retry)]
    retry: Option<Retry>,
    /// How long an attempt may take
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Span>,
    /// Among tasks that could start, the nearest deadline goes first
    #[arg(long, value_name = "TIME")]
    start_by: Option<String>,
    /// Not started by then, it never is
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
    /// Run by the program that embeds Punctual and has this handler
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    handler: Option<String>,
    /// A URL that is sent the result
    #[arg(long, value_name = "URL")]
    callback: Option<String>,
    /// Makes it safe to send the same again: within a day the answer is the same
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Many tasks: a file with one in each line, as JSON as the API takes it, or - for stdin. They are added while they
    /// come; one that is refused spoils no other
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "at", "delay", "lane", "name", "unique_key", "priority", "retry", "timeout", "start_by", "expires_at",
        "handler", "callback", "idempotency_key", "payload", "text", "file", "url",
    ])]
    ndjson: Option<PathBuf>,
    // Last, because their headings hold for all that follows.
    #[command(flatten)]
    carries: Carries,
    #[command(flatten)]
    call: Call,
}

/// What it carries.
#[derive(Args)]
#[command(next_help_heading = "What it carries")]
#[group(multiple = false)]
struct Carries {
    /// JSON
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Text, sent as a JSON string
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// A file, or - for stdin: JSON if it is JSON, else bytes
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// What it calls.
#[derive(Args)]
#[command(next_help_heading = "What it calls")]
struct Call {
    /// Call this
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// POST if nothing is said
    #[arg(long, value_name = "METHOD", requires = "url")]
    method: Option<String>,
    /// A header, as curl has it: 'Name: value'; may be repeated
    #[arg(long, value_name = "HEADER", requires = "url", value_parser = header)]
    header: Vec<(String, String)>,
    /// What is sent, in place of the payload: JSON if it is JSON, else bytes; @FILE or @- as curl has it
    #[arg(long, value_name = "BODY", requires = "url", conflicts_with_all = ["payload", "text", "file"])]
    body: Option<String>,
}

/// A retry policy: its name, or a rule.
pub fn retry(text: &str) -> Result<Retry, String> {
    if !text.trim_start().starts_with('{') {
        return serde_json::from_value(text.into()).map_err(|error| error.to_string());
    }
    wire::read(text.as_bytes()).map_err(|fault| match fault.is_json {
        true => fault.to_string(),
        false => r#"a rule is JSON, such as {"attempts": 5, "max": "10m"}"#.to_owned(),
    })
}

/// A header as curl has it.
pub fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("a header looks like 'Name: value'".into()),
    }
}

impl Add {
    /// Adds it.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let (here, client) = (Here::system(), remote.client()?);
        if let Some(file) = &self.ndjson {
            return add_lines(remote, &client.creating(&self.queue), file).await;
        }
        let (queue, key) = (self.queue.clone(), self.idempotency_key.clone());
        let task = self.task(&here)?;
        let creating = client.creating(&queue);
        let creating = key.into_iter().fold(creating, |creating, key| creating.idempotency_key(key));
        let made = remote.heard(creating.one(&task).await)?;
        if remote.json {
            return print_json(&made.task);
        }
        if !made.is_new {
            eprintln!("the task was there already (same unique key, lane and time)");
        }
        for warning in &made.task.warnings {
            eprintln!("{warning}");
        }
        print(&made.task.id)
    }

    fn task(self, here: &Here) -> Result<NewTask, Trouble> {
        let text = self.at.or_else(|| self.delay.map(|delay| delay.to_string()));
        let chosen = text.map(|text| Chosen::understand("--at", &text, here)).transpose()?;
        if let Some(chosen) = &chosen {
            chosen.echo(here);
        }
        let deadline = |flag: &str, text: Option<String>| {
            let chosen = text.map(|text| Chosen::understand(flag, &text, here)).transpose()?;
            Ok::<_, Trouble>(chosen.map(|chosen| chosen.moment()))
        };
        let (payload, payload_base64) = self.carries.read()?;
        Ok(NewTask {
            at: chosen.as_ref().and_then(Chosen::at),
            timezone: None,
            delay: chosen.as_ref().and_then(Chosen::delay),
            lane: self.lane,
            unique_key: self.unique_key,
            on_conflict: self.on_conflict.as_deref().map(on_conflict),
            name: self.name,
            payload,
            payload_base64,
            http: self.call.read()?,
            handler: self.handler,
            retry: self.retry,
            priority: self.priority,
            start_by: deadline("--start-by", self.start_by)?,
            expires_at: deadline("--expires-at", self.expires_at)?,
            timeout: self.timeout,
            callback: self.callback,
        })
    }
}

fn on_conflict(word: &str) -> OnConflict {
    match word {
        "keep" => OnConflict::Keep,
        "error" => OnConflict::Error,
        _ => OnConflict::Replace,
    }
}

impl Carries {
    fn read(self) -> Result<(Option<Json>, Option<Base64>), Trouble> {
        if let Some(text) = self.text {
            let json = Json::of(&text).map_err(Trouble::usage)?;
            return Ok((Some(json), None));
        }
        if let Some(text) = self.payload {
            let json = Json::from_text(text.trim()).map_err(|error| {
                Trouble::usage(format!("--payload is not JSON: {error}"))
                    .hint("for text use --text, for anything else --file")
            })?;
            return Ok((Some(json), None));
        }
        match self.file {
            Some(file) => Ok(json_or_bytes(contents(&file)?)),
            None => Ok((None, None)),
        }
    }
}

impl Call {
    fn read(self) -> Result<Option<Http>, Trouble> {
        let Some(url) = self.url else { return Ok(None) };
        let (body, body_base64) = match self.body {
            None => (None, None),
            Some(text) => match text.strip_prefix('@') {
                Some(file) => json_or_bytes(contents(Path::new(file))?),
                None => json_or_bytes(text.into_bytes()),
            },
        };
        let headers = self.header.into_iter().collect();
        Ok(Some(Http { url, method: self.method, headers, body, body_base64, timeout: None }))
    }
}

/// JSON stays JSON, so that it can be read where it is shown; everything else is bytes.
fn json_or_bytes(bytes: Vec<u8>) -> (Option<Json>, Option<Base64>) {
    let text = std::str::from_utf8(&bytes).ok();
    match text.and_then(|text| Json::from_text(text.trim()).ok()) {
        Some(json) => (Some(json), None),
        None => (None, Some(Base64(bytes))),
    }
}

/// What is in a file, or comes from stdin.
fn contents(file: &Path) -> Result<Vec<u8>, Trouble> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    read.map_err(|error| Trouble::usage(format!("cannot read {}: {error}", file.display())))
}
