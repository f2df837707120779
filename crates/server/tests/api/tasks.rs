//! Tasks: made, looked at, changed, cancelled, listed, and what becomes of them when the server restarts.

use punctual_client::wire::{self, ByFilter, Filter, NewTask, OnConflict, Patch, State, TaskQuery};
use serde_json::json;

use super::world::{World, secs};

fn later() -> NewTask {
    NewTask::new().after(secs(3600))
}

#[tokio::test]
async fn a_task_is_made_shown_moved_and_cancelled() {
    let world = World::new().await;
    let answer = world.ask(
        "POST",
        "/v1/queues/mail/tasks",
        r#"{"delay": "1h", "payload": {"to": "ana"}, "name": "n"}"#,
    );
    let answer = answer.await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let task = answer.json();
    let id = task["id"].as_str().unwrap();
    assert!(answer.head.contains(&format!("location: /v1/tasks/{id}")), "{}", answer.head);
    assert!(answer.head.contains("etag: \"1\""), "{}", answer.head);
    assert_eq!(task["state"], "scheduled");
    assert!(task.get("payload").is_none(), "a payload is shown only to those who ask for it");
    let full = world.ask("GET", &format!("/v1/tasks/{id}?view=full"), "").await.json();
    assert_eq!(full["payload"], json!({"to": "ana"}));
    let moved =
        world.client.patch(id, &Patch { delay: Some(secs(7200).into()), ..Patch::default() }).await.unwrap();
    assert_eq!((moved.state, moved.revision), (State::Scheduled, 2));
    let outdated = Patch { delay: Some(secs(60).into()), ..Patch::default() };
    let refused = world.client.patch_if(id, 1, &outdated).await.unwrap_err();
    assert_eq!(refused.code(), Some("task_changed"));
    world.client.cancel(id).await.unwrap();
    assert_eq!(world.client.task(id).await.unwrap().state, State::Cancelled);
    assert_eq!(world.client.cancel(id).await.unwrap_err().code(), Some("task_ended"));
    let result = world.client.result(id, secs(0)).await.unwrap();
    assert_eq!(result.state, State::Cancelled);
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let world = World::new().await;
    let made = world.client.create("mail", &later().payload(&1).unwrap()).await.unwrap();
    let id = made.task.id.clone();
    let world = World::on(world.stop().await).await;
    let task = world.client.full_task(&id).await.unwrap();
    assert_eq!((task.queue.as_str(), task.payload.unwrap().text()), ("mail", "1"));
}

#[tokio::test]
async fn one_bad_item_of_a_batch_spoils_no_other() {
    let world = World::new().await;
    let body = r#"{"tasks": [{"delay": "1h"}, {"dealy": "1h"}, {"at": "2026-01-01T00:00:00"}, {"delay": "2h", "lane": "x"}]}"#;
    let results = world.ask("POST", "/v1/queues/mail/tasks", body).await.json();
    let statuses: Vec<&serde_json::Value> =
        results["results"].as_array().unwrap().iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [201, 422, 422, 201]);
    assert_eq!(
        results["results"][1]["problem"]["detail"],
        "dealy: unknown field \"dealy\", did you mean \"delay\"?"
    );
    let lines = "{\"delay\": \"1h\"}\n\n{\"priority\": 10}\nnot json\n{}\n";
    let headers = [("content-type", "application/x-ndjson"), ("prefer", "return=minimal")];
    let answer = world.ask_with("POST", "/v1/queues/mail/tasks", &headers, lines.as_bytes()).await;
    let statuses: Vec<serde_json::Value> = answer
        .body
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["status"].clone())
        .collect();
    assert_eq!(statuses, [201, 422, 400, 201]);
    assert!(!answer.body.contains("scheduled"), "no more than ids was wanted");
}

#[tokio::test]
async fn the_same_unique_key_is_the_same_task() {
    let world = World::new().await;
    let at = wire::Moment::from_micros(4_000_000_000_000_000);
    let task = |on_conflict| NewTask {
        on_conflict: Some(on_conflict),
        ..NewTask::new().at(at).unique_key("order-7")
    };
    let first = world.client.create("mail", &task(OnConflict::Keep)).await.unwrap();
    let again = world.client.create("mail", &task(OnConflict::Keep)).await.unwrap();
    assert_eq!((first.task.id.as_str(), again.is_new), (again.task.id.as_str(), false));
    let refused = world.client.create("mail", &task(OnConflict::Error)).await.unwrap_err();
    assert_eq!(refused.code(), Some("task_exists"));
}

#[tokio::test]
async fn a_task_that_has_ended_is_still_there_for_whoever_minds() {
    let world = World::at("2030-01-01T00:00:00Z").await;
    let task = |on_conflict: &str| {
        json!({"at": "2030-01-01T01:00:00Z", "unique_key": "k", "on_conflict": on_conflict}).to_string()
    };
    let first = world.ask("POST", "/v1/queues/mail/tasks", &task("error")).await.json();
    let path = format!("/v1/tasks/{}", first["id"].as_str().unwrap());
    world.ask("DELETE", &path, "").await;
    // After a day no more is remembered of it than its end.
    for by in ["1s", "3d"] {
        world.ask("POST", "/v1/clock:advance", &json!({"by": by}).to_string()).await;
        let refused = world.ask("POST", "/v1/queues/mail/tasks", &task("error")).await;
        assert_eq!(refused.problem(), (409, "task_exists".to_owned()), "{by}");
        assert!(refused.body.contains(first["id"].as_str().unwrap()), "{}", refused.body);
        let batch = format!(r#"{{"tasks": [{}]}}"#, task("error"));
        let results = world.ask("POST", "/v1/queues/mail/tasks", &batch).await.json();
        assert_eq!(results["results"][0]["problem"]["code"], "task_exists", "{results}");
        for on_conflict in ["replace", "keep"] {
            let there = world.ask("POST", "/v1/queues/mail/tasks", &task(on_conflict)).await;
            assert_eq!((there.status, &there.json()["state"]), (200, &json!("cancelled")), "{on_conflict}");
        }
    }
}

#[tokio::test]
async fn tasks_are_listed_a_page_at_a_time_and_changed_by_filter() {
    let world = World::new().await;
    let tasks: Vec<NewTask> = (0..25).map(|n| later().name(format!("n{}", n % 5))).collect();
    world.client.create_many("mail", &tasks).await.unwrap();
    world.client.create("other", &later()).await.unwrap();
    let query = TaskQuery { queue: Some("mail".into()), limit: Some(10), ..TaskQuery::default() };
    let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = world.client.list(&TaskQuery { cursor, ..query.clone() }).await.unwrap();
        seen.extend(page.tasks.into_iter().map(|task| task.id));
        pages += 1;
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 25);
    assert!(pages >= 3, "{pages} pages");
    let filter = Filter { queue: Some("mail".into()), name: Some("n3".into()), ..Filter::default() };
    let dry = ByFilter { filter: filter.clone(), dry_run: true, ..ByFilter::default() };
    let counted = world.client.cancel_by_filter(&dry).await.unwrap();
    assert_eq!((counted.matched, counted.changed), (5, 0));
    let cancelled = world.client.cancel_by_filter(&ByFilter { dry_run: false, ..dry }).await.unwrap();
    assert_eq!((cancelled.matched, cancelled.changed), (5, 5));
    let ended = TaskQuery { state: Some(State::Cancelled), ..TaskQuery::default() };
    assert_eq!(world.client.list(&ended).await.unwrap().tasks.len(), 5);
    let all = TaskQuery { queue: Some("mail".into()), ..TaskQuery::default() };
    let page = world.client.list(&all).await.unwrap();
    assert_eq!((page.tasks.len(), page.next), (25, None), "what has ended follows what has not");
}

#[tokio::test]
async fn what_has_not_failed_is_not_retried() {
    let world = World::new().await;
    let waiting = world.client.create("mail", &later()).await.unwrap().task.id;
    for path in [format!("/v1/tasks/{waiting}:retry"), format!("/v1/tasks/{waiting}/kick")] {
        let refused = world.ask("POST", &path, "").await;
        assert_eq!(refused.problem(), (409, "task_not_failed".to_owned()), "{path}");
    }
    let all = world.ask("POST", "/v1/tasks:retry", r#"{"filter": {}}"#).await.json();
    assert_eq!((&all["matched"], &all["changed"]), (&json!(0), &json!(0)));
    assert_eq!(world.client.task(&waiting).await.unwrap().revision, 1, "it waits as before");
    // A failed one has its next attempt at once, as if it were its first.
    let retry = json!({"retry": {"min": "1h", "max": "1h"}}).to_string();
    let failing =
        world.ask("POST", "/v1/queues/work/tasks", &retry).await.json()["id"].as_str().unwrap().to_owned();
    let reserved = world.ask("POST", "/v1/queues/work/reserve", "{}").await.json();
    let nack = json!({"token": reserved["tasks"][0]["token"], "error": "no"}).to_string();
    world.ask("POST", &format!("/v1/tasks/{failing}/nack"), &nack).await;
    assert_eq!(world.client.task(&failing).await.unwrap().state, State::Retrying);
    let all = world.ask("POST", "/v1/tasks:retry", r#"{"filter": {}}"#).await.json();
    assert_eq!((&all["matched"], &all["changed"]), (&json!(1), &json!(1)));
    let reserved = world.ask("POST", "/v1/queues/work/reserve", r#"{"wait": "10s"}"#).await.json();
    assert_eq!(reserved["tasks"][0]["id"], failing.as_str());
}

#[tokio::test]
async fn whoever_makes_a_task_that_no_server_runs_is_told() {
    let world = World::new().await;
    world.ask("PUT", "/v1/queues/handled", r#"{"target": {"handler": "h"}}"#).await;
    let batch = r#"{"tasks": [{"handler": "h"}, {}]}"#;
    let results = world.ask("POST", "/v1/queues/q/tasks", batch).await.json();
    let warnings = |task: &serde_json::Value| task.get("warnings").cloned();
    let told = warnings(&results["results"][0]["task"]).expect("it is told");
    assert!(told[0].as_str().unwrap().contains("no server runs handlers"), "{told}");
    assert_eq!(warnings(&results["results"][1]["task"]), None, "a worker may come");
    let made =
        world.ask("POST", "/v1/queues/handled/tasks", r#"{"unique_key": "k", "delay": "1h"}"#).await.json();
    assert_eq!(warnings(&made), Some(told.clone()), "its queue says who does it");
    let id = made["id"].as_str().unwrap();
    let looked = world.ask("GET", &format!("/v1/tasks/{id}"), "").await.json();
    assert_eq!(warnings(&looked), None, "it is told once");
}
