//! Connections: taken up to a limit, each bounded in time and size, and served until the server stops.

mod answering;
mod files;
mod full_head;
mod patience;
mod tls;
mod turned_away;
mod unread;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::api::Api;
use crate::limits::Limits;
use answering::Answering;
use patience::{Patient, Progress};
use turned_away::turn_away;
use unread::{Watched, goes_on};

pub use files::within_the_machine;
pub use tls::{BadTls, Tls, TlsFiles};

/// How long to wait after a connection could not be taken: the machine has no room for more at the moment.
const NO_ROOM_WAIT: Duration = Duration::from_millis(100);

/// What all connections share.
#[derive(Clone)]
struct Shared {
    api: Api,
    http: Builder,
    limits: Arc<Limits>,
    tls: Option<Tls>,
    stopping: watch::Receiver<bool>,
}

/// Serves until `stop`, then finishes the requests that are being answered.
pub async fn serve(
    listener: TcpListener,
    api: Api,
    limits: Arc<Limits>,
    tls: Option<Tls>,
    stop: impl Future<Output = ()>,
) {
    let connections_max = limits.connections_max;
    let slots = Arc::new(Semaphore::new(connections_max as usize));
    let (tell, stopping) = watch::channel(false);
    let shared = Shared { api, http: http(&limits), limits, tls, stopping };
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => match slots.clone().try_acquire_owned() {
                Ok(slot) => drop(tokio::spawn(shared.clone().connection(stream, peer, slot))),
                Err(_) => turn_away(stream, shared.tls.is_some()),
            },
            Err(error) => not_taken(&error).await,
        }
    }
    drop(listener);
    tell.send_replace(true);
    // All slots are free when all connections have ended.
    drop(slots.acquire_many(connections_max).await);
}

fn http(limits: &Limits) -> Builder {
    let mut http = Builder::new();
    // Without a timer: its own would be set and stopped for every request. `Patient` counts instead.
    http.header_read_timeout(None).max_buf_size(limits.head_max);
    http
}

/// One that was gone before it was taken is no trouble; anything else is the machine's, and passes.
async fn not_taken(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        return;
    }
    eprintln!("punctual: a connection could not be taken: {error}");
    tokio::time::timeout(NO_ROOM_WAIT, std::future::pending::<()>()).await.ok();
}

impl Shared {
    async fn connection(self, stream: TcpStream, peer: SocketAddr, _slot: OwnedSemaphorePermit) {
        stream.set_nodelay(true).ok();
        match &self.tls {
            None => self.exchange(stream, peer).await,
            Some(tls) => {
                let agreed = tokio::time::timeout(self.limits.head_timeout, tls.acceptor().accept(stream));
                if let Ok(Ok(stream)) = agreed.await {
                    self.exchange(stream, peer).await;
                }
            }
        }
    }

    /// Requests and answers, until one side has enough.
    async fn exchange<S>(&self, stream: S, peer: SocketAddr)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let progress = Progress::default();
        let stream = Patient::new(stream, progress.clone(), &self.limits);
        let api = self.api.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            progress.begin();
            let is_kept_back = request.headers().contains_key(EXPECT);
            let request = request.map(|body| Body::new(Watched::new(body, is_kept_back, progress.clone())));
            let (answering, progress) = (api.answer(request, peer), progress.clone());
            async move {
                let mut answer = answering.await;
                if !goes_on(&progress).await {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(answer.map(|body| Answering::new(body, progress)))
            }
        });
        let mut serving = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        let mut stopping = self.stopping.clone();
        tokio::select! {
            _ = serving.as_mut() => return,
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
        serving.as_mut().graceful_shutdown();
        serving.await.ok();
    }
}
