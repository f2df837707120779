//! The binary `punctual`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use punctual_server::call::Guard;
use punctual_server::{Options, Server, Trouble};

#[derive(Parser)]
#[command(version, about = "Runs work at the time it was promised, in order")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts a server: tasks over HTTP, kept in a folder of this machine
    Serve {
        /// Where the tasks are kept
        #[arg(long, default_value = "punctual-data", env = "PUNCTUAL_DATA")]
        data: PathBuf,
        /// Where it listens
        #[arg(long, default_value = "127.0.0.1:8700", env = "PUNCTUAL_LISTEN")]
        listen: SocketAddr,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let Command::Serve { data, listen } = Cli::parse().command;
    let options = Options { data, listen, guard: Guard::default(), drain: Duration::from_secs(30) };
    match serve(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("punctual: {trouble}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: Options) -> Result<(), Trouble> {
    let data = options.data.clone();
    let server = Server::start(options).await?;
    if let Ok(address) = server.address() {
        eprintln!("punctual listens on http://{address}, tasks in {}", data.display());
    }
    let stop = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    server.run(stop).await.map_err(Trouble::Scheduler)
}
