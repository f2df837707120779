//! One run of a command: the payload goes in, the result comes out, the exit code says how it went.

use std::fmt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use punctual_client::wire::Json;
use punctual_client::{Failure, Job};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use crate::cli::trouble::{Exit, Trouble};

/// It failed for now, as sysexits.h has it.
const TEMPORARY: i32 = 75;
/// It will never succeed.
const GIVE_UP: i32 = 100;
/// A result that is longer does not fit into a task.
const RESULT_BYTES_MAX: u64 = 256 * 1024;
/// So much of what a command complains about is kept.
const COMPLAINT_LINES: usize = 10;
const LINE_BYTES_MAX: usize = 1_000;

/// Where OpenTelemetry looks for the trace that a process is part of.
const TRACEPARENT: &str = "TRACEPARENT";
const TRACESTATE: &str = "TRACESTATE";

/// The command that does the tasks.
#[derive(Clone)]
pub struct Program {
    words: Arc<[String]>,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.words.join(" "))
    }
}

impl Program {
    /// A command that can be found. Finding out with the first task would bury it.
    pub fn new(words: Vec<String>) -> Result<Program, Trouble> {
        let name = words.first().ok_or_else(|| {
            Trouble::usage("nothing to do the tasks with: name a command after --, or a URL with --post")
        })?;
        let is_there = if name.contains('/') {
            std::path::Path::new(name).is_file()
        } else {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
        };
        if !is_there {
            return Err(Trouble::new(Exit::NotThere, format!("there is no command {name:?}")));
        }
        Ok(Program { words: words.into() })
    }

    /// Does one task. If this is dropped, because the time to run was lost, the command and all it started are killed.
    pub async fn run(self, job: Job) -> Result<Option<Json>, Failure> {
        let mut child = self.start(&job)?;
        let mut group = Group { pid: child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?)) };
        let (input, output, complaints) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let give = async {
            if let Some(mut input) = input {
                // A command that does not read its payload is none of our business.
                input.write_all(job.payload_bytes()).await.ok();
            }
        };
        let (_, result, last_words, status) = tokio::join!(
            give,
            read_result(output.expect("stdout is piped")),
            pass_on(complaints.expect("stderr is piped")),
            child.wait()
        );
        group.pid = None;
        self.judge(job.id(), status?, result, last_words)
    }

    fn start(&self, job: &Job) -> Result<Child, Failure> {
        let task = job.task();
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .env("PUNCTUAL_TASK", &task.id)
            .env("PUNCTUAL_ATTEMPT", task.attempt.to_string())
            .env("PUNCTUAL_TOKEN", &task.token)
            .env("PUNCTUAL_QUEUE", &task.queue)
            // Those that this process has from whoever started it are not the task's.
            .env_remove(TRACEPARENT)
            .env_remove(TRACESTATE)
            .envs(task.traceparent.as_ref().map(|trace| (TRACEPARENT, trace)))
            .envs(task.tracestate.as_ref().map(|state| (TRACESTATE, state)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for us: the command may finish what it does.
            .process_group(0)
            .kill_on_drop(true);
        command
            .spawn()
            .map_err(|error| Failure::new(format!("{} could not be started: {error}", self.words[0])))
    }

    fn judge(
        &self,
        id: &str,
        status: ExitStatus,
        result: Option<Vec<u8>>,
        last_words: String,
    ) -> Result<Option<Json>, Failure> {
        if status.success() {
            if result.is_none() {
                eprintln!("{id}: the result is longer than {RESULT_BYTES_MAX} bytes and was left out");
            }
            return Ok(result.and_then(|bytes| json_of(&bytes)));
        }
        let how = match status.code() {
            Some(code) => format!("exit code {code}"),
            None => format!("{status}"),
        };
        let error = if last_words.is_empty() { how } else { format!("{how}: {last_words}") };
        eprintln!("{id}: {}", error.lines().next().unwrap_or_default());
        match status.code() {
            Some(GIVE_UP) => Err(Failure::new(error).give_up()),
            Some(TEMPORARY) => Err(Failure::new(format!("failed for now, {error}"))),
            _ => Err(Failure::new(error)),
        }
    }
}

/// The command and all that it started.
struct Group {
    pid: Option<Pid>,
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            kill_process_group(pid, Signal::KILL).ok();
        }
    }
}

/// What was printed, unless it is too long.
async fn read_result(output: impl AsyncRead + Unpin) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut limited = output.take(RESULT_BYTES_MAX + 1);
    limited.read_to_end(&mut bytes).await.ok();
    if bytes.len() as u64 <= RESULT_BYTES_MAX {
        return Some(bytes);
    }
    // Read on, or the command would wait for us for ever.
    tokio::io::copy(&mut limited.into_inner(), &mut tokio::io::sink()).await.ok();
    None
}

/// Shows what a command complains about, and keeps the last lines.
async fn pass_on(complaints: impl AsyncRead + Unpin) -> String {
    let mut lines = std::collections::VecDeque::new();
    let mut reader = BufReader::new(complaints);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES_MAX)]).trim_end().to_owned();
        eprintln!("{text}");
        lines.push_back(text);
        if lines.len() > COMPLAINT_LINES {
            lines.pop_front();
        }
        line.clear();
    }
    lines.make_contiguous().join("\n").trim().to_owned()
}

/// What was printed, as JSON: as it is if it is JSON, else as text.
fn json_of(bytes: &[u8]) -> Option<Json> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    Json::from_text(text).or_else(|_| Json::of(text)).ok()
}
