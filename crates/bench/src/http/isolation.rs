//! Calls to healthy hosts, beside a host of the same queue that never answers, and beside a paused queue in which very many
//! tasks are due: how late they come, each time in turns with calls that have nothing beside them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use tokio::net::TcpListener;

use super::Bench;
use super::child::{Served, clean};
use super::connection::{Connection, request};
use super::enqueue::create_in;
use crate::report::{Row, Unit, median};
use crate::stopwatch::wall_now;

const HEALTHY: usize = 99;
const CALLS_PER_SECOND: usize = 1_000;
/// Calls to the host that hangs, for every healthy call.
const HANGING_SHARE: usize = 10;
/// So long before they are due, calls are scheduled.
const AHEAD_MICROS: i64 = 2_000_000;
const BATCH: usize = 500;

/// How late each call came, in microseconds.
type Late = Arc<Mutex<Vec<i64>>>;

/// Who is called.
struct Hosts {
    healthy: Vec<SocketAddr>,
    hanging: SocketAddr,
    late: Late,
}

pub async fn run(bench: &mut Bench<'_>) {
    let hosts = Hosts::listen().await;
    let served = bench.punctual("isolation").await;
    let (mut alone, mut beside) = (vec![], vec![]);
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("healthy hosts alone, and beside one that hangs, round {round}"));
        alone.push(bench.healthy_p99(&served, &hosts, false).await);
        beside.push(bench.healthy_p99(&served, &hosts, true).await);
    }
    bench.note_pair("p99 lateness of 99 hosts beside one that hangs", &alone, &beside);
    bench.tell("filling a paused queue");
    fill_paused(&served, bench.options.behind).await;
    let mut paused = vec![];
    for _ in 0..bench.options.rounds {
        paused.push(bench.healthy_p99(&served, &hosts, false).await);
    }
    let what = format!("p99 lateness beside {} due in a paused queue", bench.options.behind);
    bench.note_pair(&what, &alone, &paused);
    drop(served);
    clean(&bench.folder.join("isolation"));
}

impl Bench<'_> {
    /// Milliseconds; the limit is the same without what is beside it.
    fn note_pair(&mut self, what: &str, alone: &[f64], beside: &[f64]) {
        let figure = median(beside.iter().copied());
        let row = Row::new(what, figure, Unit::Milliseconds, "as without it");
        self.note(row.within(median(alone.iter().copied())));
    }

    async fn healthy_p99(&self, served: &Served, hosts: &Hosts, with_hanging: bool) -> f64 {
        let calls = CALLS_PER_SECOND * self.options.seconds as usize;
        let begin = wall_now() + AHEAD_MICROS;
        let mut connection = Connection::open(served.address).await.expect("the server listens");
        let mut tasks = Vec::with_capacity(BATCH);
        for number in 0..calls {
            let due = begin + (number * 1_000_000 / CALLS_PER_SECOND) as i64;
            tasks.push(call(hosts.healthy[number % HEALTHY], due));
            if with_hanging && number % HANGING_SHARE == 0 {
                tasks.push(call(hosts.hanging, due));
            }
            if tasks.len() >= BATCH || number + 1 == calls {
                let body = format!(r#"{{"tasks":[{}]}}"#, tasks.join(","));
                connection.ask_well(&create_in("calls", &body)).await;
                tasks.clear();
            }
        }
        hosts.p99_of(calls).await
    }
}

/// A call that carries when it is due. If it is not answered, it is not made again while we look.
fn call(host: SocketAddr, due: i64) -> String {
    let (secs, micros) = (due / 1_000_000, due % 1_000_000);
    let at = jiff::Timestamp::new(secs, micros as i32 * 1_000).expect("it is a time of today");
    format!(r#"{{"at":"{at}","http":{{"url":"http://{host}/","body":"{due}","timeout":"10s"}}}}"#)
}

async fn fill_paused(served: &Served, count: usize) {
    let mut connection = Connection::open(served.address).await.expect("the server listens");
    connection.ask_well(&request("PUT", "/v1/queues/paused", "", "{}")).await;
    connection.ask_well(&request("POST", "/v1/queues/paused/pause", "", "{}")).await;
    let body = format!(r#"{{"tasks":[{}]}}"#, vec![r#"{"payload":1}"#; BATCH].join(","));
    let many = create_in("paused", &body);
    for _ in 0..count.div_ceil(BATCH) {
        connection.ask_well(&many).await;
    }
}

impl Hosts {
    async fn listen() -> Hosts {
        let late = Late::default();
        let mut healthy = Vec::with_capacity(HEALTHY);
        for _ in 0..HEALTHY {
            let late = late.clone();
            let heard = move |body: Bytes| {
                let due =
                    str::from_utf8(&body).ok().and_then(|due| due.trim_matches('"').parse::<i64>().ok());
                let came = wall_now() - due.expect("it carries when it was due");
                late.lock().expect("nobody panics").push(came);
                async {}
            };
            let (listener, address) = bound().await;
            tokio::spawn(async move { axum::serve(listener, Router::new().route("/", post(heard))).await });
            healthy.push(address);
        }
        let (listener, hanging) = bound().await;
        tokio::spawn(async move {
            let mut silent = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                silent.push(connection);
            }
        });
        Hosts { healthy, hanging, late }
    }

    /// When so many have come, the lateness that one in a hundred exceeds, in milliseconds.
    #[expect(clippy::disallowed_methods, reason = "calls come from another process")]
    async fn p99_of(&self, calls: usize) -> f64 {
        while self.late.lock().expect("nobody panics").len() < calls {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let mut late = std::mem::take(&mut *self.late.lock().expect("nobody panics"));
        late.sort_unstable();
        late[calls * 99 / 100] as f64 / 1e3
    }
}

/// A port of this process.
pub async fn bound() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let address = listener.local_addr().expect("it has an address");
    (listener, address)
}
