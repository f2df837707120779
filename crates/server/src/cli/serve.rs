//! `punctual serve`: starts a server, says how to use it, and stops it when told to.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use punctual::Timestamp;
use punctual::clock::VirtualClock;
use punctual_client::wire::{Moment, Time};
use punctual_server::call::Ports;
use punctual_server::{Options, Reload, Server, Trouble as ServerTrouble, logs};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::Outcome;
use super::ask::{Remote, print, print_json};
use super::config::Settings;
use super::trouble::{Exit, Trouble};
use super::words;

/// Starts a server: tasks over HTTP, kept in a folder of this machine.
#[derive(Args)]
#[command(
    after_help = "Every setting is a flag, an environment variable and a key of the configuration file; a flag goes before a
variable, and a variable before the file. SIGHUP reads the certificate again and begins a new audit file."
)]
pub struct Serve {
    /// A file with settings, in TOML
    #[arg(long, value_name = "FILE", env = "PUNCTUAL_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// For tests: a clock that stands still until `punctual clock advance` sets it forward
    #[arg(
        long,
        value_name = "CLOCK",
        default_value = "real",
        env = "PUNCTUAL_CLOCK",
        help_heading = "Tests"
    )]
    clock: ClockChoice,
    /// The time that a virtual clock shows at first, such as 2026-11-16T09:00:00Z; without it, the present time, or the
    /// time that the data folder has come to, if that is later
    #[arg(long, value_name = "TIME", env = "PUNCTUAL_NOW", help_heading = "Tests")]
    now: Option<Time>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ClockChoice {
    /// The machine's own
    Real,
    /// One that stands still until it is set forward
    Virtual,
}

impl Serve {
    /// Serves until SIGTERM or SIGINT.
    pub async fn run(self, remote: &Remote) -> Outcome {
        take_small_pages();
        let virtual_clock = self.virtual_clock()?;
        let settings = self.settings.over(self.config.as_deref())?;
        let options = Options { virtual_clock, ..settings.options()? };
        logs::begin(settings.log_format.unwrap_or_default(), settings.log.unwrap_or_default());
        let goes_on = format!("what runs may go on for {}", words::length(options.drain));
        let served = until_told(&goes_on, |told| serve(options, remote.json, told));
        served.await?
    }

    fn virtual_clock(&self) -> Result<Option<VirtualClock>, Trouble> {
        let timestamp = |moment: Moment| Timestamp::from_micros(moment.as_micros());
        match (self.clock, &self.now) {
            (ClockChoice::Real, None) => Ok(None),
            (ClockChoice::Real, Some(_)) => Err(Trouble::usage("--now is for a virtual clock")
                .hint("add --clock virtual, or set the machine's clock")),
            (ClockChoice::Virtual, None) => {
                Ok(Some(VirtualClock::at_or_later(timestamp(words::Here::system().now))))
            }
            (ClockChoice::Virtual, Some(now)) => {
                let now = now.resolve(None).map_err(|problem| Trouble::usage(format!("--now: {problem}")))?;
                Ok(Some(VirtualClock::at(timestamp(now))))
            }
        }
    }
}

async fn serve(options: Options, json: bool, told: oneshot::Receiver<()>) -> Outcome {
    let server = Server::start(options.clone()).await.map_err(|trouble| not_started(trouble, &options))?;
    let address = server.address().map_err(|error| Trouble::failed(format!("not listening: {error}")))?;
    let reloading = tokio::spawn(reload_when_told(server.reload(), hang_ups()?)).abort_handle();
    let held = server.held().await.map_err(Trouble::failed)?;
    announce(&options, &server, (address, held), json)?;
    let stop = async { drop(told.await) };
    let served = server.run(stop).await;
    reloading.abort();
    served.map_err(|error| Trouble::failed(format!("the scheduler did not stop well: {error}")))
}

fn hang_ups() -> Result<Signal, Trouble> {
    signal(SignalKind::hangup()).map_err(|error| Trouble::failed(format!("no signals can be heard: {error}")))
}

async fn reload_when_told(reload: Reload, mut hang_ups: Signal) {
    while hang_ups.recv().await.is_some() {
        match reload.reload().await {
            Ok(()) => eprintln!("punctual: read again what was named"),
            Err(bad) => eprintln!("punctual: {bad}; the old certificate stays"),
        }
    }
}

fn announce(options: &Options, server: &Server, (address, held): (SocketAddr, usize), json: bool) -> Outcome {
    let data = std::path::absolute(&options.data).unwrap_or_else(|_| options.data.clone());
    let url = format!("{}://{address}", if options.tls.is_some() { "https" } else { "http" });
    if json {
        return print_json(&json!({"url": url, "data": data, "pid": std::process::id(), "held": held}));
    }
    let is_public = !address.ip().is_loopback();
    let mut text =
        format!("punctual listens on {url}\n  data   {}\n{}", data.display(), callable(options, is_public));
    if held > 0 {
        let held = words::count(held as u64, "queue");
        text += &format!(
            "\n  hold   {held} paused since this folder was restored: `punctual hold show`, then `punctual hold release`"
        );
    }
    if options.virtual_clock.is_some() {
        text += "\n  clock  virtual: it stands still until `punctual clock advance 1h`";
    }
    let (key, auth) = match server.needs_keys() {
        true => (
            "\n  keys   needed; `punctual key list` shows them",
            " -H \"Authorization: Bearer $PUNCTUAL_KEY\"",
        ),
        false => ("", ""),
    };
    text += key;
    if is_public && options.tls.is_none() {
        text += "\n  note   without TLS, keys and payloads can be read on their way: let a proxy add it, or see tls";
    }
    let drain = words::length(options.drain);
    print(&format!(
        "{text}
  try    curl{auth} {url}/v1/queues/hello/tasks -d '{{\"delay\": \"10s\", \"payload\": \"hello\"}}'
  stop   Ctrl-C; what runs may go on for {drain}",
    ))
}

/// What may be called.
fn callable(options: &Options, is_public: bool) -> String {
    let ports = match &options.guard.ports {
        Ports::Any => "any port".to_owned(),
        Ports::These(ports) => {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            format!("ports {}", ports.join(", "))
        }
    };
    let networks: Vec<String> = options.guard.allow.iter().map(|network| format!(", {network}")).collect();
    let own = match is_public {
        true => "",
        false => ", and any port of this machine,\n         because only this machine can ask it to",
    };
    let way = options.proxy.as_ref().map_or_else(String::new, |proxy| format!(" through the proxy {proxy}"));
    format!("  calls  the public internet{way}{} ({ports}){own}", networks.concat())
}

/// SIGTERM and SIGINT, as they come.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Listens from now on, so that none is missed.
    pub fn listen() -> Result<Signals, Trouble> {
        let listening =
            |kind| signal(kind).map_err(|error| Trouble::failed(format!("no signals can be heard: {error}")));
        let (terminate, interrupt) =
            (listening(SignalKind::terminate())?, listening(SignalKind::interrupt())?);
        Ok(Signals { terminate, interrupt })
    }

    /// Ready when the process is told to stop.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Does `work`, which is handed what tells it to stop. Whoever tells it twice has waited long enough.
pub async fn until_told<T, W: Future<Output = T>>(
    goes_on: &str,
    work: impl FnOnce(oneshot::Receiver<()>) -> W,
) -> Result<T, Trouble> {
    let mut signals = Signals::listen()?;
    let (tell, told) = oneshot::channel();
    let mut work = std::pin::pin!(work(told));
    tokio::select! {
        done = &mut work => return Ok(done),
        () = signals.next() => {}
    }
    tell.send(()).ok();
    let mut is_said = false;
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            () = signals.next() => return Err(Trouble::failed("stopped at once; what was under way is done again")),
            // Most stop in a moment, and need no words about it.
            () = moment(), if !is_said => {
                eprintln!("stopping: {goes_on}; Ctrl-C again stops at once");
                is_said = true;
            }
        }
    }
}

async fn moment() {
    tokio::time::timeout(Duration::from_millis(500), std::future::pending::<()>()).await.ok();
}

fn not_started(trouble: ServerTrouble, options: &Options) -> Trouble {
    match trouble {
        ServerTrouble::Listen(..) | ServerTrouble::Audit(..) => Trouble::failed(trouble),
        ServerTrouble::Tls(_) | ServerTrouble::Spans(_) => Trouble::usage(trouble),
        ServerTrouble::Unguarded(address) => {
            let (data, port) = (options.data.display(), address.port());
            Trouble::usage(trouble).hint(format!(
                "make a key with `punctual key add --data {data} --scope admin`, or listen on 127.0.0.1:{port}"
            ))
        }
        ServerTrouble::Scheduler(punctual::Error::Folder(error)) => super::trouble::of_folder(&error),
        ServerTrouble::Scheduler(error) => Trouble::new(Exit::Folder, error),
    }
}

/// Memory that is used for one request after the other comes in pages of 4 KiB: zeroing pages of 2 MiB took a tenth of the
/// time of a request with one task. Where it cannot be said, nothing is lost.
fn take_small_pages() {
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(true).ok();
}
