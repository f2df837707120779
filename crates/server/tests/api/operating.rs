//! What a server says about itself: real scrapes of a real server.

use http::StatusCode;
use punctual_client::wire::{Bury, Http, NewTask, Reserve};

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
