//! A server at work: the store, the scheduler, the calls and the API, from start to stop.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use punctual::clock::{Clock, VirtualClock};
use punctual::{EmbeddedStore, Error};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::api::router;
use crate::app::{App, Scheduler};
use crate::blocked::{self, BlockedLanes};
use crate::call::{Caller, CallerOptions, Guard};
use crate::calls::Calls;
use crate::debts::{Debts, settle_all};
use crate::lateness::watch_lateness;
use crate::watch::Watch;

/// How long answers may still go out after the scheduler has stopped.
const LAST_ANSWERS_MAX: Duration = Duration::from_secs(1);

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the tasks are kept.
    pub data: PathBuf,
    /// Where it listens.
    pub listen: SocketAddr,
    /// What may be called; where we listen ourselves is added.
    pub guard: Guard,
    /// How long what runs may finish when the server stops.
    pub drain: Duration,
    /// For tests: a clock that stands still until it is set forward.
    pub virtual_clock: Option<VirtualClock>,
}

/// Why a server did not start.
#[derive(Debug)]
pub enum Trouble {
    /// It could not listen there.
    Listen(SocketAddr, io::Error),
    /// The store or the scheduler did not start.
    Scheduler(Error),
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
    drain: Duration,
}

impl Server {
    /// Opens the store, starts the scheduler and listens.
    pub async fn start(options: Options) -> Result<Server, Trouble> {
        let listener = TcpListener::bind(options.listen).await;
        let listener = listener.map_err(|error| Trouble::Listen(options.listen, error))?;
        let address = listener.local_addr().map_err(|error| Trouble::Listen(options.listen, error))?;
        let mut guard = options.guard;
        guard.own.push(address);
        guard.allow_loopback |= address.ip().is_loopback();
        let clock = options.virtual_clock.map_or_else(Clock::system, Clock::of_tests);
        // Who is called lives in real time, whatever time it is here: signatures carry that.
        let caller = Caller::new(CallerOptions::new(Clock::system(), guard.clone()));
        let calls = Calls::new(caller);
        let (debts, heard) = Debts::new();
        let (blocked, taken) = BlockedLanes::new();
        let watch = Watch::new(clock.clone(), debts.clone(), blocked);
        let scheduler = start_scheduler(&options.data, clock, calls.clone(), watch.clone()).await;
        let scheduler = scheduler.map_err(Trouble::Scheduler)?;
        let app = App::new(scheduler.clone(), guard, watch);
        calls.begin(app.clone());
        let settling = tokio::spawn(settle_all(app.clone(), debts, heard)).abort_handle();
        let looking = tokio::spawn(watch_lateness(app.clone())).abort_handle();
        tracing::info!(%address, data = %options.data.display(), version = env!("CARGO_PKG_VERSION"), "started");
        let counting = tokio::spawn(blocked::read_all(app.clone(), taken)).abort_handle();
        Ok(Server { listener, app, scheduler, beside: [settling, looking, counting], drain: options.drain })
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
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let Server { listener, app, scheduler, beside, drain } = self;
        let told = app.clone();
        let told = async move {
            stop.await;
            told.stop();
        };
        let serving = axum::serve(listener, router(app.clone())).with_graceful_shutdown(told);
        let stopped = async {
            app.stopping().await;
            tracing::info!(drain = ?drain, "stopping");
            scheduler.stop(drain).await
        };
        let (mut serving, mut stopped) = (pin!(serving.into_future()), pin!(stopped));
        // Who waits for a task or a result is answered because the scheduler stops. A client that keeps its connection
        // busy for longer must not keep the server.
        let stopped = tokio::select! {
            _ = &mut serving => stopped.await,
            result = &mut stopped => {
                tokio::time::timeout(LAST_ANSWERS_MAX, serving).await.ok();
                result
            }
        };
        // They hold the store, which others may want to open now.
        beside.iter().for_each(AbortHandle::abort);
        tracing::info!("stopped");
        stopped
    }
}

async fn start_scheduler(
    data: &std::path::Path,
    clock: Clock,
    calls: Calls,
    watch: Watch,
) -> Result<Scheduler, Error> {
    let store = EmbeddedStore::open(data).await?;
    // Before anything happens that somebody may want to be told of.
    watch.notifications().read(&store, clock.now().wall).await?;
    punctual::Scheduler::builder().clock(clock).observer(watch).calls(calls).start(store).await
}
