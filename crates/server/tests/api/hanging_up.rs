//! Clients that hang up: what they asked for is done to its end, kept and written down; nothing is handed to them.

use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::world::{Answer, World};

/// Sends a request, and does not wait for the answer.
async fn ask_and_hang_up(world: &World, path: &str, headers: &str, body: &str) {
    let mut stream = TcpStream::connect(world.address).await.expect("the machine can do this");
    let length = body.len();
    let request =
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("the machine can do this");
    stream.shutdown().await.expect("the machine can do this");
}

async fn count(world: &World) -> usize {
    let listed = world.ask("GET", "/v1/tasks?limit=1000", "").await.json();
    listed["tasks"].as_array().expect("there is a list").len()
}

/// The answer to the same request, as soon as the first is not under way any more.
async fn asked_again(world: &World, key: &str) -> Answer {
    loop {
        let headers = [("idempotency-key", key)];
        let answer = world.ask_with("POST", "/v1/queues/q/tasks", &headers, b"{\"delay\": \"1h\"}").await;
        if answer.status != 409 {
            return answer;
        }
    }
}

#[tokio::test]
async fn the_answer_is_kept_for_its_key() {
    let world = World::new().await;
    for round in 1..=30 {
        let (key, headers) = (round.to_string(), format!("idempotency-key: {round}\r\n"));
        ask_and_hang_up(&world, "/v1/queues/q/tasks", &headers, r#"{"delay": "1h"}"#).await;
        let again = tokio::time::timeout(Duration::from_secs(20), asked_again(&world, &key));
        let again = again.await.unwrap_or_else(|_| panic!("the key of request {round} is never free again"));
        assert_eq!(again.status, 201, "{}", again.body);
        assert_eq!(count(&world).await, round, "one task for each key");
    }
}

#[tokio::test]
async fn every_change_is_in_the_audit() {
    let data = tempfile::tempdir().unwrap();
    let audit = data.path().join("who.jsonl");
    let world = World::with(data, |options| options.audit = Some(audit.clone())).await;
    while count(&world).await < 20 {
        ask_and_hang_up(&world, "/v1/queues/q/tasks", "", r#"{"delay": "1h"}"#).await;
    }
    // A server that stops finishes what is under way.
    let world = World::on(world.stop().await).await;
    let lines = std::fs::read_to_string(&audit).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let made = lines.filter(|line| line["status"] == 201).count();
    assert_eq!(made, count(&world).await, "as many as were made");
}

#[tokio::test]
async fn a_worker_that_has_gone_is_handed_nothing() {
    let world = World::new().await;
    world.ask("PUT", "/v1/queues/q", "{}").await;
    for _ in 0..10 {
        ask_and_hang_up(&world, "/v1/queues/q/reserve", "", r#"{"wait": "30s"}"#).await;
    }
    // Somebody else waits, came later, and is the only one who is still there.
    let waiting = world.ask("POST", "/v1/queues/q/reserve", r#"{"wait": "20s"}"#);
    let making = async {
        tokio::task::yield_now().await;
        world.ask("POST", "/v1/queues/q/tasks", "{}").await
    };
    let (reserved, made) = tokio::join!(waiting, making);
    assert_eq!(reserved.json()["tasks"][0]["id"], made.json()["id"], "{}", reserved.body);
}

#[tokio::test]
async fn a_key_does_not_promise_what_cannot_be_kept() {
    let world = World::new().await;
    let many = |count: usize| format!(r#"{{"tasks":[{}]}}"#, vec![r#"{"delay":"1h"}"#; count].join(","));
    let headers = [("idempotency-key", "k")];
    let path = "/v1/queues/q/tasks";
    let refused = world.ask_with("POST", path, &headers, many(1_001).as_bytes()).await;
    assert_eq!(refused.problem(), (413, "body_too_large".to_owned()));
    assert_eq!(count(&world).await, 0);
    let lane = "x".repeat(500);
    let long: Vec<String> = (0..1_000)
        .map(|number| format!(r#"{{"delay":"1h","lane":"{lane}","name":"{lane}","unique_key":"{number}"}}"#))
        .collect();
    let long = format!(r#"{{"tasks":[{}]}}"#, long.join(","));
    let headers = [("idempotency-key", "long")];
    let first = world.ask_with("POST", path, &headers, long.as_bytes()).await;
    assert!(first.body.len() > 1024 * 1024, "{} bytes", first.body.len());
    let again = world.ask_with("POST", path, &headers, long.as_bytes()).await;
    assert!(first.body == again.body, "the same answer");
}
