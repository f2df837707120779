//! A server that keeps everything in memory, does as it is told, and writes down what it is asked.

mod answers;
mod tasks;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use punctual_client::wire::Problem;
use punctual_client::{Client, ClientBuilder};
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, watch};

pub use tasks::Tasks;

/// A server, and all that a test wants to know of it.
#[derive(Clone)]
pub struct Server {
    /// Nobody can connect while this is set.
    pub is_down: Arc<AtomicBool>,
    connections: mpsc::Sender<DuplexStream>,
    pub world: Arc<World>,
}

/// What the server has, and what it was asked.
pub struct World {
    pub tasks: Mutex<Tasks>,
    /// Counts all that happens, so that a test can wait for it.
    pub changed: watch::Sender<u64>,
    asked: Mutex<Vec<Asked>>,
    faults: Mutex<VecDeque<(&'static str, Fault)>>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method, path and query.
    pub line: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What is to go wrong, once.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It answers with this problem, and does nothing.
    Refuse(u16, &'static str),
    /// It does what is asked, and the connection ends before the answer.
    LoseAnswer,
    /// It never answers.
    Hang,
}

impl Server {
    pub async fn start() -> Server {
        let (connections, incoming) = mpsc::channel(16);
        let world = Arc::new(World {
            tasks: Mutex::new(Tasks::default()),
            changed: watch::Sender::new(0),
            asked: Mutex::default(),
            faults: Mutex::default(),
        });
        let app = Router::new().fallback(answer).with_state(world.clone());
        tokio::spawn(async { axum::serve(Listener(incoming), app).await });
        Server { is_down: Arc::default(), connections, world }
    }

    pub fn client(&self) -> Client {
        self.client_with(|builder| builder)
    }

    pub fn client_with(&self, more: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Client {
        let builder = more(Client::builder("http://punctual.test"));
        builder.build_over(Connector { server: self.clone() }).expect("the address is good")
    }

    /// The next request whose line contains this goes wrong.
    pub fn fail(&self, line: &'static str, fault: Fault) {
        self.world.faults.lock().expect("no test panics with it").push_back((line, fault));
    }

    /// The requests so far whose line contains this.
    pub fn asked(&self, line: &str) -> Vec<Asked> {
        let asked = self.world.asked.lock().expect("no test panics with it");
        asked.iter().filter(|asked| asked.line.contains(line)).cloned().collect()
    }

    /// Waits until something is true of the server.
    pub async fn until(&self, what: impl Fn(&Server) -> bool) {
        let mut changed = self.world.changed.subscribe();
        while !what(self) {
            changed.changed().await.expect("the server is there");
        }
    }
}

impl World {
    pub fn tasks(&self) -> std::sync::MutexGuard<'_, Tasks> {
        self.tasks.lock().expect("no test panics with it")
    }

    pub fn has_changed(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

async fn answer(
    State(world): State<Arc<World>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let line = format!("{method} {uri}");
    // Streams are read as they come.
    let (body, stream) = if line.contains("/stream-queue/tasks") {
        (Bytes::new(), Some(body))
    } else {
        (axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default(), None)
    };
    let asked = Asked { line: line.clone(), headers, body };
    world.asked.lock().expect("no test panics with it").push(asked.clone());
    world.has_changed();
    let fault = {
        let mut faults = world.faults.lock().expect("no test panics with it");
        let at = faults.iter().position(|(part, _)| line.contains(part));
        at.and_then(|at| faults.remove(at)).map(|(_, fault)| fault)
    };
    match fault {
        Some(Fault::Refuse(status, code)) => problem(Problem::new(status, code, "as the test wants it", "")),
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::LoseAnswer) => {
            answers::answer(&world, &asked, stream).await;
            let broken = futures_util::stream::once(async { Err::<Bytes, _>(std::io::Error::other("lost")) });
            Response::new(Body::from_stream(broken))
        }
        None => answers::answer(&world, &asked, stream).await,
    }
}

pub fn problem(problem: Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).expect("a status");
    let mut response = json(status, &problem);
    let kind = http::HeaderValue::from_static(Problem::MEDIA_TYPE);
    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("7"));
    }
    response
}

pub fn json(status: StatusCode, value: &impl serde::Serialize) -> Response {
    let mut response = Response::new(Body::from(serde_json::to_vec(value).expect("it can be written")));
    *response.status_mut() = status;
    response
}

/// Accepts connections made of memory.
struct Listener(mpsc::Receiver<DuplexStream>);

impl axum::serve::Listener for Listener {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.recv().await {
            Some(connection) => (connection, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Makes connections of memory.
#[derive(Clone)]
struct Connector {
    server: Server,
}

impl tower_service::Service<Uri> for Connector {
    type Response = Wire;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Wire, std::io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let server = self.server.clone();
        Box::pin(async move {
            if server.is_down.load(Ordering::Relaxed) {
                server.world.has_changed();
                return Err(std::io::ErrorKind::ConnectionRefused.into());
            }
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            server.connections.send(theirs).await.map_err(|_| std::io::ErrorKind::ConnectionRefused)?;
            Ok(Wire(TokioIo::new(ours)))
        })
    }
}

/// Our end of a connection.
pub struct Wire(TokioIo<DuplexStream>);

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
