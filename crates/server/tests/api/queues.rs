//! Queues and lanes over HTTP.

use punctual_client::wire::{
    Bury, Change, LaneName, LaneQuery, NewTask, PageQuery, QueueSettings, Reserve, State,
};

use serde_json::json;

use super::world::{World, secs};

#[tokio::test]
async fn settings_are_put_patched_and_kept() {
    let world = World::new().await;
    let put = world
        .ask("PUT", "/v1/queues/mail", r#"{"timeout": "2m", "concurrency": 3, "rate": {"starts": 10, "per": "1s"}, "retry": {"attempts": 4}}"#)
        .await;
    assert_eq!(put.status, 200, "{put:?}");
    let patched =
        world.ask("PATCH", "/v1/queues/mail", r#"{"concurrency": null, "past": "run_now"}"#).await.json();
    assert_eq!((&patched["timeout"], &patched["past"]), (&"PT2M".into(), &"run_now".into()));
    assert!(patched.get("concurrency").is_none());
    assert_eq!(patched["retry"]["attempts"], 4);
    let stale = world.ask_with("PATCH", "/v1/queues/mail", &[("if-match", "\"1\"")], b"{}").await;
    assert_eq!(stale.problem(), (412, "queue_changed".to_owned()));
    let world = World::on(world.stop().await).await;
    assert_eq!(world.ask("GET", "/v1/queues/mail", "").await.json(), patched);
    assert_eq!(world.client.queues(&PageQuery::default()).await.unwrap().queues.len(), 1);
}

#[tokio::test]
async fn a_queue_is_paused_purged_and_deleted() {
    let world = World::new().await;
    let tasks = vec![NewTask::new(); 3];
    world.client.put_queue("mail", &Default::default()).await.unwrap();
    world.client.pause_queue("mail").await.unwrap();
    world.client.create_many("mail", &tasks).await.unwrap();
    let reserve = Reserve { max: Some(10), ..Reserve::default() };
    assert_eq!(world.client.reserve("mail", &reserve).await.unwrap(), []);
    let peeked = world.client.peek("mail", 10).await.unwrap();
    assert_eq!(peeked.len(), 3);
    let refused = world.client.delete_queue("mail").await.unwrap_err();
    assert_eq!(refused.code(), Some("queue_not_empty"));
    let purged = world.client.purge_queue("mail").await.unwrap();
    assert_eq!((purged.matched, purged.changed), (3, 3));
    world.client.delete_queue("mail").await.unwrap();
    assert_eq!(world.client.queue("mail").await.unwrap_err().code(), Some("queue_not_found"));
}

#[tokio::test]
async fn a_blocked_lane_is_listed_released_and_skipped() {
    let world = World::new().await;
    let tasks: Vec<NewTask> = (0..2).map(|_| NewTask::new().lane("x")).collect();
    world.client.create_many("work", &tasks).await.unwrap();
    let reserve = Reserve { max: Some(1), wait: Some(secs(5).into()), ..Reserve::default() };
    let bury = async || {
        let got = world.client.reserve("work", &reserve).await.unwrap().remove(0);
        let bury = Bury { token: got.token, error: None };
        assert_eq!(world.client.bury(&got.id, &bury).await.unwrap().state, State::Blocked);
        got.id
    };
    let head = bury().await;
    let blocked = LaneQuery { blocked: Some(true), ..LaneQuery::default() };
    let lanes = world.client.lanes(&blocked).await.unwrap().lanes;
    assert_eq!((lanes.len(), lanes[0].lane.as_str()), (1, "x"));
    let name = LaneName { queue: "work".to_owned(), lane: "x".to_owned() };
    world.client.release_lane(&name).await.unwrap();
    assert_eq!(bury().await, head, "the head is tried again");
    world.client.skip_lane(&name).await.unwrap();
    assert_ne!(bury().await, head, "the lane goes on without it");
    let none = QueueSettings { target: Change::Clear, ..QueueSettings::default() };
    world.client.patch_queue("work", &none).await.unwrap();
}

#[tokio::test]
async fn tasks_are_counted_as_they_come_and_go_and_after_a_restart() {
    let world = World::new().await;
    let tasks: Vec<NewTask> =
        (0..30).map(|n| NewTask::new().after(secs(if n < 5 { 0 } else { 3600 }))).collect();
    let made = world.client.create_many("mail", &tasks).await.unwrap();
    let counted = stats_when_counted(&world).await;
    assert_eq!((counted["waiting"].clone(), counted["flow"]["created"].clone()), (json!(30), json!(30)));
    let reserved = world.ask("POST", "/v1/queues/mail/reserve", r#"{"max": 2, "wait": "10s"}"#).await.json();
    let reserved = reserved["tasks"].as_array().unwrap().clone();
    let ack = json!({"token": reserved[0]["token"]}).to_string();
    let id = reserved[0]["id"].as_str().unwrap();
    assert_eq!(world.ask("POST", &format!("/v1/tasks/{id}/ack"), &ack).await.status, 200);
    for late in made.iter().skip(20) {
        world.client.cancel(late.id().unwrap()).await.unwrap();
    }
    let left = 30 - 1 - 10;
    let counted = stats_when_counted(&world).await;
    let held = reserved.len() - 1;
    assert_eq!(
        (&counted["waiting"], &counted["tasks"]["reserved"]),
        (&json!(left - held), &json!(held)),
        "{counted}"
    );
    assert_eq!(
        (&counted["flow"]["succeeded"], &counted["flow"]["cancelled"]),
        (&json!(1), &json!(10)),
        "{counted}"
    );
    // What workers hold was counted among those that wait, as if nobody had it.
    let world = World::on(world.stop().await).await;
    let counted = stats_when_counted(&world).await;
    assert_eq!(
        (&counted["waiting"], &counted["tasks"]["reserved"]),
        (&json!(left - held), &json!(held)),
        "what an earlier run left is counted, too"
    );
    for reserved in &reserved[1..] {
        let (id, ack) = (reserved["id"].as_str().unwrap(), json!({"token": reserved["token"]}).to_string());
        assert_eq!(world.ask("POST", &format!("/v1/tasks/{id}/ack"), &ack).await.status, 200);
    }
    let counted = stats_when_counted(&world).await;
    assert_eq!((&counted["waiting"], &counted["tasks"]["reserved"]), (&json!(left - held), &json!(0)));
}

async fn stats_when_counted(world: &World) -> serde_json::Value {
    loop {
        let stats = world.ask("GET", "/v1/queues/mail/stats", "").await.json();
        if stats.get("waiting").is_some() {
            return stats;
        }
    }
}

#[tokio::test]
async fn what_a_worker_holds_is_not_what_comes_next() {
    let world = World::at("2030-01-01T09:00:00Z").await;
    let stats = async || world.ask("GET", "/v1/queues/work/stats", "").await.json();
    let make = async |tasks: usize, delay: u64| {
        world.client.create_many("work", &vec![NewTask::new().after(secs(delay)); tasks]).await.unwrap();
    };
    let hold = async |mut tasks: usize| {
        while tasks > 0 {
            let reserve = Reserve {
                max: Some(tasks as u32),
                wait: Some(secs(10).into()),
                ttr: Some(secs(3600).into()),
                ..Reserve::default()
            };
            tasks -= world.client.reserve("work", &reserve).await.unwrap().len();
        }
    };
    make(20, 0).await;
    assert_eq!(stats().await["next_at"], "2030-01-01T09:00:00.000000Z");
    hold(20).await;
    assert_eq!(stats().await.get("next_at"), None, "all of them are in hand");
    make(1, 60).await;
    let held = stats().await;
    assert_eq!((&held["next_at"], held.get("lateness")), (&"2030-01-01T09:01:00.000000Z".into(), None));
    // Behind very many it is not looked for, but known.
    make(1_010, 0).await;
    hold(1_000).await;
    hold(10).await;
    world.ask("POST", "/v1/clock:advance", r#"{"by": "61s"}"#).await;
    let held = stats().await;
    assert_eq!(
        (&held["next_at"], &held["lateness"], &held["tasks"]["reserved"]),
        (&"2030-01-01T09:01:00.000000Z".into(), &"PT1S".into(), &1_030.into()),
        "{held}"
    );
}

#[tokio::test]
async fn a_queue_is_not_removed_by_whoever_knows_an_older_version() {
    let world = World::new().await;
    let path = "/v1/queues/q";
    let made = world.ask("PUT", path, "{}").await;
    let tag = made.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    world.ask("PATCH", path, r#"{"concurrency": 3}"#).await;
    let refused = world.ask_with("DELETE", path, &[("if-match", tag)], b"").await;
    assert_eq!(refused.problem(), (412, "queue_changed".to_owned()));
    let there = world.ask("GET", path, "").await;
    let tag = there.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    assert_eq!(world.ask_with("DELETE", path, &[("if-match", tag)], b"").await.status, 204);
}

#[tokio::test]
async fn pausing_resuming_and_purging_heed_the_version_that_is_named() {
    let world = World::new().await;
    assert_eq!(world.ask("PUT", "/v1/queues/q", "{}").await.status, 200);
    assert_eq!(world.ask("POST", "/v1/queues/q/tasks", r#"{"delay": "1h"}"#).await.status, 201);
    for verb in ["pause", "resume", "purge"] {
        let path = format!("/v1/queues/q:{verb}");
        let with = async |tag: &str| world.ask_with("POST", &path, &[("if-match", tag)], b"").await;
        assert_eq!(with("nope").await.problem(), (400, "etag_invalid".to_owned()), "{verb}");
        assert_eq!(with("\"999\"").await.problem(), (412, "queue_changed".to_owned()), "{verb}");
    }
    let (queue, stats) =
        (world.ask("GET", "/v1/queues/q", "").await, world.ask("GET", "/v1/queues/q/stats", "").await);
    assert_eq!((&queue.json()["paused"], &stats.json()["tasks"]["scheduled"]), (&false.into(), &1.into()));
    let tag = queue.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let paused = world.ask_with("POST", "/v1/queues/q:pause", &[("if-match", tag)], b"").await;
    assert_eq!((paused.status, &paused.json()["paused"]), (200, &true.into()));
}

/// It came back into a queue that nobody could see, and was lost with the next start.
#[tokio::test]
async fn a_dead_task_of_a_queue_that_is_gone_is_not_tried_again() {
    let world = World::new().await;
    let reserve = Reserve { wait: Some(secs(5).into()), ..Reserve::default() };
    let made = world.client.create("q", &NewTask::new()).await.unwrap().task;
    let got = world.client.reserve("q", &reserve).await.unwrap().remove(0);
    world.client.bury(&got.id, &Bury { token: got.token, error: None }).await.unwrap();
    assert_eq!(world.ask("DELETE", "/v1/queues/q", "").await.status, 204);
    world.client.create("q", &NewTask::new()).await.unwrap();
    let path = format!("/v1/tasks/{}", made.id);
    let gone = (404, "task_not_found".to_owned());
    for (method, path) in
        [("POST", format!("{path}:retry")), ("POST", format!("{path}/kick")), ("GET", path.clone())]
    {
        assert_eq!(world.ask(method, &path, "").await.problem(), gone, "{path}");
    }
    let all = world.ask("POST", "/v1/tasks:retry", r#"{"filter": {"state": "dead"}}"#).await.json();
    assert_eq!((&all["changed"], &all["problems"]), (&0.into(), &json!([])));
    let world = World::on(world.stop().await).await;
    assert_eq!(world.ask("GET", &path, "").await.problem(), gone, "nor after another start");
    let all = world.ask("POST", "/v1/tasks:retry", r#"{"filter": {"state": "dead"}}"#).await.json();
    assert_eq!((&all["changed"], &all["problems"]), (&0.into(), &json!([])));
}

#[tokio::test]
async fn of_several_who_delete_a_queue_one_does() {
    let world = World::new().await;
    for _ in 0..20 {
        assert_eq!(world.ask("PUT", "/v1/queues/q", "{}").await.status, 200);
        let delete = || world.ask("DELETE", "/v1/queues/q", "");
        let (one, other, third) = tokio::join!(delete(), delete(), delete());
        let mut answers = [one.status, other.status, third.status];
        answers.sort_unstable();
        assert_eq!(answers, [204, 404, 404]);
    }
}

/// Its calls went out unsigned from then on, without a word.
#[tokio::test]
async fn the_queue_of_a_notification_stays_as_long_as_that() {
    let world = World::new().await;
    let body = r#"{"url": "https://example.com/in", "events": ["task.dead"],
                   "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}"#;
    assert_eq!(world.ask("PUT", "/v1/notifications/ops", body).await.json()["signed"], true);
    let refused = world.ask("DELETE", "/v1/queues/notifications.ops", "").await;
    assert_eq!(refused.problem(), (409, "queue_in_use".to_owned()));
    assert_eq!(world.ask("GET", "/v1/notifications/ops", "").await.json()["signed"], true);
    assert_eq!(world.ask("DELETE", "/v1/notifications/ops", "").await.status, 204);
    assert_eq!(world.ask("GET", "/v1/queues/notifications.ops", "").await.status, 404);
}
