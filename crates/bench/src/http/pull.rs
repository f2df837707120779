//! Tasks that are due are taken out and acknowledged, a hundred at a time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Bench;
use super::child::clean;
use super::connection::{Connection, request};
use super::enqueue::create;
use crate::report::{Row, Unit, median};
use crate::stopwatch::Stopwatch;

const CONNECTIONS: usize = 16;
const BATCH: usize = 100;
const FILL: usize = 1_000;
const TASK: &str = r#"{"payload":{"to":"ada@example.com","subject":"A reminder","text":"Your parcel will be there between nine and ten."}}"#;

#[derive(Deserialize)]
struct Reserved<'a> {
    #[serde(borrow)]
    tasks: Vec<Held<'a>>,
}

#[derive(Deserialize, Serialize)]
struct Held<'a> {
    id: &'a str,
    token: &'a str,
}

#[derive(Serialize)]
struct Acks<'a> {
    tasks: &'a [Held<'a>],
}

pub async fn run(bench: &mut Bench<'_>) {
    let served = bench.punctual("pull").await;
    let mut rates = Vec::new();
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("pull, round {round}"));
        fill(served.address, bench.options.tasks).await;
        let watch = Arc::new(Stopwatch::start());
        let hands: Vec<_> =
            (0..CONNECTIONS).map(|_| tokio::spawn(drain(served.address, watch.clone()))).collect();
        let (mut done, mut until) = (0, Duration::ZERO);
        for hand in hands {
            let (tasks, last) = hand.await.expect("it does not panic");
            done += tasks;
            until = until.max(last);
        }
        assert_eq!(done, bench.options.tasks.next_multiple_of(FILL), "every task is handed out once");
        rates.push(done as f64 / until.as_secs_f64());
    }
    let rate = median(rates.into_iter());
    bench.note(Row::new(
        "reserve and ack, 16 connections, 100 a request",
        rate,
        Unit::PerSecond,
        "≥ 150 k/s",
    ));
    drop(served);
    clean(&bench.folder.join("pull"));
}

async fn fill(address: SocketAddr, tasks: usize) {
    let mut connection = Connection::open(address).await.expect("the server listens");
    let many = create(&format!(r#"{{"tasks":[{}]}}"#, vec![TASK; FILL].join(",")));
    for _ in 0..tasks.div_ceil(FILL) {
        connection.ask_well(&many).await;
    }
}

/// Takes tasks out until there are none: how many, and when the last of them was acknowledged. After that it waits a
/// while for more, which is no work.
async fn drain(address: SocketAddr, watch: Arc<Stopwatch>) -> (usize, Duration) {
    let mut connection = Connection::open(address).await.expect("the server listens");
    let reserve =
        request("POST", "/v1/queues/bench/reserve", "", &format!(r#"{{"max":{BATCH},"wait":"1s"}}"#));
    let (mut done, mut last) = (0, Duration::ZERO);
    loop {
        let answer = connection.ask_well(&reserve).await;
        let reserved: Reserved<'_> = serde_json::from_slice(answer).expect("tasks come back");
        if reserved.tasks.is_empty() {
            return (done, last);
        }
        done += reserved.tasks.len();
        let acks = serde_json::to_string(&Acks { tasks: &reserved.tasks }).expect("it is plain data");
        connection.ask_well(&request("POST", "/v1/queues/bench/ack", "", &acks)).await;
        last = watch.elapsed();
    }
}
