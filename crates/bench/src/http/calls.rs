//! Calls that are due together go out to a few servers of this process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::post;
use tokio::sync::Notify;

use super::Bench;
use super::child::{clean, own_program, printed};
use super::connection::{Connection, request};
use super::enqueue::create;
use super::isolation::bound;
use crate::report::Row;
use crate::stopwatch::Stopwatch;

/// As many as the server lets be under way at one host.
const AT_ONCE: usize = 20;
const HOSTS: usize = 5;
const FILL: usize = 500;
const BODY: &str = r#"{"to":"ada@example.com","subject":"A reminder"}"#;

/// Counts calls, and says when enough have come.
#[derive(Default)]
struct Counted {
    calls: AtomicUsize,
    awaited: AtomicUsize,
    reached: Notify,
}

pub async fn run(bench: &mut Bench<'_>) {
    let counted = Arc::new(Counted::default());
    let mut hosts = Vec::new();
    for _ in 0..HOSTS {
        hosts.push(target(counted.clone()).await);
    }
    let urls: Vec<String> = hosts.iter().map(|host| format!("http://{host}/")).collect();
    let served = bench.punctual("calls").await;
    let calls = bench.options.tasks.next_multiple_of(FILL);
    let (mut ours, mut bare, mut bare_with_headers) = (vec![], vec![], vec![]);
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("calls, round {round}"));
        bare.push(bare_rate(&urls, calls, &[]).await);
        bare_with_headers.push(bare_rate(&urls, calls, &["--with-headers"]).await);
        ours.push(punctual(served.address, &urls, calls, &counted).await);
    }
    let name = "calls that wait in a paused queue";
    bench.note(Row::beside_limit(name, &ours, &bare_with_headers, "≥ 0.5 of the limit"));
    let name = "the same, beside calls without headers";
    bench.note(Row::beside_limit(name, &ours, &bare, ""));
    drop(served);
    clean(&bench.folder.join("calls"));
}

/// How many calls a bare client makes in a second.
async fn bare_rate(urls: &[String], calls: usize, flags: &[&str]) -> f64 {
    let mut command = own_program();
    command.args(["bare-caller", "--urls", &urls.join(","), "--body", BODY]).args(flags);
    command.args(["--calls", &calls.to_string(), "--at-once", &AT_ONCE.to_string()]);
    printed(command).await.trim().parse().expect("it prints a number")
}

async fn target(counted: Arc<Counted>) -> SocketAddr {
    let heard = move |_: axum::body::Bytes| {
        let counted = counted.clone();
        async move { counted.count() }
    };
    let (listener, address) = bound().await;
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", post(heard))).await });
    address
}

/// From when the queue goes on until the last call has come.
async fn punctual(address: SocketAddr, urls: &[String], calls: usize, counted: &Counted) -> f64 {
    let mut connection = Connection::open(address).await.expect("the server listens");
    let mut ask = async |request: Vec<u8>| _ = connection.ask_well(&request).await;
    ask(request("PUT", "/v1/queues/bench", "", "{}")).await;
    ask(request("POST", "/v1/queues/bench:pause", "", "{}")).await;
    let task = |number: usize| {
        let url = &urls[number % urls.len()];
        format!(r#"{{"http":{{"url":"{url}","body":{BODY}}}}}"#)
    };
    let tasks: Vec<String> = (0..FILL).map(task).collect();
    let many = create(&format!(r#"{{"tasks":[{}]}}"#, tasks.join(",")));
    for _ in 0..calls / FILL {
        ask(many.clone()).await;
    }
    counted.expect(calls);
    let watch = Stopwatch::start();
    ask(request("POST", "/v1/queues/bench:resume", "", "{}")).await;
    counted.until_reached().await;
    calls as f64 / watch.elapsed().as_secs_f64()
}

impl Counted {
    fn count(&self) {
        let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if calls == self.awaited.load(Ordering::SeqCst) {
            self.reached.notify_one();
        }
    }

    fn expect(&self, more: usize) {
        self.awaited.store(self.calls.load(Ordering::SeqCst) + more, Ordering::SeqCst);
    }

    async fn until_reached(&self) {
        self.reached.notified().await;
    }
}
