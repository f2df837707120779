//! Runs the binary, and a server for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub const PUNCTUAL: &str = env!("CARGO_BIN_EXE_punctual");

/// What a command said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// It ended so.
    #[track_caller]
    pub fn with(self, code: i32) -> Said {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// What it printed, on one line.
    #[track_caller]
    pub fn line(self) -> String {
        self.with(0).out.trim().to_owned()
    }

    /// What it printed, as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("no JSON ({error}): {self:#?}"))
    }
}

/// The binary, in surroundings that are the same everywhere.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(PUNCTUAL);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PUNCTUAL_")) {
        command.env_remove(name);
    }
    command.args(args).env("TZ", "Europe/Paris").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub fn run(args: &[&str]) -> Said {
    said(command(args))
}

pub fn said(mut command: Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A server of its own for each test.
pub struct Server {
    process: Child,
    pub url: String,
    /// All that it said when it began.
    pub announcement: String,
    pub folder: Arc<TempDir>,
}

impl Server {
    pub fn start() -> Server {
        Server::with(&[])
    }

    /// A server with more flags.
    pub fn with(more: &[&str]) -> Server {
        Server::on(Arc::new(tempfile::tempdir().unwrap()), "data", more)
    }

    /// A server on a data folder in this one.
    pub fn on(folder: Arc<TempDir>, data: &str, more: &[&str]) -> Server {
        let data = folder.path().join(data);
        let data = ["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
        Server::of(command(&["serve"]).args(data).args(more), folder)
    }

    /// A server that is told all it needs.
    pub fn start_with(args: &[&str]) -> Server {
        Server::of(command(&["serve"]).args(args), Arc::new(tempfile::tempdir().unwrap()))
    }

    fn of(command: &mut Command, folder: Arc<TempDir>) -> Server {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let url = first.strip_prefix("punctual listens on ").expect(&first).to_owned();
        let mut announcement = first;
        for line in lines.map_while(Result::ok) {
            announcement = format!("{announcement}\n{line}");
            if line.trim_start().starts_with("stop") {
                break;
            }
        }
        Server { process, url, announcement, folder }
    }

    /// Where its tasks are.
    pub fn data(&self) -> String {
        self.path("data")
    }

    /// A path in a folder that goes with the server.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// A command for this server.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("PUNCTUAL_SERVER", &self.url);
        command
    }

    /// Runs a command for this server.
    pub fn run(&self, args: &[&str]) -> Said {
        said(self.command(args))
    }

    /// Runs a command that reads this from stdin.
    pub fn run_with(&self, args: &[&str], input: &str) -> Said {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Sends the server a signal.
    pub fn tell(&self, signal: &str) {
        tell(&self.process, signal);
    }

    /// Tells the server to stop, and waits until it has. Its exit code comes back.
    pub fn stop(&mut self) -> i32 {
        tell(&self.process, "TERM");
        self.process.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Sends a signal.
pub fn tell(process: &Child, signal: &str) {
    let sent = Command::new("kill").arg(format!("-{signal}")).arg(process.id().to_string()).status();
    assert!(sent.unwrap().success());
}

/// A script that can be run.
pub fn script(path: &Path, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Reads from a process until a text has come.
pub fn read_until(mut from: impl Read, text: &str) -> String {
    let mut read = String::new();
    let mut byte = [0];
    while !read.contains(text) && from.read(&mut byte).unwrap() == 1 {
        read.push(char::from(byte[0]));
    }
    read
}
