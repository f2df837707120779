//! What a server says about itself: real scrapes of a real server.

use http::StatusCode;
use punctual::FolderOptions;
use punctual_client::wire::{Ack, Bury, Http, Nack, NewTask, Reserve};
use punctual_store::embedded::disk::DiskRoom;
use punctual_store::embedded::journal::Options;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::world::{Target, World, secs};

/// The value of a metric without labels.
async fn metric(world: &World, name: &str) -> f64 {
    let text = world.ask("GET", "/metrics", "").await.body;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")).map(str::to_owned));
    line.unwrap_or_else(|| panic!("{name} is not in\n{text}")).parse().expect("it is a number")
}

async fn block_lane(world: &World, lane: &str) -> String {
    let made = world.client.create("work", &NewTask::new().lane(lane)).await.expect("it answers");
    let reserve = Reserve { wait: Some(secs(5).into()), ..Reserve::default() };
    let got = world.client.reserve("work", &reserve).await.expect("it answers").remove(0);
    world.client.bury(&got.id, &Bury { token: got.token, error: None }).await.expect("it is ours");
    made.task.id
}

#[tokio::test]
async fn the_oldest_task_that_could_start_has_an_age() {
    let world = World::at("2030-01-01T00:00:00Z").await;
    assert_eq!(metric(&world, "punctual_oldest_due_age_seconds").await, 0.0);
    world.client.create("work", &NewTask::new().after(secs(60))).await.unwrap();
    world
        .client
        .create("work", &NewTask { priority: Some(1), ..NewTask::new().after(secs(90)) })
        .await
        .unwrap();
    world.ask("POST", "/v1/clock:advance", r#"{"by": "100s"}"#).await;
    assert_eq!(metric(&world, "punctual_oldest_due_age_seconds").await, 40.0, "whatever goes first");
    world.client.pause_queue("work").await.unwrap();
    assert_eq!(metric(&world, "punctual_oldest_due_age_seconds").await, 0.0, "a paused queue is not late");
}

#[tokio::test]
async fn blocked_lanes_are_counted_also_after_a_restart() {
    let world = World::new().await;
    for lane in ["ana", "ben"] {
        block_lane(&world, lane).await;
    }
    assert_eq!(metric(&world, "punctual_lanes_blocked").await, 2.0);
    let world = World::on(world.stop().await).await;
    // They are read beside everything else.
    while metric(&world, "punctual_lanes_blocked").await < 2.0 {
        tokio::task::yield_now().await;
    }
    let skipped = world.ask("POST", "/v1/lanes:skip", r#"{"queue": "work", "lane": "ana"}"#).await;
    assert_eq!(skipped.status, 200, "{skipped:?}");
    assert_eq!(metric(&world, "punctual_lanes_blocked").await, 1.0);
    let released = world.ask("POST", "/v1/lanes:release", r#"{"queue": "work", "lane": "ben"}"#).await;
    assert_eq!(released.status, 200, "{released:?}");
    assert_eq!(metric(&world, "punctual_lanes_blocked").await, 0.0);
}

/// How many tasks are scheduled, running, reserved, retrying and blocked, when they are counted.
async fn tasks_by_state(world: &World) -> [f64; 5] {
    while !world.ask("GET", "/metrics", "").await.body.contains("punctual_tasks{state=\"scheduled\"}") {}
    let mut counts = [0.0; 5];
    for (count, state) in counts.iter_mut().zip(["scheduled", "running", "reserved", "retrying", "blocked"]) {
        *count = metric(world, &format!("punctual_tasks{{state=\"{state}\"}}")).await;
    }
    counts
}

#[tokio::test]
async fn tasks_are_counted_by_state_also_after_a_restart() {
    let world = World::new().await;
    assert_eq!(tasks_by_state(&world).await, [0.0; 5]);
    block_lane(&world, "ana").await;
    world.client.create_many("work", &vec![NewTask::new().after(secs(3600)); 3]).await.unwrap();
    world.client.create_many("work", &vec![NewTask::new(); 2]).await.unwrap();
    let mut got = Vec::new();
    while got.len() < 2 {
        let reserve = Reserve { wait: Some(secs(5).into()), max: Some(2), ..Reserve::default() };
        got.append(&mut world.client.reserve("work", &reserve).await.unwrap());
    }
    assert_eq!(tasks_by_state(&world).await, [3.0, 0.0, 2.0, 0.0, 1.0]);
    let nack = |token: String| Nack { token, delay: Some(secs(3600).into()), error: None };
    for task in &got {
        world.client.nack(&task.id, &nack(task.token.clone())).await.unwrap();
    }
    assert_eq!(tasks_by_state(&world).await, [3.0, 0.0, 0.0, 2.0, 1.0]);
    let world = World::on(world.stop().await).await;
    assert_eq!(tasks_by_state(&world).await, [3.0, 0.0, 0.0, 2.0, 1.0], "they are what their rows say");
    let stats = world.ask("GET", "/v1/queues/work/stats", "").await.json();
    assert_eq!(stats["waiting"], 6, "{stats}");
    let tasks = json!({"scheduled": 3, "running": 0, "reserved": 0, "retrying": 2, "blocked": 1});
    assert_eq!(stats["tasks"], tasks, "{stats}");
    world.client.cancel(&got[0].id).await.unwrap();
    world.ask("POST", &format!("/v1/tasks/{}:run", got[1].id), "").await;
    let reserve = Reserve { wait: Some(secs(5).into()), ..Reserve::default() };
    let again = world.client.reserve("work", &reserve).await.unwrap().remove(0);
    assert_eq!(tasks_by_state(&world).await, [3.0, 0.0, 1.0, 0.0, 1.0], "while it is tried again");
    world.client.ack(&again.id, &Ack { token: again.token, result: None }).await.unwrap();
    world.ask("POST", "/v1/lanes:skip", r#"{"queue": "work", "lane": "ana"}"#).await;
    assert_eq!(tasks_by_state(&world).await, [3.0, 0.0, 0.0, 0.0, 0.0]);
}

#[tokio::test]
async fn an_open_breaker_is_counted() {
    let (world, mut target) = (World::new().await, Target::answering(StatusCode::BAD_GATEWAY).await);
    let failing = NewTask::new().http(Http::post(&target.url));
    world.client.create_many("calls", &vec![failing; 5]).await.unwrap();
    for _ in 0..5 {
        target.next().await;
    }
    while metric(&world, "punctual_attempts_total{outcome=\"failed\"}").await < 5.0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(metric(&world, "punctual_breakers_open").await, 1.0);
}

#[tokio::test]
async fn a_server_on_a_full_disk_is_not_ready_until_there_is_room_again() {
    let room = DiskRoom::of_tests(1 << 30);
    let journal = Options { segment_bytes: 1 << 20, ..Options::default() };
    let folder = FolderOptions { journal, room: room.clone(), ..FolderOptions::default() };
    let world = World::with(tempfile::tempdir().unwrap(), |options| options.folder = folder).await;
    assert_eq!(world.ask("GET", "/readyz", "").await.body, "ready\n");

    room.set(0);
    let large = json!({"delay": "1h", "payload": "x".repeat(100_000)}).to_string();
    let refused = loop {
        let made = world.ask("POST", "/v1/queues/work/tasks", &large).await;
        if made.status != 201 {
            break made;
        }
    };
    assert_eq!(refused.problem(), (507, "store_full".to_owned()));
    // Where no task fits, something smaller may: each question takes a little of what is left.
    let not_ready = loop {
        let asked = world.ask("GET", "/readyz", "").await;
        if asked.status != 200 {
            break asked;
        }
    };
    assert_eq!(not_ready.problem(), (503, "not_ready".to_owned()));
    assert!(not_ready.body.contains("the store takes no writes: the disk is full"), "{not_ready:?}");
    assert_eq!(world.ask("GET", "/healthz", "").await.status, 200, "it lives");

    room.set(1 << 30);
    // The room is found by a thread of its own.
    while world.ask("GET", "/readyz", "").await.status != 200 {}
    assert_eq!(world.ask("POST", "/v1/queues/work/tasks", &large).await.status, 201);
    world.stop().await;
}

#[tokio::test]
async fn the_store_and_the_partitions_have_gauges() {
    let world = World::new().await;
    world.client.create("work", &NewTask::new().after(secs(60))).await.unwrap();
    assert!(metric(&world, "punctual_store_journal_bytes").await > 0.0);
    assert!(metric(&world, "punctual_store_memory_bytes").await > 0.0);
    let (reserve, wanted) = (
        metric(&world, "punctual_store_reserve_bytes").await,
        metric(&world, "punctual_store_reserve_wanted_bytes").await,
    );
    assert!(reserve == wanted && wanted > 0.0, "{reserve} of {wanted}");
    assert_eq!(metric(&world, "punctual_partitions_owned").await, 64.0);
    assert_eq!(metric(&world, "punctual_partition_owner_epoch{partition=\"63\"}").await, 1.0);
    assert_eq!(world.ask("GET", "/readyz", "").await.body, "ready\n");
    assert!(world.ask("GET", "/metrics", "").await.body.ends_with("# EOF\n"));
}

#[tokio::test]
async fn while_calls_are_finished_workers_can_report_and_nothing_new_is_taken() {
    // The listener was closed at once: what a worker had done meanwhile was lost, and done again by another.
    let mut world = World::patient().await;
    let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", slow.local_addr().unwrap());
    world.client.create("calls", &NewTask::new().http(Http::post(&url))).await.unwrap();
    let (mut called, _) = slow.accept().await.unwrap();
    world.client.create("work", &NewTask::new()).await.unwrap();
    let reserve = Reserve { wait: Some(secs(5).into()), ..Reserve::default() };
    let held = world.client.reserve("work", &reserve).await.unwrap().remove(0);

    world.begin_to_stop();
    while world.ask("GET", "/readyz", "").await.status == 200 {}
    assert_eq!(world.ask("GET", "/readyz", "").await.problem(), (503, "not_ready".to_owned()));
    assert_eq!(world.ask("GET", "/healthz", "").await.status, 200);
    // It says that it stops, and then does.
    while world.ask("POST", "/v1/queues/work/tasks", "{}").await.status == 201 {}
    let refused = world.ask("POST", "/v1/queues/work/tasks", "{}").await;
    assert_eq!(refused.problem(), (503, "stopped".to_owned()));
    let refused = world.ask("POST", "/v1/queues/work/reserve", r#"{"wait": "30s"}"#).await;
    assert_eq!(refused.problem(), (503, "stopped".to_owned()));
    let ack = Ack { token: held.token, result: None };
    world.client.ack(&held.id, &ack).await.expect("what it has done counts");

    called.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    let world = World::on(world.stop().await).await;
    for queue in ["calls", "work"] {
        let listed = world.ask("GET", &format!("/v1/tasks?queue={queue}&state=succeeded"), "").await;
        assert_eq!(listed.json()["tasks"].as_array().map(Vec::len), Some(1), "{queue}: {listed:?}");
    }
}
