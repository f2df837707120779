//! Which server is asked, and how its answers are shown.

use std::io::{self, Write};

use clap::Args;
use punctual_client::Client;
use serde::Serialize;

use super::trouble::{Exit, Trouble};

/// What all commands understand.
#[derive(Args, Clone, Debug)]
pub struct Remote {
    /// The server to ask
    #[arg(
        long,
        global = true,
        value_name = "URL",
        default_value = "http://127.0.0.1:8700",
        env = "PUNCTUAL_SERVER",
        help_heading = "Everywhere"
    )]
    pub server: String,
    /// The key that opens it
    #[arg(
        long,
        global = true,
        value_name = "KEY",
        env = "PUNCTUAL_KEY",
        hide_env_values = true,
        help_heading = "Everywhere"
    )]
    pub key: Option<String>,
    /// Answers for programs: JSON as the server sent it, one object to a line
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
}

impl Remote {
    /// A client of that server.
    pub fn client(&self) -> Result<Client, Trouble> {
        self.client_with(32)
    }

    /// A client that keeps so many connections.
    pub fn client_with(&self, connections: usize) -> Result<Client, Trouble> {
        let mut builder = Client::builder(&self.server).idle_max(connections);
        // A variable that is there but empty says that there is none.
        if let Some(key) = self.key.as_ref().filter(|key| !key.is_empty()) {
            builder = builder.key(key);
        }
        builder.build().map_err(|error| {
            Trouble::of(error, &self.server)
                .hint("--server (or PUNCTUAL_SERVER) looks like http://127.0.0.1:8700")
        })
    }

    /// What became of a request, with what to do if nothing did.
    pub fn heard<T>(&self, answer: Result<T, punctual_client::Error>) -> Result<T, Trouble> {
        answer.map_err(|error| Trouble::of(error, &self.server))
    }

    /// Shows an answer: as JSON if that was asked for, else as `people` would read it.
    pub fn show<T: Serialize>(&self, answer: &T, people: impl FnOnce(&T) -> String) -> Result<(), Trouble> {
        if self.json { print_json(answer) } else { print(&people(answer)) }
    }
}

/// One line of JSON on stdout.
pub fn print_json(answer: &impl Serialize) -> Result<(), Trouble> {
    let line = serde_json::to_string(answer).map_err(|error| Trouble::failed(format!("no JSON: {error}")))?;
    // What a task carries is kept as it came, perhaps over several lines; within a JSON string no line ends.
    print(&line.replace(['\n', '\r'], " "))
}

/// Text on stdout, and the end of its line.
pub fn print(text: &str) -> Result<(), Trouble> {
    if text.is_empty() {
        return Ok(());
    }
    match writeln!(io::stdout().lock(), "{}", text.trim_end_matches('\n')) {
        // Whoever reads has read enough (`| head`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        // What was asked is done by then.
        written => written.map_err(|error| {
            let text = format!("cannot write to stdout: {error}; what was asked may be done all the same");
            Trouble::new(Exit::Unknown, text)
        }),
    }
}
