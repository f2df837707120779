//! The command line: reads what was typed, asks the server or the data folder, and shows the answer.
//!
//! Answers go to stdout, for people or with `--json` for programs; everything else goes to stderr. What went wrong ends
//! in one [`Trouble`], which says what to do and knows its exit code.

mod ask;
mod bench;
mod check;
mod clock;
mod config;
mod flags;
mod folder;
mod hold;
mod human_time;
mod key;
mod lane;
mod layout;
mod named;
mod notification;
mod queue;
mod received;
mod restore;
mod serve;
mod table;
mod task;
mod trouble;
mod when;
mod words;
mod worker;

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};
use serde_json::json;

use ask::Remote;
use trouble::Trouble;

/// Nothing keeps us from leaving for longer.
const LEAVING_MAX: Duration = Duration::from_secs(1);

/// How a command ended.
type Outcome = Result<(), Trouble>;

#[derive(Parser)]
#[command(
    name = "punctual",
    version,
    about = "Runs work at the time it was promised, in order",
    after_help = trouble::EXIT_CODES,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts a server: tasks over HTTP, kept in a folder of this machine
    Serve(Box<serve::Serve>),
    /// Adds tasks, looks at them, and changes them
    #[command(subcommand)]
    Task(task::Task),
    /// Settings of queues, and how they stand
    #[command(subcommand)]
    Queue(queue::Queue),
    /// Lanes that wait for a person
    #[command(subcommand)]
    Lane(lane::Lane),
    /// Who is told when a task dies, a lane is blocked, or tasks start late
    #[command(subcommand)]
    Notification(notification::Notification),
    /// The server's clock, and setting it forward if it is virtual
    #[command(subcommand)]
    Clock(clock::Clock),
    /// API keys: who may ask a server, and for what
    Key(key::Key),
    /// Does the tasks of a queue with a command, or posts them to a local URL
    Worker(worker::Worker),
    /// Measures how many tasks a server takes or hands out in a second
    Bench(bench::Bench),
    /// Says whether the server is there and ready, and its clock and data folder are fine
    Check(check::Check),
    /// Reads everything in a data folder that no server uses, and says what is wrong
    Verify(folder::Verify),
    /// Copies everything that a server has, while it runs
    Backup(folder::Backup),
    /// Puts a backup into a new data folder, on hold, and says what would fire
    Restore(restore::Restore),
    /// What is on hold since a restore, and letting it go
    #[command(subcommand)]
    Hold(hold::Hold),
    /// Prints completions for a shell: eval "$(punctual completions bash)"
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Prints the version
    Version,
}

/// Does what was typed, and says how it went.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.remote.json;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Trouble::failed(format!("no threads to work with: {error}")).report(json),
    };
    let outcome = runtime.block_on(run(cli));
    // What was started beside us is dropped first, and kills the commands it runs.
    runtime.shutdown_timeout(LEAVING_MAX);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => trouble.report(json),
    }
}

async fn run(Cli { remote, command }: Cli) -> Outcome {
    match command {
        Command::Serve(serve) => serve.run(&remote).await,
        Command::Task(task) => task.run(&remote).await,
        Command::Queue(queue) => queue.run(&remote).await,
        Command::Lane(lane) => lane.run(&remote).await,
        Command::Notification(notification) => notification.run(&remote).await,
        Command::Clock(clock) => clock.run(&remote).await,
        Command::Key(key) => key.run(&remote).await,
        Command::Worker(worker) => worker.run(&remote).await,
        Command::Bench(bench) => bench.run(&remote).await,
        Command::Check(check) => check.run(&remote).await,
        Command::Verify(verify) => verify.run(&remote).await,
        Command::Backup(backup) => backup.run(&remote).await,
        Command::Restore(restore) => restore.run(&remote).await,
        Command::Hold(hold) => hold.run(&remote).await,
        Command::Completions { shell } => completions(shell),
        Command::Version => {
            let version = json!({"version": env!("CARGO_PKG_VERSION")});
            remote.show(&version, |_| concat!("punctual ", env!("CARGO_PKG_VERSION")).to_owned())
        }
    }
}

fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "punctual", &mut script);
    ask::print(&String::from_utf8_lossy(&script))
}
