//! Tasks are put in: one to a request, and a thousand to a request. Each on a server of its own: what one has left to
//! sort into tables would go on while the next is measured.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::Bench;
use super::child::clean;
use super::connection::{Connection, request};
use crate::report::{Row, Unit, median};
use crate::stopwatch::Stopwatch;

const CONNECTIONS: usize = 50;
const BULK_CONNECTIONS: usize = 4;
const BULK: usize = 1_000;
/// Due when nobody who runs this lives any more, so that nothing starts meanwhile.
pub const TASK: &str = r#"{"at":"2200-01-01T00:00:00Z","payload":{"to":"ada@example.com","subject":"A reminder","text":"Your parcel will be there between nine and ten."}}"#;

/// One task to a request, in turns with a server that does nothing.
pub async fn one_by_one(bench: &mut Bench<'_>) {
    let served = bench.punctual("one-by-one").await;
    let bare = bench.bare_server().await;
    let (time, one) = (bench.time(), create(TASK));
    let (mut rates, mut bare_rates, mut costs, mut bare_costs) = (vec![], vec![], vec![], vec![]);
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("one by one, round {round}"));
        for (server, rates, costs) in
            [(&bare, &mut bare_rates, &mut bare_costs), (&served, &mut rates, &mut costs)]
        {
            let before = server.processor_secs();
            rates.push(closed(server.address, &one, CONNECTIONS, 1, time).await);
            let requests = rates[round - 1] * time.as_secs_f64();
            costs.push((server.processor_secs() - before) / requests * 1e6);
        }
    }
    let name = "enqueue, 50 connections, one by one";
    bench.note(Row::beside_limit(name, &rates, &bare_rates, "≥ 0.6 of the limit"));
    let (cost, bare_cost) = (median(costs.into_iter()), median(bare_costs.into_iter()));
    let row = Row::new("the server's processor time for each of these", cost, Unit::Microseconds, "");
    bench.note(row.within(bare_cost));
    drop(served);
    clean(&bench.folder.join("one-by-one"));
}

/// A thousand tasks to a request.
pub async fn bulk(bench: &mut Bench<'_>) {
    let served = bench.punctual("bulk").await;
    let bare = bench.bare_server().await;
    let many = create(&format!(r#"{{"tasks":[{}]}}"#, vec![TASK; BULK].join(",")));
    let (mut rates, mut bare_rates) = (vec![], vec![]);
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("bulk, round {round}"));
        bare_rates.push(closed(bare.address, &many, BULK_CONNECTIONS, BULK, bench.time()).await);
        rates.push(closed(served.address, &many, BULK_CONNECTIONS, BULK, bench.time()).await);
    }
    let name = "enqueue, 4 connections, 1,000 a request";
    bench.note(Row::beside_limit(name, &rates, &bare_rates, "≥ 200 k/s"));
    drop(served);
    clean(&bench.folder.join("bulk"));
}

/// How long answers take at half of what the server can do, on one that has not been under full load just before; and how
/// long those of a server that does nothing take at the same rate, in turns: what the machine itself holds up.
pub async fn half_load(bench: &mut Bench<'_>) {
    let (served, one) = (bench.punctual("full-load").await, create(TASK));
    bench.tell("full load, to know what half of it is");
    let half = closed(served.address, &one, CONNECTIONS, 1, bench.time()).await / 2.0;
    drop(served);
    clean(&bench.folder.join("full-load"));
    let (served, bare) = (bench.punctual("half-load").await, bench.bare_server().await);
    let (mut answers, mut bare_answers) = (vec![], vec![]);
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("half load, round {round}"));
        bare_answers.push(paced(bare.address, &one, half, bench.time()).await);
        answers.push(paced(served.address, &one, half, bench.time()).await);
    }
    for (name, quantile, goal) in [("p50", 0.5, ""), ("p99", 0.99, "< 5 ms"), ("p99.9", 0.999, "")] {
        let millis = |rounds: &[Histogram<u64>]| {
            median(rounds.iter().map(|answers| answers.value_at_quantile(quantile) as f64 / 1e3))
        };
        let work = format!("answer {name} at half load ({half:.0}/s)");
        let row = Row::new(work, millis(&answers), Unit::Milliseconds, goal);
        bench.note(row.within(millis(&bare_answers)));
    }
    drop(served);
    clean(&bench.folder.join("half-load"));
}

pub fn create(body: &str) -> Vec<u8> {
    create_in("bench", body)
}

pub fn create_in(queue: &str, body: &str) -> Vec<u8> {
    request("POST", &format!("/v1/queues/{queue}/tasks"), "Prefer: return=minimal\r\n", body)
}

/// Tasks a second, when each connection sends its next request as soon as the last one is answered.
async fn closed(
    address: SocketAddr,
    request: &[u8],
    connections: usize,
    tasks: usize,
    time: Duration,
) -> f64 {
    let request: Arc<[u8]> = request.into();
    let watch = Arc::new(Stopwatch::start());
    let hands: Vec<_> = (0..connections)
        .map(|_| {
            let (request, watch) = (request.clone(), watch.clone());
            tokio::spawn(async move {
                let mut connection = Connection::open(address).await.expect("the server listens");
                let mut requests = 0;
                while watch.elapsed() < time {
                    connection.ask_well(&request).await;
                    requests += 1;
                }
                requests
            })
        })
        .collect();
    let mut requests = 0;
    for hand in hands {
        requests += hand.await.expect("it does not panic");
    }
    (requests * tasks) as f64 / watch.elapsed().as_secs_f64()
}

/// So many requests a second, whether the ones before are answered or not: a request that had to wait for its connection
/// has waited since its time. One whose connection was free has waited since it was sent: that this program's timer woke
/// it up to two milliseconds late is not the server's doing.
async fn paced(address: SocketAddr, request: &[u8], rate: f64, time: Duration) -> Histogram<u64> {
    let request: Arc<[u8]> = request.into();
    let watch = Arc::new(Stopwatch::start());
    let gap = Duration::from_secs_f64(CONNECTIONS as f64 / rate);
    let hands: Vec<_> = (0..CONNECTIONS as u32)
        .map(|number| {
            let (request, watch) = (request.clone(), watch.clone());
            tokio::spawn(async move {
                let mut connection = Connection::open(address).await.expect("the server listens");
                let mut answers = histogram();
                let mut due = gap * number / CONNECTIONS as u32;
                while due < time {
                    let mut since = due;
                    if let Some(early) = due.checked_sub(watch.elapsed()) {
                        wait(early).await;
                        since = watch.elapsed();
                    }
                    connection.ask_well(&request).await;
                    answers.saturating_record(watch.elapsed().saturating_sub(since).as_micros() as u64);
                    due += gap;
                }
                answers
            })
        })
        .collect();
    together(hands).await
}

#[expect(clippy::disallowed_methods, reason = "a load of so many a second goes by the clock")]
async fn wait(time: Duration) {
    tokio::time::sleep(time).await;
}

async fn together(hands: Vec<tokio::task::JoinHandle<Histogram<u64>>>) -> Histogram<u64> {
    let mut all = histogram();
    for hand in hands {
        all.add(hand.await.expect("it does not panic")).expect("they have the same bounds");
    }
    all
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are constant and right")
}
