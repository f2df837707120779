//! Servers to call, attempts to call them with, and callers to do it.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use bytes::Bytes;
use punctual::clock::Clock;
use punctual_core::{
    Attempt, Epoch, Outcome, PartitionId, Priority, QueueId, Route, Seq, Spec, Target, TaskId, Timestamp,
    Token, WaitState,
};
use punctual_server::call::{Call, Caller, CallerOptions, Guard, QueueRules, Resolve, Resolved};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

/// Longer than anything here takes, unless it hangs.
pub const LONG: Duration = Duration::from_secs(20);
/// For what is meant to run out of time.
pub const SHORT: Duration = Duration::from_millis(250);

/// A server that counts its connections.
pub struct Served {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
}

impl Served {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// A well-behaved server.
pub async fn serve(router: Router) -> Served {
    serve_at("127.0.0.1:0", router).await
}

pub async fn serve_at(address: &str, router: Router) -> Served {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    let counted = listener.tap_io(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    tokio::spawn(async move { axum::serve(counted, router).await });
    Served { address, connections }
}

/// A server that does with each connection whatever it likes.
pub async fn serve_raw<F, Fut>(behave: F) -> Served
where
    F: Fn(TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(behave(connection));
        }
    });
    Served { address, connections }
}

/// Reads the head of a request, and what came with it.
pub async fn read_head(connection: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        if connection.read_buf(&mut bytes).await.unwrap() == 0 {
            break;
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Returns when the other side has closed the connection.
pub async fn closed(connection: &mut TcpStream) {
    let mut sink = [0; 1024];
    while !matches!(connection.read(&mut sink).await, Ok(0) | Err(_)) {}
}

/// A wait on the server's side that is part of how it behaves.
pub async fn pause(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

pub fn options() -> CallerOptions {
    let guard = Guard { allow_loopback: true, ..Guard::default() };
    CallerOptions { native_roots: false, ..CallerOptions::new(Clock::system(), guard) }
}

pub fn caller() -> Caller {
    Caller::new(options())
}

/// The first attempt of a task that was due just now.
pub fn attempt() -> Attempt {
    let at = Clock::system().now().wall + Duration::from_secs(1);
    let id = TaskId {
        route: Route::of("a"),
        queue: QueueId(7),
        priority: Priority::default(),
        birth: at,
        seq: Seq(42),
    };
    Attempt {
        token: Token { id, epoch: Epoch(3), attempt: 1 },
        spec: Arc::new(Spec::new(Target::Destination("a".into()), at)),
        was: WaitState::Scheduled,
        partition: PartitionId(0),
        timeout: LONG,
        may_be_repeated: false,
    }
}

pub fn attempt_no(number: u32) -> Attempt {
    let mut attempt = attempt();
    attempt.token.attempt = number;
    attempt.may_be_repeated = number > 1;
    attempt
}

pub fn attempt_due(at: Timestamp) -> Attempt {
    let mut attempt = attempt();
    Arc::make_mut(&mut attempt.spec).at = at;
    attempt
}

pub fn attempt_with(payload: &'static str) -> Attempt {
    let mut attempt = attempt();
    Arc::make_mut(&mut attempt.spec).payload = Bytes::from_static(payload.as_bytes());
    attempt
}

pub fn attempt_within(timeout: Duration) -> Attempt {
    Attempt { timeout, ..attempt() }
}

pub fn get(url: impl Into<String>) -> Call {
    Call { method: "GET".into(), ..Call::post(url) }
}

pub fn rules() -> Arc<QueueRules> {
    Arc::new(QueueRules { queue: "mail".into(), ..QueueRules::default() })
}

/// The outcome of one call as usual.
pub async fn outcome(caller: &Caller, attempt: Attempt, call: Call) -> Outcome {
    caller.run(attempt, call, rules()).await
}

pub fn error(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed { error, .. } | Outcome::Refused { error, .. } | Outcome::GaveUp(error) => {
            error.to_string()
        }
        other => panic!("it should have failed: {other:?}"),
    }
}

pub fn result(outcome: Outcome) -> serde_json::Value {
    match outcome {
        Outcome::Succeeded(result) => serde_json::from_slice(&result).unwrap(),
        other => panic!("it should have succeeded: {other:?}"),
    }
}

/// Answers with one list of addresses after the other, and then with the last for ever.
pub struct Scripted {
    pub answers: Vec<Vec<IpAddr>>,
    pub asked: AtomicUsize,
}

impl Scripted {
    pub fn new(answers: &[&[&str]]) -> Arc<Scripted> {
        let parse = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Scripted { answers: answers.iter().map(parse).collect(), asked: AtomicUsize::new(0) })
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolve for Scripted {
    fn resolve(&self, _: &str) -> Resolved {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst).min(self.answers.len() - 1);
        let answer = self.answers[turn].clone();
        Box::pin(async move { Ok(answer) })
    }
}
