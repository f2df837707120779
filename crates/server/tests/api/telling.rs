//! What the server tells: the same answer again, results to a URL, events, metrics.

use futures_util::StreamExt;
use http::StatusCode;
use punctual_client::wire::{Ack, EventKind, EventQuery, Http, Json, NewTask, Reserve};
use serde_json::Value;
use tokio::net::TcpListener;

use super::world::{Target, World, secs};

const TASKS: &str = "/v1/queues/mail/tasks";

#[tokio::test]
async fn the_same_idempotency_key_gets_the_first_answer_again() {
    let world = World::new().await;
    let key = [("idempotency-key", "\"8e03978e-40d5\"")];
    let body = br#"{"delay": "1h"}"#;
    let first = world.ask_with("POST", TASKS, &key, body).await;
    let again = world.ask_with("POST", TASKS, &key, body).await;
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    assert!(again.head.contains("location: /v1/tasks/"), "{}", again.head);
    let other = world.ask_with("POST", TASKS, &key, br#"{"delay": "2h"}"#).await;
    assert_eq!(other.problem(), (422, "idempotency_key_reused".to_owned()));
    let empty = world.ask_with("POST", TASKS, &[("idempotency-key", "")], body).await;
    assert_eq!(empty.problem(), (400, "idempotency_key_invalid".to_owned()));
    let world = World::on(world.stop().await).await;
    let later = world.ask_with("POST", TASKS, &key, body).await;
    assert_eq!(first.body, later.body, "it is remembered across a restart");
    let all = world.ask("GET", "/v1/tasks?queue=mail", "").await.json();
    assert_eq!(all["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_whose_request_was_refused_is_free_again() {
    let world = World::new().await;
    let key = [("idempotency-key", "k")];
    assert_eq!(world.ask_with("POST", TASKS, &key, br#"{"dealy": "1h"}"#).await.status, 422);
    assert_eq!(world.ask_with("POST", TASKS, &key, br#"{"delay": "1h"}"#).await.status, 201);
}

#[tokio::test]
async fn a_key_whose_batch_was_refused_for_the_moment_is_free_again() {
    // Whoever sent it again when the moment had passed heard the refusal again, for a day.
    let mut world = World::patient().await;
    // A call that is not answered keeps a server that is stopping.
    let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let call = Http::post(format!("http://{}/", slow.local_addr().unwrap()));
    world.client.create("calls", &NewTask::new().http(call)).await.unwrap();
    let (called, _) = slow.accept().await.unwrap();
    world.begin_to_stop();
    while world.ask("POST", TASKS, r#"{"delay": "1h"}"#).await.status == 201 {}

    let batch = br#"{"tasks": [{"delay": "1h"}, {"delay": "2h"}, {"dealy": "3h"}]}"#;
    let send = async |world: &World| {
        let answer = world.ask_with("POST", TASKS, &[("idempotency-key", "k")], batch).await.json();
        let results = answer["results"].as_array().expect("it is a batch").clone();
        results.iter().map(|result| result["status"].as_u64().expect("it is a number")).collect::<Vec<_>>()
    };
    assert_eq!(send(&world).await, [503, 503, 422]);
    drop(called);
    let world = World::on(world.stop().await).await;
    for _ in 0..2 {
        assert_eq!(send(&world).await, [201, 201, 422], "and then it is as with any other");
    }
}

#[tokio::test]
async fn a_result_is_sent_to_whoever_asked_for_it() {
    let (world, mut target) = (World::new().await, Target::answering(StatusCode::OK).await);
    let task = NewTask { callback: Some(format!("{}/done", target.url)), ..NewTask::new().name("sum") };
    let made = world.client.create("work", &task).await.unwrap();
    let reserve = Reserve { wait: Some(secs(5).into()), ..Reserve::default() };
    let got = world.client.reserve("work", &reserve).await.unwrap().remove(0);
    let ack = Ack { token: got.token, result: Some(Json::of(&[4, 9]).unwrap()) };
    world.client.ack(&got.id, &ack).await.unwrap();
    let call = target.next().await;
    let sent: Value = serde_json::from_slice(&call.body).unwrap();
    assert_eq!(call.uri, "/done");
    assert_eq!((&sent["id"], &sent["state"]), (&made.task.id.into(), &"succeeded".into()));
    assert_eq!((&sent["result"], &sent["name"]), (&serde_json::json!([4, 9]), &"sum".into()));
}

#[tokio::test]
async fn events_tell_the_life_of_a_task() {
    let world = World::new().await;
    let query = EventQuery { queue: Some("work".to_owned()), kind: None };
    let mut events = std::pin::pin!(world.client.events(&query).await.unwrap());
    let made = world.client.create("work", &NewTask::new().lane("order-7")).await.unwrap();
    world.client.create("other", &NewTask::new()).await.unwrap();
    let reserve = Reserve { wait: Some(secs(5).into()), ..Reserve::default() };
    let got = world.client.reserve("work", &reserve).await.unwrap().remove(0);
    world.client.ack(&got.id, &Ack { token: got.token, result: None }).await.unwrap();
    for kind in [EventKind::TaskCreated, EventKind::TaskStarted, EventKind::TaskSucceeded] {
        let event = events.next().await.unwrap().unwrap();
        assert_eq!((event.kind, event.subject.as_deref()), (kind, Some(made.task.id.as_str())));
        let data = event.data;
        assert_eq!((data.queue.as_deref(), data.lane.as_deref()), (Some("work"), Some("order-7")), "{kind}");
    }
}

/// What a slow listener missed was left out without a word, so that it took its picture for the whole.
#[tokio::test]
async fn whoever_listens_too_slowly_is_told_how_much_is_missing() {
    let world = World::new().await;
    let query = EventQuery { queue: Some("work".to_owned()), kind: Some(EventKind::TaskCreated) };
    let mut events = std::pin::pin!(world.client.events(&query).await.unwrap());
    // Thirty megabytes of events, which neither sockets nor the server keep for somebody who does not listen.
    let task = NewTask { delay: Some(secs(3600).into()), ..NewTask::new().name("x".repeat(500)) };
    let (batches, batch) = (3, vec![task; 10_000]);
    for _ in 0..batches {
        world.client.create_many("work", &batch).await.unwrap();
    }
    let (mut heard, mut missed) = (0, 0);
    while heard + missed < batches * batch.len() as u64 {
        let event = events.next().await.unwrap().unwrap();
        match event.kind {
            EventKind::TaskCreated => heard += 1,
            EventKind::EventsMissed => missed += event.data.missed.unwrap(),
            kind => panic!("{kind} was not asked for"),
        }
    }
    assert_eq!(heard + missed, 30_000);
    assert!(heard > 0 && missed > 0, "{heard} were heard, and {missed} missed");
    // Whoever has caught up hears everything again.
    world.client.create("work", &NewTask::new()).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().kind, EventKind::TaskCreated);
}

#[tokio::test]
async fn whoever_listens_or_waits_does_not_hold_up_a_stop() {
    let world = World::new().await;
    let mut events = Box::pin(world.client.events(&EventQuery::default()).await.unwrap());
    let waiting = tokio::spawn({
        let client = world.client.clone();
        let reserve = Reserve { wait: Some(secs(30).into()), ..Reserve::default() };
        async move { client.reserve("work", &reserve).await }
    });
    world.client.create("work", &NewTask::new().after(secs(3600))).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().kind, EventKind::TaskCreated);
    let stopped = tokio::time::timeout(secs(4), world.stop()).await;
    assert!(stopped.is_ok(), "five seconds is how long a stop waits for those who do not let go");
    assert!(waiting.await.unwrap().is_err());
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn metrics_count_what_happened() {
    let (world, mut target) = (World::new().await, Target::answering(StatusCode::OK).await);
    let http = punctual_client::wire::Http::post(&target.url);
    let made = world.client.create("q", &NewTask::new().http(http)).await.unwrap();
    target.next().await;
    world.client.result(&made.task.id, secs(10)).await.unwrap();
    let text = world.ask("GET", "/metrics", "").await.body;
    for line in [
        "punctual_tasks_created_total 1",
        "punctual_attempts_total{outcome=\"succeeded\"} 1",
        "punctual_tasks_ended_total{state=\"succeeded\"} 1",
        "punctual_task_lateness_seconds_count 1",
        "punctual_attempts_running 0",
        "punctual_store_troubles_total 0",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(world.ask("GET", "/healthz", "").await.status, 200);
    assert_eq!(world.ask("GET", "/readyz", "").await.status, 200);
}
