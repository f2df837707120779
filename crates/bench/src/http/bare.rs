//! What there would be without Punctual: a server that takes tasks and forgets them, and a client that makes calls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use clap::Args;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use punctual_client::wire::{NewTask, NewTasks};

use crate::stopwatch::Stopwatch;

#[derive(Args)]
pub struct ServerOptions {
    #[arg(long)]
    listen: SocketAddr,
}

/// Reads tasks as the server does, and answers as it does, with nothing in between.
pub fn serve(options: &ServerOptions) {
    let create = |body: Bytes| async move {
        let read = match body.starts_with(br#"{"tasks""#) {
            true => serde_json::from_slice::<NewTasks>(&body).map(|many| many.tasks.len()),
            false => serde_json::from_slice::<NewTask>(&body).map(|_| 1),
        };
        let tasks = match read {
            Ok(tasks) => tasks,
            Err(error) => return (http::StatusCode::BAD_REQUEST, error.to_string()),
        };
        let id = r#"{"id":"0123456789abcdefghijklmnopq"}"#;
        let body = if tasks == 1 { id.to_owned() } else { format!("[{}]", vec![id; tasks].join(",")) };
        (http::StatusCode::CREATED, body)
    };
    let router =
        Router::new().route("/v1/queues/{queue}/tasks", post(create)).route("/", get(|| async { "here" }));
    runtime().block_on(async {
        let listener = tokio::net::TcpListener::bind(options.listen).await.expect("the port is free");
        axum::serve(listener, router).await.expect("it serves until it is killed");
    });
}

#[derive(Args)]
pub struct CallerOptions {
    /// Where the calls go, in turns.
    #[arg(long, value_delimiter = ',')]
    urls: Vec<String>,
    #[arg(long)]
    calls: usize,
    /// So many are under way at each of them.
    #[arg(long)]
    at_once: usize,
    #[arg(long)]
    body: String,
    /// With the headers that Punctual sends along: without them a call is shorter, for both sides.
    #[arg(long)]
    with_headers: bool,
}

/// What Punctual tells whom it calls, besides the body.
const HEADERS: [(&str, &str); 8] = [
    ("user-agent", "punctual/0.1.0"),
    ("idempotency-key", "0123456789abcdefghijklmnopq"),
    ("webhook-id", "0123456789abcdefghijklmnopq"),
    ("punctual-task", "0123456789abcdefghijklmnopq"),
    ("punctual-queue", "bench"),
    ("punctual-attempt", "1"),
    ("punctual-fence", "4294967297"),
    ("punctual-scheduled-for", "2026-11-18T09:00:00.123456Z"),
];

/// Makes calls in a loop, and prints how many that were in a second.
pub fn call(options: &CallerOptions) {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let made = Arc::new(AtomicUsize::new(0));
    let watch = Stopwatch::start();
    runtime().block_on(async {
        let mut hands = Vec::new();
        for url in &options.urls {
            for _ in 0..options.at_once {
                let (client, made, calls) = (client.clone(), made.clone(), options.calls);
                let (url, body) = (url.clone(), Bytes::from(options.body.clone()));
                let headers = if options.with_headers { &HEADERS[..] } else { &[] };
                hands.push(tokio::spawn(async move {
                    while made.fetch_add(1, Ordering::Relaxed) < calls {
                        let mut request = http::Request::post(url.as_str())
                            .header(http::header::CONTENT_TYPE, "application/json");
                        for (name, value) in headers {
                            request = request.header(*name, *value);
                        }
                        let request = request.body(Full::new(body.clone())).expect("it is a request");
                        let response = client.request(request).await.expect("the target answers");
                        assert!(response.status().is_success());
                        response.into_body().collect().await.expect("the target answers");
                    }
                }));
            }
        }
        for hand in hands {
            hand.await.expect("it does not panic");
        }
    });
    println!("{}", options.calls as f64 / watch.elapsed().as_secs_f64());
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("the machine has threads")
}
