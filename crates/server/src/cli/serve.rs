//! `punctual serve`: starts a server, says how to use it, and stops it when told to.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ipnet::IpNet;
use punctual::Timestamp;
use punctual::clock::VirtualClock;
use punctual_client::wire::{Moment, Span, Time};
use punctual_server::call::{Guard, Ports};
use punctual_server::logs::{self, Filter, Format};
use punctual_server::{Options, Server, Trouble as ServerTrouble};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::Outcome;
use super::ask::{Remote, print, print_json};
use super::trouble::{Exit, Trouble};
use super::words;

/// Starts a server: tasks over HTTP, kept in a folder of this machine.
#[derive(Args)]
pub struct Serve {
    /// Where the tasks are kept; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "punctual-data", env = "PUNCTUAL_DATA")]
    data: PathBuf,
    /// Where it listens; port 0 takes one that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8700", env = "PUNCTUAL_LISTEN")]
    listen: SocketAddr,
    /// A network that may be called although it is not public, such as 10.0.0.0/8; may be repeated
    #[arg(long, value_name = "CIDR", env = "PUNCTUAL_ALLOW_NET", value_delimiter = ',')]
    allow_net: Vec<IpNet>,
    /// A port that may be called besides the usual ones (80, 443, 8080, 8443), or `any`; may be repeated
    #[arg(long, value_name = "PORT", env = "PUNCTUAL_ALLOW_PORT", value_delimiter = ',', value_parser = port)]
    allow_port: Vec<PortRule>,
    /// How long what runs may go on when the server stops
    #[arg(long, value_name = "DURATION", default_value = "30s", env = "PUNCTUAL_DRAIN")]
    drain: Span,
    /// What is logged to stderr: off, error, warn, info, debug or trace; or by module: info,punctual_server::api=debug
    #[arg(long, value_name = "LEVEL", default_value = "warn", env = "PUNCTUAL_LOG")]
    log: Filter,
    /// How it is logged
    #[arg(long, value_name = "FORMAT", default_value = "text", env = "PUNCTUAL_LOG_FORMAT")]
    log_format: LogFormat,
    /// For tests: a clock that stands still until `punctual clock advance` sets it forward
    #[arg(long, value_name = "CLOCK", default_value = "real", env = "PUNCTUAL_CLOCK")]
    clock: ClockChoice,
    /// The time that a virtual clock shows at first, such as 2026-11-16T09:00:00Z; without it, the present time, or the
    /// time that the data folder has come to, if that is later
    #[arg(long, value_name = "TIME", env = "PUNCTUAL_NOW")]
    now: Option<Time>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object to a line
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ClockChoice {
    /// The machine's own
    Real,
    /// One that stands still until it is set forward
    Virtual,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PortRule {
    One(u16),
    Any,
}

fn port(text: &str) -> Result<PortRule, String> {
    match (text, text.parse()) {
        ("any", _) => Ok(PortRule::Any),
        (_, Ok(port)) if port > 0 => Ok(PortRule::One(port)),
        _ => Err("a port is a number from 1 to 65535, or `any`".into()),
    }
}

impl Serve {
    /// Serves until SIGTERM or SIGINT.
    pub async fn run(self, remote: &Remote) -> Outcome {
        if !self.listen.ip().is_loopback() {
            let safe = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.listen.port());
            return Err(Trouble::usage(format!(
                "{} can be reached by other machines, and there are no API keys yet: anyone could schedule calls from yours",
                self.listen
            ))
            .hint(format!("listen on {safe}, and let a proxy that asks who is there pass requests on")));
        }
        let format = match self.log_format {
            LogFormat::Text => Format::Text,
            LogFormat::Json => Format::Json,
        };
        logs::begin(format, self.log.clone());
        let options = Options {
            data: self.data.clone(),
            listen: self.listen,
            guard: self.guard(),
            drain: self.drain.into(),
            virtual_clock: self.virtual_clock()?,
        };
        let goes_on = format!("what runs may go on for {}", words::length(self.drain.into()));
        let served = until_told(&goes_on, |told| self.serve(options, remote.json, told));
        served.await?
    }

    async fn serve(&self, options: Options, json: bool, told: oneshot::Receiver<()>) -> Outcome {
        let server = Server::start(options).await.map_err(not_started)?;
        let address = server.address().map_err(|error| Trouble::failed(format!("not listening: {error}")))?;
        let held = server.held().await.map_err(Trouble::failed)?;
        self.announce(address, held, json)?;
        let stop = async { drop(told.await) };
        server
            .run(stop)
            .await
            .map_err(|error| Trouble::failed(format!("the scheduler did not stop well: {error}")))
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

    fn guard(&self) -> Guard {
        let mut guard = Guard { allow: self.allow_net.clone(), ..Guard::default() };
        for rule in &self.allow_port {
            match (rule, &mut guard.ports) {
                (PortRule::Any, ports) => *ports = Ports::Any,
                (PortRule::One(port), Ports::These(ports)) => ports.push(*port),
                (PortRule::One(_), Ports::Any) => {}
            }
        }
        guard
    }

    fn announce(&self, address: SocketAddr, held: usize, json: bool) -> Outcome {
        let data = std::path::absolute(&self.data).unwrap_or_else(|_| self.data.clone());
        let url = format!("http://{address}");
        if json {
            return print_json(&json!({"url": url, "data": data, "pid": std::process::id(), "held": held}));
        }
        let ports = match self.guard().ports {
            Ports::Any => "any port".to_owned(),
            Ports::These(ports) => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                format!("ports {}", ports.join(", "))
            }
        };
        let clock = match self.clock {
            ClockChoice::Real => "",
            ClockChoice::Virtual => "\n  clock  virtual: it stands still until `punctual clock advance 1h`",
        };
        let hold = match held {
            0 => String::new(),
            held => format!(
                "\n  hold   {} paused since this folder was restored: `punctual hold show`, then `punctual hold release`",
                words::count(held as u64, "queue")
            ),
        };
        let networks: Vec<String> = self.allow_net.iter().map(|network| format!(", {network}")).collect();
        print(&format!(
            "punctual listens on {url}
  data   {}{hold}{clock}
  calls  the public internet{} ({ports}), and any port of this machine,
         because only this machine can ask it to
  try    curl {url}/v1/queues/hello/tasks -d '{{\"delay\": \"10s\", \"payload\": \"hello\"}}'
  stop   Ctrl-C; what runs may go on for {}",
            data.display(),
            networks.concat(),
            words::length(self.drain.into()),
        ))
    }
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

fn not_started(trouble: ServerTrouble) -> Trouble {
    match trouble {
        ServerTrouble::Listen(..) => Trouble::failed(trouble),
        ServerTrouble::Scheduler(punctual::Error::Folder(error)) => super::trouble::of_folder(&error),
        ServerTrouble::Scheduler(error) => Trouble::new(Exit::Folder, error),
    }
}
