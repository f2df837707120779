//! Revisions: whoever names one changes that and nothing else, and a change is made as a whole or not at all.

use futures_util::future::join_all;
use serde_json::Value;

use super::world::World;

async fn make(world: &World) -> (String, Value) {
    let task = world.ask("POST", "/v1/queues/q/tasks", r#"{"payload": 1, "delay": "1h"}"#).await.json();
    (format!("/v1/tasks/{}", task["id"].as_str().expect("it has an id")), task)
}

#[tokio::test]
async fn of_many_who_name_the_same_revision_one_succeeds() {
    let world = World::new().await;
    for (method, verb, body) in [
        ("PATCH", "", r#"{"delay": "2h"}"#),
        ("PATCH", "", r#"{"delay": "2h", "payload": 2}"#),
        ("POST", ":run", ""),
    ] {
        let (path, _) = make(&world).await;
        let path = format!("{path}{verb}");
        let headers = [("if-match", "\"1\"")];
        let asked = (0..16).map(|_| world.ask_with(method, &path, &headers, body.as_bytes()));
        let mut answers: Vec<u16> = join_all(asked).await.iter().map(|answer| answer.status).collect();
        answers.sort_unstable();
        assert_eq!(answers[0], 200, "{method} {path}");
        assert!(answers[1..].iter().all(|status| *status == 412), "{method} {path}: {answers:?}");
    }
}

#[tokio::test]
async fn whoever_names_another_revision_changes_nothing() {
    let world = World::new().await;
    let (path, task) = make(&world).await;
    let headers = [("if-match", "\"7\"")];
    for (method, verb) in [("DELETE", ""), ("POST", ":run"), ("POST", ":retry"), ("PATCH", "")] {
        let answer = world.ask_with(method, &format!("{path}{verb}"), &headers, b"").await;
        assert_eq!(answer.problem(), (412, "task_changed".to_owned()), "{method} {verb}");
    }
    assert_eq!(world.ask("GET", &path, "").await.json(), task);
    let cancelled = world.ask_with("DELETE", &path, &[("if-match", "\"1\"")], b"").await;
    assert_eq!(cancelled.json()["state"], "cancelled");
}

#[tokio::test]
async fn a_patch_is_made_as_a_whole_or_not_at_all() {
    let world = World::new().await;
    let (path, _) = make(&world).await;
    let full = format!("{path}?view=full");
    let before = world.ask("GET", &full, "").await.json();
    for (body, code) in [
        (r#"{"payload": 2, "at": "2001-01-01T00:00:00Z"}"#, "task_due_in_past"),
        (r#"{"at": "2099-01-01T00:00:00Z", "expires_at": "2098-01-01T00:00:00Z"}"#, "expires_before_due"),
        (r#"{"payload": 2, "delay": "2990000d"}"#, "time_out_of_range"),
        (r#"{"payload": 2, "callback": "ftp://example.com"}"#, "call_invalid"),
        (r#"{"payload": 2, "http": null}"#, "field_invalid"),
        (r#"{"payload": 2, "handler": null}"#, "field_invalid"),
    ] {
        assert_eq!(world.ask("PATCH", &path, body).await.problem(), (422, code.to_owned()), "{body}");
        assert_eq!(world.ask("GET", &full, "").await.json(), before, "{body}");
    }
    // The new time fits the new deadline, whatever the old time was.
    let body = r#"{"payload": 2, "delay": "10m", "expires_at": "2099-01-01T00:00:00Z"}"#;
    let changed = world.ask("PATCH", &path, body).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!(changed.json()["revision"], 2, "it is one change");
    let after = world.ask("GET", &full, "").await.json();
    assert_eq!(after["payload"], 2);
    assert!(after["at"].as_str() < before["at"].as_str(), "{after}");
}

#[tokio::test]
async fn any_of_a_list_will_do_and_a_star_means_what_is_there() {
    let world = World::new().await;
    for (method, verb, body) in
        [("PATCH", "", r#"{"delay": "2h"}"#), ("POST", ":run", ""), ("DELETE", "", "")]
    {
        for (tags, status) in [
            (r#""7", "8""#, 412),
            (r#"W/"1""#, 412),
            (r#""other", "8""#, 412),
            (r#""7", "1""#, 200),
            ("*", 200),
        ] {
            let (path, _) = make(&world).await;
            let path = format!("{path}{verb}");
            let answer = world.ask_with(method, &path, &[("if-match", tags)], body.as_bytes()).await;
            assert_eq!(answer.status, status, "{method} {path} {tags}: {}", answer.body);
        }
        let (path, _) = make(&world).await;
        let lines = [("if-match", r#""9""#), ("if-match", r#""1""#)];
        let answer = world.ask_with(method, &format!("{path}{verb}"), &lines, body.as_bytes()).await;
        assert_eq!(answer.status, 200, "{method} {verb} in two lines: {}", answer.body);
    }
    let missing = world.ask_with("PUT", "/v1/queues/none", &[("if-match", "*")], b"{}").await;
    assert_eq!(missing.problem(), (412, "queue_changed".to_owned()), "it is not there");
    let queue = world.ask("PUT", "/v1/queues/there", "{}").await;
    let tag = queue.head.split("etag: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let listed = format!("\"0\", {}", tag.expect("it has one"));
    for (tags, status) in [("\"0\"", 412), ("*", 200), (&listed, 412)] {
        let headers = [("if-match", tags)];
        let answer = world.ask_with("PATCH", "/v1/queues/there", &headers, br#"{"timeout": "9s"}"#).await;
        assert_eq!(answer.status, status, "{tags}");
    }
    let stale = world.ask_with("DELETE", "/v1/queues/there", &[("if-match", &listed)], b"").await;
    assert_eq!(stale.problem(), (412, "queue_changed".to_owned()));
    assert_eq!(world.ask_with("DELETE", "/v1/queues/there", &[("if-match", "*")], b"").await.status, 204);
}

#[tokio::test]
async fn of_many_who_retry_the_same_dead_task_one_succeeds() {
    let world = World::new().await;
    world.ask("POST", "/v1/queues/q/tasks", "{}").await;
    let reserved = world.ask("POST", "/v1/queues/q/reserve", r#"{"wait": "10s"}"#).await.json();
    let path = format!("/v1/tasks/{}", reserved["tasks"][0]["id"].as_str().unwrap());
    let token = serde_json::json!({"token": reserved["tasks"][0]["token"]}).to_string();
    world.ask("POST", &format!("{path}/bury"), &token).await;
    let dead = world.ask("GET", &path, "").await.json();
    assert_eq!(dead["state"], "dead");
    let kicked = world.ask_with("POST", &format!("{path}/kick"), &[("if-match", "\"7\"")], b"{}").await;
    assert_eq!(kicked.problem(), (412, "task_changed".to_owned()), "a kick is the same by another name");
    let tag = format!("\"{}\"", dead["revision"]);
    let (path, headers) = (format!("{path}:retry"), [("if-match", tag.as_str())]);
    let asked = (0..16).map(|_| world.ask_with("POST", &path, &headers, b""));
    let mut answers: Vec<u16> = join_all(asked).await.iter().map(|answer| answer.status).collect();
    answers.sort_unstable();
    assert_eq!((answers[0], &answers[1..]), (200, &[412; 15][..]));
}

#[tokio::test]
async fn whoever_names_a_revision_takes_no_other_with_it() {
    let world = World::new().await;
    let (path, _) = make(&world).await;
    let run = world.ask_with("POST", &format!("{path}:run"), &[("if-match", "\"1\"")], b"").await.json();
    assert_eq!(run["revision"], 2, "comparing costs no change of its own");
}

#[tokio::test]
async fn a_revision_is_looked_at_before_the_state() {
    let world = World::new().await;
    world.ask("POST", "/v1/queues/q/tasks", "{}").await;
    let reserved = world.ask("POST", "/v1/queues/q/reserve", r#"{"wait": "10s"}"#).await.json();
    let path = format!("/v1/tasks/{}", reserved["tasks"][0]["id"].as_str().unwrap());
    let patch = async |tag: &str| {
        let patched = world.ask_with("PATCH", &path, &[("if-match", tag)], br#"{"delay": "2h"}"#).await;
        patched.problem()
    };
    let (changed, refused) = ((412, "task_changed".to_owned()), |code: &str| (409, code.to_owned()));
    assert_eq!(patch("\"7\"").await, changed, "it runs");
    assert_eq!(patch("\"1\"").await, refused("task_running"));
    let token = serde_json::json!({"token": reserved["tasks"][0]["token"]}).to_string();
    world.ask("POST", &format!("{path}/ack"), &token).await;
    assert_eq!(patch("\"7\"").await, changed, "it has ended");
    assert_eq!(patch("\"1\"").await, changed, "that is a change");
    assert_eq!(patch("\"2\"").await, refused("task_ended"));
    assert_eq!(patch("*").await, refused("task_ended"));
}

#[tokio::test]
async fn a_cancelled_task_has_another_tag() {
    let world = World::new().await;
    let (path, task) = make(&world).await;
    assert_eq!(task["revision"], 1);
    let delete = async |tag: &str| world.ask_with("DELETE", &path, &[("if-match", tag)], b"").await;
    assert_eq!(delete("\"1\"").await.status, 200);
    let after = world.ask("GET", &path, "").await;
    assert_eq!((&after.json()["state"], &after.json()["revision"]), (&"cancelled".into(), &2.into()));
    assert!(after.head.contains("etag: \"2\""), "{}", after.head);
    assert_eq!(delete("\"1\"").await.problem(), (412, "task_changed".to_owned()));
    assert_eq!(delete("\"2\"").await.problem(), (409, "task_ended".to_owned()));
    let listed = world.ask("GET", "/v1/tasks?state=cancelled", "").await.json();
    assert_eq!(listed["tasks"][0]["revision"], 2);
}

#[tokio::test]
async fn what_somebody_has_already_is_not_sent_again() {
    let world = World::new().await;
    let (task, _) = make(&world).await;
    world.ask("PUT", "/v1/queues/there", "{}").await;
    for path in [task.as_str(), "/v1/queues/there"] {
        let whole = world.ask("GET", path, "").await;
        let tag = whole.head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("it has one");
        for tags in [tag.to_owned(), format!("W/{tag}"), format!("\"0\", {tag}"), "*".to_owned()] {
            let again = world.ask_with("GET", path, &[("if-none-match", &tags)], b"").await;
            assert_eq!((again.status, again.body.as_str()), (304, ""), "{path} {tags}");
            assert!(again.head.contains(&format!("etag: {tag}")), "{}", again.head);
        }
        let other = world.ask_with("GET", path, &[("if-none-match", "\"0\", \"x\"")], b"").await;
        assert_eq!((other.status, other.json()), (200, whole.json()), "{path}");
    }
    let missing = world.ask_with("GET", "/v1/queues/none", &[("if-none-match", "*")], b"").await;
    assert_eq!(missing.problem(), (404, "queue_not_found".to_owned()));
}

#[tokio::test]
async fn a_task_that_is_being_worked_on_is_not_what_it_was() {
    let world = World::new().await;
    let made = world.ask("POST", "/v1/queues/q/tasks", "{}").await.json();
    let path = format!("/v1/tasks/{}", made["id"].as_str().unwrap());
    world.ask("POST", "/v1/queues/q/reserve", r#"{"wait": "10s"}"#).await;
    let looked = world.ask_with("GET", &path, &[("if-none-match", "\"1\"")], b"").await;
    assert_eq!((looked.status, &looked.json()["revision"]), (200, &1.into()));
    assert_eq!(looked.json()["state"], "reserved");
}

#[tokio::test]
async fn a_queue_that_must_not_be_there_is_made_once() {
    let world = World::new().await;
    let headers = [("if-none-match", "*")];
    let asked = (0..8).map(|_| world.ask_with("PUT", "/v1/queues/once", &headers, br#"{"timeout": "9s"}"#));
    let mut answers: Vec<u16> = join_all(asked).await.iter().map(|answer| answer.status).collect();
    answers.sort_unstable();
    assert_eq!((answers[0], &answers[1..]), (200, &[412; 7][..]));
    let refused = world.ask_with("PUT", "/v1/queues/once", &headers, b"{}").await;
    assert_eq!(refused.problem(), (412, "queue_exists".to_owned()));
    assert_eq!(world.ask("GET", "/v1/queues/once", "").await.json()["timeout"], "PT9S");
}

#[tokio::test]
async fn a_tag_without_quotes_is_none() {
    let world = World::new().await;
    let (path, task) = make(&world).await;
    for (method, header) in [("DELETE", "if-match"), ("PATCH", "if-match"), ("GET", "if-none-match")] {
        let answer = world.ask_with(method, &path, &[(header, "1")], b"").await;
        assert_eq!(answer.problem(), (400, "etag_invalid".to_owned()), "{method}");
        assert!(answer.body.contains("quotes"), "{}", answer.body);
    }
    assert_eq!(world.ask("GET", &path, "").await.json(), task);
}
