//! Notifications by webhook: told once, signed, and never lost.

use http::StatusCode;
use punctual_client::wire::{Ack, Bury, EventKind, NewNotification, NewTask, QueueSettings, Reserve};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use super::world::{Call, Target, World, secs};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn new(url: &str, events: &[EventKind]) -> NewNotification {
    NewNotification { url: url.to_owned(), events: events.to_vec(), ..NewNotification::default() }
}

/// A worker takes the next task of a queue and gives it up.
async fn bury_next(world: &World, queue: &str) -> String {
    let reserve = Reserve { wait: Some(secs(5).into()), ..Reserve::default() };
    let got = world.client.reserve(queue, &reserve).await.expect("it answers").remove(0);
    let bury = Bury { token: got.token, error: Some("no such address".to_owned()) };
    world.client.bury(&got.id, &bury).await.expect("it is ours");
    got.id
}

fn told(call: &Call) -> Value {
    assert_eq!(call.headers["content-type"], "application/cloudevents+json");
    serde_json::from_slice(&call.body).expect("it is JSON")
}

#[tokio::test]
async fn a_dead_task_is_told_and_signed() {
    let (world, mut target) = (World::new().await, Target::answering(StatusCode::OK).await);
    let mut ops = new(&format!("{}/ops", target.url), &[EventKind::TaskDead]);
    ops.secret = Some(SECRET.to_owned());
    ops.queue = Some("work".to_owned());
    assert!(world.client.put_notification("ops", &ops).await.unwrap().signed);
    world.client.create("other", &NewTask::new()).await.unwrap();
    bury_next(&world, "other").await;
    world.client.create("work", &NewTask::new().name("letter")).await.unwrap();
    let id = bury_next(&world, "work").await;
    let call = target.next().await;
    assert_eq!(call.uri, "/ops");
    Webhook::new(SECRET).unwrap().verify(&call.body, &call.headers).unwrap();
    let event = told(&call);
    assert_eq!((&event["type"], &event["subject"]), (&"task.dead".into(), &id.into()));
    assert_eq!((&event["data"]["queue"], &event["data"]["task"]["state"]), (&"work".into(), &"dead".into()));
    assert_eq!(event["data"]["task"]["last_error"], "no such address");
    assert!(event["data"]["task"].get("payload").is_none(), "payloads are not told");
    // The next one that is told is of the same queue again: the other's was not.
    world.client.create("work", &NewTask::new()).await.unwrap();
    let next = bury_next(&world, "work").await;
    assert_eq!(told(&target.next().await)["subject"], next);
}

#[tokio::test]
async fn a_blocked_lane_is_told_once() {
    let (world, mut target) = (World::new().await, Target::answering(StatusCode::OK).await);
    world.client.put_notification("ops", &new(&target.url, &[EventKind::LaneBlocked])).await.unwrap();
    let head = world.client.create("work", &NewTask::new().lane("ana")).await.unwrap();
    bury_next(&world, "work").await;
    let event = told(&target.next().await);
    assert_eq!((&event["type"], &event["subject"]), (&"lane.blocked".into(), &head.task.id.clone().into()));
    assert_eq!(event["data"]["lane"], "ana");
    // Mending the head is no news; that it is blocked again after another try is.
    let patched =
        world.ask("PATCH", &format!("/v1/tasks/{}", head.task.id), r#"{"payload": "mended"}"#).await;
    assert_eq!(patched.status, 200, "{patched:?}");
    world.client.retry(&head.task.id).await.unwrap();
    bury_next(&world, "work").await;
    let again = told(&target.next().await);
    assert_eq!(again["data"]["task"]["attempts"], 2, "{again}");
}

#[tokio::test]
async fn a_receiver_that_fails_is_tried_again_and_is_no_news_itself() {
    let (world, mut target) =
        (World::at("2030-01-01T00:00:00Z").await, Target::answering(StatusCode::BAD_GATEWAY).await);
    world.client.put_notification("ops", &new(&target.url, &[EventKind::TaskDead])).await.unwrap();
    world.client.create("work", &NewTask::new()).await.unwrap();
    bury_next(&world, "work").await;
    let first = target.next().await;
    let advance = world.ask("POST", "/v1/clock:advance", r#"{"by": "5d"}"#).await;
    assert_eq!(advance.status, 200, "{advance:?}");
    let mut calls = 1;
    while let Ok(call) = target.calls.try_recv() {
        calls += 1;
        assert_eq!(call.headers["webhook-id"], first.headers["webhook-id"], "the same one, tried again");
    }
    assert_eq!(calls, 10, "as Standard Webhooks has it");
    let dead = world.ask("GET", "/v1/tasks?queue=notifications.ops&state=dead", "").await.json();
    assert_eq!(dead["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn lateness_is_told_when_it_begins_and_when_it_is_over() {
    let (world, mut target) =
        (World::at("2030-01-01T00:00:00Z").await, Target::answering(StatusCode::OK).await);
    let mut ops = new(&target.url, &[EventKind::Lateness]);
    ops.lateness_over = Some(secs(30).into());
    world.client.put_notification("ops", &ops).await.unwrap();
    for _ in 0..3 {
        world.client.create("work", &NewTask::new()).await.unwrap();
    }
    // Nobody comes for them.
    world.ask("POST", "/v1/clock:advance", r#"{"by": "1m"}"#).await;
    let begins = told(&target.next().await);
    assert_eq!((&begins["type"], &begins["data"]["late"]), (&"lateness".into(), &true.into()));
    assert_eq!((&begins["data"]["queue"], &begins["data"]["lateness"]), (&"work".into(), &"PT1M".into()));
    let reserve = Reserve { max: Some(10), wait: Some(secs(5).into()), ..Reserve::default() };
    for got in world.client.reserve("work", &reserve).await.unwrap() {
        world.client.ack(&got.id, &Ack { token: got.token, result: None }).await.unwrap();
    }
    let over = told(&target.next().await);
    assert_eq!((&over["data"]["late"], &over["data"]["queue"]), (&false.into(), &"work".into()));
    assert!(target.calls.try_recv().is_err(), "two words in all");
}

#[tokio::test]
async fn notifications_are_kept_listed_and_deleted() {
    let world = World::new().await;
    for name in ["b", "a", "c"] {
        let url = format!("https://{name}.example.com/in");
        world.client.put_notification(name, &new(&url, &[EventKind::TaskDead])).await.unwrap();
    }
    let world = World::on(world.stop().await).await;
    let page = world.ask("GET", "/v1/notifications?limit=2", "").await.json();
    assert_eq!(page["notifications"][0]["name"], "a");
    let next = page["next"].as_str().expect("there is one more");
    let rest = world.ask("GET", &format!("/v1/notifications?cursor={next}"), "").await.json();
    assert_eq!((&rest["notifications"][0]["name"], &rest["next"]), (&"c".into(), &json!(null)));
    world.client.delete_notification("a").await.unwrap();
    assert_eq!(world.ask("GET", "/v1/notifications/a", "").await.problem().0, 404);
    assert_eq!(world.ask("GET", "/v1/queues/notifications.a", "").await.status, 404, "its queue is gone too");
    assert_eq!(world.ask("DELETE", "/v1/notifications/a", "").await.problem().1, "notification_not_found");
}

#[tokio::test]
async fn what_cannot_be_a_notification_is_refused() {
    let world = World::new().await;
    let url = "https://example.com/in";
    for (body, code) in [
        (json!({"url": "ftp://example.com", "events": ["task.dead"]}), "call_invalid"),
        (json!({"url": "http://169.254.169.254/", "events": ["task.dead"]}), "call_invalid"),
        (json!({"url": url, "events": []}), "field_invalid"),
        (json!({"url": url, "events": ["task.created"]}), "field_invalid"),
        (json!({"url": url, "events": ["lateness"]}), "field_invalid"),
        (json!({"url": url, "events": ["task.dead"], "lateness_over": "1s"}), "field_invalid"),
        (json!({"url": url, "events": ["task.dead"], "secret": "short"}), "field_invalid"),
    ] {
        let refused = world.ask("PUT", "/v1/notifications/ops", &body.to_string()).await;
        assert_eq!(refused.problem().1, code, "{body}");
    }
    assert_eq!(world.ask("GET", "/v1/notifications/ops", "").await.status, 404);
    assert_eq!(world.client.queue("notifications.ops").await.unwrap_err().code(), Some("queue_not_found"));
    world.client.put_queue("q", &QueueSettings::default()).await.unwrap();
}
