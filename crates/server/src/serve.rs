//! A server at work: the store, the scheduler, the calls and the API, from start to stop.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use punctual::clock::{Clock, VirtualClock};
use punctual::{EmbeddedStore, Error, FolderOptions};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

use crate::access::{Access, Room};
use crate::api::Api;
use crate::app::{App, Scheduler};
use crate::audit::{self, Audit};
use crate::blocked::{self, BlockedLanes};
use crate::call::{Caller, CallerOptions, Guard, Proxy};
use crate::calls::Calls;
use crate::counts::keep_count;
use crate::debts::{Debts, settle_all};
use crate::keys::{KeyTrouble, Keys};
use crate::lateness::watch_lateness;
use crate::limits::Limits;
use crate::listen::{self, BadTls, Tls, TlsFiles};
use crate::spans::{NoSpans, Spans};
use crate::watch::Watch;

/// How long answers may still go out after the scheduler has stopped.
const LAST_ANSWERS_MAX: Duration = Duration::from_secs(1);
/// What the audit of a server with keys is called, beside its data, if nothing is said.
const AUDIT: &str = "audit.jsonl";

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the tasks are kept.
    pub data: PathBuf,
    /// How the folder is laid out, if it is made.
    pub folder: FolderOptions,
    /// Where it listens.
    pub listen: SocketAddr,
    /// What may be called; where we listen ourselves is added.
    pub guard: Guard,
    /// The way out for calls to others than the guard's own networks; straight if nothing is said.
    pub proxy: Option<Proxy>,
    /// How long what runs may finish when the server stops.
    pub drain: Duration,
    /// For tests: a clock that stands still until it is set forward.
    pub virtual_clock: Option<VirtualClock>,
    /// How much it takes from those who ask.
    pub limits: Limits,
    /// What it proves its name with; without it, it speaks plain HTTP.
    pub tls: Option<TlsFiles>,
    /// A collector that is told spans, over OTLP and HTTP; OpenTelemetry's own variables name one too.
    pub otlp_endpoint: Option<String>,
    /// Where the audit is written; beside the data if nothing is said and there are keys.
    pub audit: Option<PathBuf>,
}

impl Options {
    /// As most servers are started: with these two, and the rest as it suits most.
    pub fn new(data: impl Into<PathBuf>, listen: SocketAddr) -> Options {
        Options {
            data: data.into(),
            folder: FolderOptions::default(),
            listen,
            guard: Guard::default(),
            proxy: None,
            drain: Duration::from_secs(30),
            limits: Limits::default(),
            tls: None,
            audit: None,
            otlp_endpoint: None,
            virtual_clock: None,
        }
    }

    /// Whether a server could be started so, as far as files tell. Nothing is started.
    pub fn check(&self) -> Result<(), Trouble> {
        self.tls.clone().map(Tls::open).transpose().map_err(Trouble::Tls)?;
        Spans::check(self.otlp_endpoint.as_deref()).map_err(Trouble::Spans)
    }
}

/// Why a server did not start.
#[derive(Debug)]
pub enum Trouble {
    /// It could not listen there.
    Listen(SocketAddr, io::Error),
    /// The store or the scheduler did not start.
    Scheduler(Error),
    /// Other machines reach it there, and there are no keys.
    Unguarded(SocketAddr),
    /// It cannot prove its name.
    Tls(BadTls),
    /// The audit cannot be written there.
    Audit(PathBuf, io::Error),
    /// Spans cannot be told.
    Spans(NoSpans),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Listen(address, error) if error.kind() == io::ErrorKind::AddrInUse => write!(
                f,
                "{address} is in use, perhaps by another Punctual: stop it, or listen elsewhere with --listen"
            ),
            Trouble::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Trouble::Scheduler(error) => error.fmt(f),
            Trouble::Unguarded(address) => write!(
                f,
                "{address} can be reached by other machines, and there are no API keys: anyone could schedule calls \
                 from yours"
            ),
            Trouble::Tls(bad) => bad.fmt(f),
            Trouble::Spans(no) => no.fmt(f),
            Trouble::Audit(path, error) => {
                write!(f, "the audit cannot be written to {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for Trouble {}

/// A server that runs.
pub struct Server {
    listener: TcpListener,
    app: App,
    scheduler: Scheduler,
    /// What goes on beside the requests: settling what is owed, looking for lateness, counting blocked lanes.
    beside: [AbortHandle; 3],
    /// Counts the tasks that earlier runs have left.
    counting: JoinHandle<()>,
    tls: Option<Tls>,
    drain: Duration,
}

/// Reads again what may have changed beside a server that runs. Clones are the same.
#[derive(Clone)]
pub struct Reload {
    app: App,
    tls: Option<Tls>,
}

impl Reload {
    /// The certificate and its key are read again, and the audit goes on in a new file if the old one was moved away.
    /// What is wrong is told, and then everything stays as it was.
    pub async fn reload(&self) -> Result<(), BadTls> {
        self.app.access().audit.reopen().await;
        self.tls.as_ref().map_or(Ok(()), Tls::reload)
    }
}

impl Server {
    /// Opens the store, starts the scheduler and listens.
    pub async fn start(options: Options) -> Result<Server, Trouble> {
        let tls = options.tls.clone().map(Tls::open).transpose().map_err(Trouble::Tls)?;
        let spans = Spans::open(options.otlp_endpoint.as_deref()).map_err(Trouble::Spans)?;
        let listener = TcpListener::bind(options.listen).await;
        let listener = listener.map_err(|error| Trouble::Listen(options.listen, error))?;
        let address = listener.local_addr().map_err(|error| Trouble::Listen(options.listen, error))?;
        let mut guard = options.guard.clone();
        guard.own.push(address);
        guard.allow_loopback |= address.ip().is_loopback();
        let clock = options.virtual_clock.clone().map_or_else(Clock::system, Clock::of_tests);
        // Who is called lives in real time, whatever time it is here: signatures carry that.
        let caller_options = CallerOptions::new(Clock::system(), guard.clone());
        let caller = Caller::new(CallerOptions { proxy: options.proxy.clone(), ..caller_options });
        let calls = Calls::new(caller);
        let (debts, heard) = Debts::new();
        let (blocked, taken) = BlockedLanes::new();
        let watch = Watch::new(clock.clone(), debts.clone(), blocked);
        let store = EmbeddedStore::open_with(&options.data, options.folder.clone()).await;
        let store = Arc::new(store.map_err(|error| Trouble::Scheduler(error.into()))?);
        // Before anything is started: what is due must not be called by a server that is then refused.
        let access = open_access(&options, store.clone(), address).await?;
        // And before anything happens that somebody may want to be told of.
        watch.notifications().read(&store, clock.now().wall).await.map_err(Trouble::Scheduler)?;
        let builder =
            punctual::Scheduler::builder().clock(clock).observer(watch.clone()).calls(calls.clone());
        let scheduler = builder.start_shared(store).await.map_err(Trouble::Scheduler)?;
        let app = App::new(scheduler.clone(), guard, watch, access, spans);
        calls.begin(app.clone());
        let beside = [
            tokio::spawn(settle_all(app.clone(), debts, heard)).abort_handle(),
            tokio::spawn(watch_lateness(app.clone())).abort_handle(),
            tokio::spawn(blocked::read_all(app.clone(), taken)).abort_handle(),
        ];
        let counting = tokio::spawn(keep_count(app.clone()));
        tracing::info!(%address, data = %options.data.display(), version = env!("CARGO_PKG_VERSION"), "started");
        Ok(Server { listener, app, scheduler, beside, counting, tls, drain: options.drain })
    }

    /// Whether nobody gets in without a key.
    pub fn needs_keys(&self) -> bool {
        self.app.access().keys.are_needed()
    }

    /// Reads again what may have changed beside it.
    pub fn reload(&self) -> Reload {
        Reload { app: self.app.clone(), tls: self.tls.clone() }
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The queues that are on hold since the data folder was restored.
    pub async fn held(&self) -> Result<usize, Error> {
        Ok(self.scheduler.held().await?.len())
    }

    /// Serves until `stop`, then finishes what is under way: attempts that run, and requests that are being answered.
    /// As long as attempts run it listens, so that workers can report too.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let Server { listener, app, scheduler, beside, counting, tls, drain } = self;
        let (tell, told) = oneshot::channel::<()>();
        let told = async { drop(told.await) };
        let serving = listen::serve(listener, Api::new(app.clone()), app.access().limits.clone(), tls, told);
        let stopped = async {
            stop.await;
            tracing::info!(drain = ?drain, "stopping");
            app.stop();
            scheduler.stop(drain).await
        };
        let mut serving = pin!(serving);
        let stopped = tokio::select! {
            stopped = stopped => stopped,
            () = &mut serving => unreachable!("it is told to end when the scheduler has stopped"),
        };
        // Who waited for a task or a result has been answered, because the scheduler has stopped. A client that keeps its
        // connection busy for longer must not keep the server.
        drop(tell);
        tokio::time::timeout(LAST_ANSWERS_MAX, serving).await.ok();
        // Those whose clients have hung up are on no connection.
        tokio::time::timeout(LAST_ANSWERS_MAX, app.all_done()).await.ok();
        app.access().audit.written().await;
        app.spans().close().await;
        // They hold the store, which others may want to open now.
        beside.iter().for_each(AbortHandle::abort);
        counting.abort();
        counting.await.ok();
        tracing::info!("stopped");
        stopped
    }
}

async fn open_access(
    options: &Options,
    store: Arc<EmbeddedStore>,
    address: SocketAddr,
) -> Result<Access, Trouble> {
    let keys = Keys::open(store).await.map_err(|trouble| match trouble {
        KeyTrouble::Store(error) => Trouble::Scheduler(error),
        _ => Trouble::Scheduler(Error::Unknown),
    })?;
    if !keys.are_needed() && !address.ip().is_loopback() {
        return Err(Trouble::Unguarded(address));
    }
    let is_audited = options.audit.is_some();
    let path = options.audit.clone().unwrap_or_else(|| options.data.join(AUDIT));
    // Whoever wants an audit hears at once that there can be none.
    let audit = if is_audited || keys.are_needed() { audit::can_write(&path) } else { Ok(()) };
    let audit = audit.and_then(|()| Audit::new(path.clone()));
    let audit = audit.map_err(|error| Trouble::Audit(path, error))?;
    let limits = Arc::new(listen::within_the_machine(options.limits.clone()));
    let room = Room::new(limits.in_flight_max);
    Ok(Access { keys, audit, is_audited, limits, room })
}
