//! A server at work: the store, the scheduler, the calls and the API, from start to stop.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use punctual::clock::Clock;
use punctual::{EmbeddedStore, Error};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinHandle};

use crate::api::router;
use crate::app::{App, Scheduler};
use crate::call::{Caller, CallerOptions, Guard};
use crate::callbacks::send_results;
use crate::calls::Calls;
use crate::counts::keep_count;
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
    /// Sends results to those who asked for it.
    sending: AbortHandle,
    /// Counts the tasks that earlier runs have left.
    counting: JoinHandle<()>,
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
        let clock = Clock::system();
        let caller = Caller::new(CallerOptions::new(clock.clone(), guard.clone()));
        let calls = Calls::new(caller);
        let (watch, ended) = Watch::new(clock.clone());
        let scheduler = start_scheduler(&options.data, clock, calls.clone(), watch.clone()).await;
        let scheduler = scheduler.map_err(Trouble::Scheduler)?;
        let app = App::new(scheduler.clone(), guard, watch);
        calls.begin(app.clone());
        let sending = tokio::spawn(send_results(app.clone(), ended)).abort_handle();
        let counting = tokio::spawn(keep_count(app.clone()));
        Ok(Server { listener, app, scheduler, sending, counting, drain: options.drain })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`, then finishes what is under way: attempts that run, and requests that are being answered.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let Server { listener, app, scheduler, sending, counting, drain } = self;
        let told = app.clone();
        let told = async move {
            stop.await;
            told.stop();
        };
        let serving = axum::serve(listener, router(app.clone())).with_graceful_shutdown(told);
        let stopped = async {
            app.stopping().await;
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
        // It holds the store, which others may want to open now.
        sending.abort();
        counting.abort();
        counting.await.ok();
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
    punctual::Scheduler::builder().clock(clock).observer(watch).calls(calls).start(store).await
}
