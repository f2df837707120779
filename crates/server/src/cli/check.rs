//! `punctual check`: is the server there and ready, and are its clock and its data folder fine?

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::{Request, header};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use punctual::FolderTrouble;
use punctual_client::Error;
use punctual_client::wire::Moment;
use serde_json::json;

use super::Outcome;
use super::ask::{Remote, print, print_json};
use super::config::Settings;
use super::folder::verified;
use super::table::Rows;
use super::trouble::{Exit, Trouble, of_source};
use super::words::{self, Here};

/// Clocks that are further apart make people wonder.
const CLOCK_APART_MAX: Duration = Duration::from_secs(5);

/// Says whether the server is there and ready, and its clock and data folder are fine.
#[derive(Args)]
#[command(
    after_help = "Ends with 0 if all is well; 3 if the server is not there or not ready; 1 if the clocks are more than
5 s apart; 8 if the data folder is damaged; 2 if the configuration is wrong."
)]
pub struct Check {
    /// Look at this data folder too
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Look at this configuration file, and at what it names, in place of the server
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// What was found.
struct Finding {
    name: &'static str,
    text: String,
    trouble: Option<Trouble>,
}

impl Check {
    /// Looks at everything, and says all that it found.
    pub async fn run(self, remote: &Remote) -> Outcome {
        let mut findings = Vec::new();
        if let Some(file) = &self.config {
            findings.push(config(file));
        } else {
            findings.push(server(remote).await);
            if findings[0].trouble.is_none() {
                findings.extend(clock(remote).await);
            }
        }
        if let Some(folder) = self.data {
            findings.push(data(folder).await);
        }
        if remote.json {
            let said =
                findings.iter().map(|it| (it.name, json!({"ok": it.trouble.is_none(), "detail": it.text})));
            let said: std::collections::BTreeMap<_, _> = said.collect();
            print_json(&said)?;
        } else {
            let mut rows = Rows::new(["", "", ""]);
            for finding in &findings {
                let mark = if finding.trouble.is_none() { "ok" } else { "NOT OK" };
                rows.push([finding.name.into(), mark.into(), finding.text.as_str().into()]);
            }
            print(&rows.pairs())?;
        }
        findings.into_iter().find_map(|finding| finding.trouble).map_or(Ok(()), Err)
    }
}

/// Reads it as a server would that has no flags and no variables. Nothing is started.
fn config(file: &Path) -> Finding {
    let read = Settings::default().over(Some(file)).and_then(|settings| settings.options());
    let read = read.and_then(|options| {
        options.check().map_err(Trouble::usage)?;
        options.audit.map_or(Ok(()), can_audit)
    });
    let (text, trouble) = match read {
        Ok(()) => (format!("{} can be used", file.display()), None),
        Err(trouble) => (trouble.text().to_owned(), Some(trouble)),
    };
    Finding { name: "config", text, trouble }
}

/// Whether a server of this user could write its audit there. It is not begun: what is tried is a file beside it.
fn can_audit(path: PathBuf) -> Outcome {
    // A link that leads nowhere is not made into a file.
    let is_link = path.is_symlink();
    let tried = match punctual_server::open_audit(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_link => {
            let beside = path.with_file_name(format!(".punctual-check-{}", std::process::id()));
            let made = OpenOptions::new().write(true).create_new(true).open(&beside);
            made.and_then(|_| fs::remove_file(&beside))
        }
        opened => opened.map(drop),
    };
    tried.map_err(|error| Trouble::usage(punctual_server::Trouble::Audit(path, error)))
}

async fn server(remote: &Remote) -> Finding {
    let client = match remote.client() {
        Ok(client) => client,
        Err(trouble) => {
            return Finding { name: "server", text: remote.server.clone(), trouble: Some(trouble) };
        }
    };
    let server = &remote.server;
    let (text, trouble) = match client.is_ready().await {
        Ok(true) => (format!("{server} is ready"), None),
        Ok(false) => {
            let text = format!("{server} is there, and not ready");
            (
                text.clone(),
                Some(Trouble::new(Exit::NotReached, text).hint("it starts or stops: try again in a moment")),
            )
        }
        Err(error @ Error::Unreachable(_)) => {
            let trouble = Trouble::of(error, server);
            (trouble.text().to_owned(), Some(trouble))
        }
        Err(error) => (format!("nothing that we understand at {server}"), Some(Trouble::of(error, server))),
    };
    Finding { name: "server", text, trouble }
}

/// Compares the clocks, to the second: that is how exact the date in an answer is.
async fn clock(remote: &Remote) -> Option<Finding> {
    let url = format!("{}/healthz", remote.server.trim_end_matches('/'));
    let request = Request::get(url).body(Empty::<Bytes>::new()).ok()?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let answer = tokio::time::timeout(Duration::from_secs(5), client.request(request)).await.ok()?.ok()?;
    let date = answer.headers().get(header::DATE)?.to_str().ok()?;
    let theirs = Moment::from(httpdate::parse_http_date(date).ok()?);
    let ours = Here::system().now;
    // A date without its fraction is up to a second behind.
    let (ahead, behind) = (theirs.since(ours), ours.since(theirs).saturating_sub(Duration::from_secs(1)));
    let apart = ahead.max(behind);
    if apart <= CLOCK_APART_MAX {
        return Some(Finding { name: "clock", text: "as here, to a second or so".into(), trouble: None });
    }
    let side = if ahead.is_zero() { "behind" } else { "ahead of" };
    let text = format!("the server's clock is {} {side} ours", words::length(apart));
    let trouble = Trouble::failed(&text).hint("tasks start by the server's clock: set it, or yours");
    Some(Finding { name: "clock", text, trouble: Some(trouble) })
}

async fn data(folder: PathBuf) -> Finding {
    let (text, trouble) = match verified(&folder).await {
        Ok(found) if found.rows.problems == 0 => {
            (format!("{} is sound: {} live", folder.display(), words::count(found.rows.live, "task")), None)
        }
        Ok(found) => {
            let text = format!("{} has {}", folder.display(), words::count(found.rows.problems, "problem"));
            let hint = format!("punctual verify {}", folder.display());
            (text.clone(), Some(Trouble::new(Exit::Folder, text).hint(hint)))
        }
        Err(error) if matches!(error.trouble, FolderTrouble::InUse { .. }) => {
            (format!("{} is in use by a server, so it was not read", folder.display()), None)
        }
        Err(error) => {
            let trouble = of_source(&error);
            (trouble.text().to_owned(), Some(trouble))
        }
    };
    Finding { name: "data", text, trouble }
}
