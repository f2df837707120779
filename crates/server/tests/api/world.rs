//! What each test makes for itself: a server on a folder and a port of its own, a client, and a target to be called.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use http::{HeaderMap, Method, StatusCode, Uri};
use punctual::Timestamp;
use punctual::clock::VirtualClock;
use punctual_client::Client;
use punctual_client::wire::Moment;
use punctual_server::{Options, Reload, Server};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A server that runs until it is stopped.
pub struct World {
    pub client: Client,
    pub address: SocketAddr,
    pub data: TempDir,
    pub reload: Reload,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl World {
    pub async fn new() -> World {
        World::on(tempfile::tempdir().expect("the machine can do this")).await
    }

    pub async fn on(data: TempDir) -> World {
        World::with(data, |_| {}).await
    }

    /// A server whose clock stands at this time.
    pub async fn at(time: &str) -> World {
        let data = tempfile::tempdir().expect("the machine can do this");
        let now: Moment = time.parse().expect("it is a time");
        let clock = VirtualClock::at(Timestamp::from_micros(now.as_micros()));
        World::with(data, |options| options.virtual_clock = Some(clock)).await
    }

    /// A server that is told more.
    pub async fn with(data: TempDir, tell: impl FnOnce(&mut Options)) -> World {
        let mut options = options(data.path());
        tell(&mut options);
        let server = Server::start(options).await.expect("the machine can do this");
        let address = server.address().expect("the machine can do this");
        let reload = server.reload();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            server.run(async { stopped.await.unwrap_or_default() }).await.expect("the machine can do this");
        });
        let client = Client::new(&format!("http://{address}")).expect("the machine can do this");
        World { client, address, data, reload, stop: Some(stop), running }
    }

    /// A server that waits for what runs for as long as a test may take.
    pub async fn patient() -> World {
        let data = tempfile::tempdir().expect("the machine can do this");
        World::with(data, |options| options.drain = Duration::from_secs(600)).await
    }

    /// A client with this key.
    pub fn client_with(&self, key: &str) -> Client {
        let client = Client::builder(&format!("http://{}", self.address)).key(key).build();
        client.expect("the machine can do this")
    }

    /// Tells the server to stop in good order.
    pub fn begin_to_stop(&mut self) {
        self.stop.take().map(|stop| stop.send(()).ok());
    }

    /// Stops the server in good order, and leaves its folder.
    pub async fn stop(mut self) -> TempDir {
        self.begin_to_stop();
        drop((self.client, self.reload));
        self.running.await.expect("the machine can do this");
        self.data
    }

    /// A request as `curl` would make it.
    pub async fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        self.ask_with(method, path, &[], body.as_bytes()).await
    }

    pub async fn ask_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("the machine can do this");
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await.expect("the machine can do this");
        stream.write_all(body).await.expect("the machine can do this");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("the machine can do this");
        Answer::read(&bytes)
    }
}

pub fn options(data: &Path) -> Options {
    Options { drain: Duration::from_secs(5), ..Options::new(data, ([127, 0, 0, 1], 0).into()) }
}

/// An answer, as it came.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn read(bytes: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer has a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("it has a status");
        let head = head.to_lowercase();
        let is_chunked = head.contains("transfer-encoding: chunked");
        let body = if is_chunked { joined(body) } else { body.to_owned() };
        Answer { status, head, body }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The status and the code of a problem.
    pub fn problem(&self) -> (u16, String) {
        assert!(self.head.contains("application/problem+json"), "{}", self.head);
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        assert!(problem["instance"].as_str().is_some_and(|path| path.starts_with('/')), "{problem}");
        (self.status, problem["code"].as_str().expect("the machine can do this").to_owned())
    }
}

/// A body that came in chunks, each after its length.
fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a chunk has a length");
        body.push_str(&rest[..length]);
        chunks = rest[length..].strip_prefix("\r\n").expect("a chunk ends");
    }
    body
}

/// A call that came in.
#[derive(Debug)]
pub struct Call {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A server that is called, answers with whatever it is told, and tells of each call.
pub struct Target {
    pub url: String,
    pub calls: mpsc::Receiver<Call>,
}

impl Target {
    pub async fn answering(status: StatusCode) -> Target {
        let (came, calls) = mpsc::channel(100);
        let router = Router::new().fallback(take).with_state((came, status));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("the machine can do this");
        let url = format!("http://{}", listener.local_addr().expect("the machine can do this"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Target { url, calls }
    }

    pub async fn next(&mut self) -> Call {
        self.calls.recv().await.expect("the machine can do this")
    }
}

async fn take(
    State((came, status)): State<(mpsc::Sender<Call>, StatusCode)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    came.try_send(Call { method, uri, headers, body }).ok();
    (status, "{\"thanks\": true}")
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
