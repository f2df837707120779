//! `view=full`: whatever answers a task shows all of it to whoever asks for that and may; what answers none says so.

use serde_json::{Value, json};

use super::world::World;

const TASKS: &str = "/v1/queues/q/tasks";

/// A task that carries something, and waits.
fn task(payload: i32) -> Value {
    json!({"payload": payload, "delay": "1h", "callback": "http://127.0.0.1:9/done", "retry": "webhooks"})
}

fn assert_full(task: &Value, payload: i32) {
    assert_eq!(task["payload"], payload, "{task}");
    assert_eq!(task["callback"], "http://127.0.0.1:9/done", "{task}");
    assert_eq!(task["retry"], "webhooks", "{task}");
}

#[tokio::test]
async fn whatever_makes_tasks_shows_all_of_them_if_it_is_asked_to() {
    let world = World::new().await;
    let full = format!("{TASKS}?view=full");
    let made = world.ask("POST", &full, &task(1).to_string()).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_full(&made.json(), 1);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(made.json(), world.ask("GET", &format!("/v1/tasks/{id}?view=full"), "").await.json());
    let call = json!({"delay": "1h", "http": {"url": "http://127.0.0.1:9/x", "body": "text"}});
    let call = world.ask("POST", &full, &call.to_string()).await.json();
    assert_eq!(call["http"]["url"], "http://127.0.0.1:9/x", "{call}");
    let batch = json!({"tasks": [task(1), {"delay": "x"}, task(2)]}).to_string();
    let results = world.ask("POST", &full, &batch).await.json();
    assert_full(&results["results"][0]["task"], 1);
    assert_eq!(results["results"][1]["status"], 422);
    assert_full(&results["results"][2]["task"], 2);
    let lines = format!("{}\n{}\n", task(1), task(2));
    let answer =
        world.ask_with("POST", &full, &[("content-type", "application/x-ndjson")], lines.as_bytes()).await;
    for (line, payload) in answer.body.lines().zip([1, 2]) {
        assert_full(&serde_json::from_str::<Value>(line).unwrap()["task"], payload);
    }
    for query in ["", "?view=basic"] {
        let plain = world.ask("POST", &format!("{TASKS}{query}"), &task(1).to_string()).await.json();
        assert!(plain.get("payload").is_none(), "{plain}");
    }
}

#[tokio::test]
async fn one_that_was_there_already_is_shown_as_it_is() {
    let world = World::new().await;
    let keyed = |payload: i32| {
        let mut keyed = task(payload);
        keyed["at"] = "2099-01-01T00:00:00Z".into();
        keyed["unique_key"] = "k".into();
        keyed["on_conflict"] = "keep".into();
        keyed.as_object_mut().unwrap().remove("delay");
        keyed.to_string()
    };
    let full = format!("{TASKS}?view=full");
    world.ask("POST", TASKS, &keyed(1)).await;
    let there = world.ask("POST", &full, &keyed(2)).await;
    assert_eq!(there.status, 200, "{there:?}");
    assert_full(&there.json(), 1);
}

#[tokio::test]
async fn whatever_changes_a_task_shows_all_of_it_if_it_is_asked_to() {
    let world = World::new().await;
    let made = world.ask("POST", TASKS, &task(1).to_string()).await.json();
    let path = format!("/v1/tasks/{}", made["id"].as_str().unwrap());
    assert_full(&world.ask("PATCH", &format!("{path}?view=full"), r#"{"payload": 2}"#).await.json(), 2);
    assert!(world.ask("PATCH", &path, r#"{"payload": 3}"#).await.json().get("payload").is_none());
    assert_full(&world.ask("POST", &format!("{path}:run?view=full"), "").await.json(), 3);
    let reserved = world.ask("POST", "/v1/queues/q/reserve", r#"{"wait": "10s"}"#).await.json();
    let token = json!({"token": reserved["tasks"][0]["token"], "error": "no"}).to_string();
    world.ask("POST", &format!("{path}/bury"), &token).await;
    assert_full(&world.ask("POST", &format!("{path}:retry?view=full"), "").await.json(), 3);
}

#[tokio::test]
async fn the_head_of_a_blocked_lane_is_shown_whole_if_it_is_asked_for() {
    let world = World::new().await;
    world.ask("POST", TASKS, r#"{"payload": 7, "lane": "l", "retry": {"attempts": 1}}"#).await;
    let reserved = world.ask("POST", "/v1/queues/q/reserve", r#"{"wait": "10s"}"#).await.json();
    let id = reserved["tasks"][0]["id"].as_str().unwrap().to_owned();
    let token = json!({"token": reserved["tasks"][0]["token"]}).to_string();
    let failed = world.ask("POST", &format!("/v1/tasks/{id}/nack"), &token).await.json();
    assert_eq!(failed["state"], "blocked", "{failed}");
    let lanes = world.ask("GET", "/v1/lanes?view=full", "").await.json();
    assert_eq!(lanes["lanes"][0]["head"]["payload"], 7, "{lanes}");
    let lanes = world.ask("GET", "/v1/lanes", "").await.json();
    assert!(lanes["lanes"][0]["head"].get("payload").is_none(), "{lanes}");
}

#[tokio::test]
async fn what_answers_no_task_says_so_and_does_nothing() {
    let world = World::new().await;
    let made = world.ask("POST", TASKS, &task(1).to_string()).await.json();
    let path = format!("/v1/tasks/{}", made["id"].as_str().unwrap());
    let invalid = (400, "query_invalid".to_owned());
    for (method, path) in [
        ("DELETE", path.as_str()),
        ("POST", "/v1/tasks:cancel"),
        ("POST", "/v1/queues/q:purge"),
        ("POST", "/v1/queues/q/reserve"),
        ("PUT", "/v1/queues/q"),
        ("GET", "/v1/queues/q/peek"),
        ("POST", "/schedule"),
    ] {
        let refused = world.ask(method, &format!("{path}?view=full"), r#"{"filter": {}}"#).await;
        assert_eq!(refused.problem(), invalid, "{method} {path}");
        assert!(refused.body.contains("view"), "{}", refused.body);
    }
    for (method, path) in [("POST", TASKS), ("PATCH", path.as_str())] {
        let refused = world.ask(method, &format!("{path}?view=whole"), "{}").await;
        assert_eq!(refused.problem(), invalid, "{method} {path}");
    }
    assert_eq!(world.ask("GET", &path, "").await.json(), made);
    let all = world.ask("GET", "/v1/tasks", "").await.json();
    assert_eq!(all["tasks"].as_array().unwrap().len(), 1, "{all}");
}

#[tokio::test]
async fn an_answer_with_payloads_is_bounded_and_kept_for_one_task_only() {
    let world = World::new().await;
    let full = format!("{TASKS}?view=full");
    let many = json!({"tasks": vec![json!({"delay": "1h"}); 1001]}).to_string();
    assert_eq!(world.ask("POST", &full, &many).await.problem(), (413, "body_too_large".to_owned()));
    let key = [("idempotency-key", "k")];
    let one = task(1).to_string();
    let first = world.ask_with("POST", &full, &key, one.as_bytes()).await;
    let again = world.ask_with("POST", &full, &key, one.as_bytes()).await;
    assert_full(&again.json(), 1);
    assert_eq!(first.body, again.body);
    // Whoever does not ask for what it carries is not told.
    let plain = world.ask_with("POST", TASKS, &key, one.as_bytes()).await;
    assert_eq!(plain.problem(), (422, "idempotency_key_reused".to_owned()));
    let batch = json!({"tasks": [task(1)]}).to_string();
    let refused = world.ask_with("POST", &full, &[("idempotency-key", "b")], batch.as_bytes()).await;
    assert_eq!(refused.problem(), (400, "query_invalid".to_owned()));
}

#[tokio::test]
async fn a_page_with_payloads_ends_when_there_is_enough_of_it() {
    // A thousand payloads of a quarter of a megabyte were one answer, held in memory until the last byte was read.
    let world = World::new().await;
    let large = json!({"payload": "x".repeat(250_000), "delay": "1h"});
    for _ in 0..3 {
        let batch = json!({"tasks": vec![&large; 25]}).to_string();
        assert_eq!(world.ask("POST", TASKS, &batch).await.status, 200);
    }
    let (mut pages, mut seen, mut cursor) = (0, 0, String::new());
    loop {
        let page = world.ask("GET", &format!("/v1/tasks?view=full&limit=1000{cursor}"), "").await;
        assert!(page.body.len() < 16 * 1024 * 1024, "{} bytes", page.body.len());
        let page = page.json();
        (pages, seen) = (pages + 1, seen + page["tasks"].as_array().unwrap().len());
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!((pages, seen), (2, 75), "and none is left out");
    let all = world.ask("GET", "/v1/tasks?limit=1000", "").await.json();
    assert_eq!(all["tasks"].as_array().unwrap().len(), 75, "what is not shown does not count");
}

/// Forty tasks of a quarter of a megabyte each, ten megabytes in all.
async fn make_forty_large(world: &World) {
    let large = |number: usize| json!({"payload": "x".repeat(250_000), "unique_key": number.to_string(), "at": "2020-01-01T00:00:00Z"});
    let made = world.ask("PUT", "/v1/queues/q", r#"{"past": "run_now"}"#).await;
    assert_eq!(made.status, 200, "{made:?}");
    for first in [0, 20] {
        let batch = json!({"tasks": (first..first + 20).map(large).collect::<Vec<_>>()}).to_string();
        assert_eq!(world.ask("POST", TASKS, &batch).await.status, 200);
    }
}

#[tokio::test]
async fn a_reserve_gets_no_more_than_fits_and_leaves_the_rest() {
    // A thousand payloads of a quarter of a megabyte were one answer.
    let world = World::new().await;
    make_forty_large(&world).await;
    let peeked = world.ask("GET", "/v1/queues/q/peek?limit=1000", "").await;
    assert!(peeked.body.len() < 12 * 1024 * 1024, "{} bytes", peeked.body.len());
    let mut seen = Vec::new();
    while seen.len() < 40 {
        let reserved = world.ask("POST", "/v1/queues/q/reserve", r#"{"max": 1000, "wait": "10s"}"#).await;
        assert!(reserved.body.len() < 9 * 1024 * 1024, "{} bytes", reserved.body.len());
        for task in reserved.json()["tasks"].as_array().unwrap() {
            assert_eq!(task["attempt"], 1, "{task}");
            seen.push(task["id"].as_str().unwrap().to_owned());
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 40);
}

#[tokio::test]
async fn a_batch_shows_no_more_than_fits_and_says_so() {
    let world = World::new().await;
    make_forty_large(&world).await;
    let small = |number: usize| json!({"unique_key": number.to_string(), "at": "2020-01-01T00:00:00Z", "on_conflict": "keep"});
    let batch = json!({"tasks": (0..40).map(small).collect::<Vec<_>>()}).to_string();
    let answer = world.ask("POST", &format!("{TASKS}?view=full"), &batch).await;
    assert!(answer.body.len() < 9 * 1024 * 1024, "{} bytes", answer.body.len());
    let results = answer.json()["results"].as_array().unwrap().clone();
    for (number, result) in results.iter().enumerate() {
        assert_eq!((&result["status"], result["task"]["id"].is_string()), (&json!(200), true), "{number}");
        assert_eq!(result["task"].get("payload").is_none(), result["view"] == "basic", "{number}");
    }
    assert!(results[0]["task"]["payload"].is_string());
    assert_eq!(results[39]["view"], "basic");
}
