//! Bad input gets a clear error, and changes nothing.

use punctual_client::wire::Scope;
use punctual_server::{Need, PATHS};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::world::World;

#[tokio::test]
async fn bad_requests_are_refused_with_a_code_each() {
    let world = World::new().await;
    let tasks = "/v1/queues/q/tasks";
    let too_long = format!(r#"{{"lane": "{}"}}"#, "x".repeat(501));
    let too_large = format!(r#"{{"payload": "{}"}}"#, "x".repeat(300 * 1024));
    for (method, path, body, status, code) in [
        ("POST", tasks, "{", 400, "body_invalid"),
        ("POST", tasks, "[1]", 422, "field_invalid"),
        ("POST", tasks, r#"{"nmae": "x"}"#, 422, "field_invalid"),
        ("POST", tasks, r#"{"delay": 5}"#, 422, "field_invalid"),
        ("POST", tasks, r#"{"delay": "5"}"#, 422, "field_invalid"),
        ("POST", tasks, r#"{"at": "2026-12-24T18:00:00"}"#, 422, "field_invalid"),
        ("POST", tasks, r#"{"at": "2026-12-24T18:00:00", "timezone": "Mars/One"}"#, 422, "field_invalid"),
        ("POST", tasks, r#"{"at": "2001-01-01T00:00:00Z"}"#, 422, "task_due_in_past"),
        ("POST", tasks, r#"{"at": "2099-01-01T00:00:00Z", "delay": "1s"}"#, 422, "field_invalid"),
        (
            "POST",
            tasks,
            r#"{"at": "2099-01-01T00:00:00Z", "expires_at": "2098-01-01T00:00:00Z"}"#,
            422,
            "expires_before_due",
        ),
        ("POST", tasks, r#"{"lane": ""}"#, 422, "name_empty"),
        ("POST", tasks, &too_long, 422, "name_too_long"),
        ("POST", tasks, &too_large, 422, "payload_too_large"),
        ("POST", tasks, r#"{"priority": 10}"#, 422, "setting_invalid"),
        ("POST", tasks, r#"{"priority": 1, "lane": "x"}"#, 422, "priority_with_lane"),
        ("POST", tasks, r#"{"payload": 1, "payload_base64": "MQ=="}"#, 422, "field_invalid"),
        ("POST", tasks, r#"{"retry": "often"}"#, 422, "field_invalid"),
        ("POST", "/v1/queues/a%20b/tasks", "{}", 422, "queue_name_invalid"),
        ("POST", "/v1/queues/%2e%2e/tasks", "{}", 422, "queue_name_invalid"),
        ("PUT", "/v1/queues/%2e", "{}", 422, "queue_name_invalid"),
        ("POST", "/v1/queues/%ff/tasks", "{}", 404, "not_found"),
        ("GET", "/v1/tasks/%ff", "", 404, "not_found"),
        ("POST", "/v1/queues/typo:pause", "", 404, "queue_not_found"),
        ("POST", "/v1/queues/typo:resume", "", 404, "queue_not_found"),
        ("GET", "/v1/tasks/nonsense", "", 404, "task_id_invalid"),
        ("GET", "/v1/tasks?sate=dead", "", 400, "query_invalid"),
        ("GET", "/v1/tasks?limit=0", "", 400, "query_invalid"),
        ("GET", "/v1/tasks?cursor=nonsense", "", 400, "cursor_invalid"),
        ("POST", "/v1/queues/q/reserve", r#"{"max": 1001}"#, 422, "setting_invalid"),
        ("POST", "/v1/queues/q/reserve", r#"{"wait": "31s"}"#, 422, "setting_invalid"),
        ("PUT", "/v1/queues/q", r#"{"timeout": "0s"}"#, 422, "setting_invalid"),
        (
            "PUT",
            "/v1/queues/q",
            r#"{"target": {"http": {"url": "http://127.0.0.1:1/"}, "handler": "x"}}"#,
            422,
            "field_invalid",
        ),
        ("PUT", "/v1/queues/q", r#"{"secrets": ["short"]}"#, 422, "field_invalid"),
        ("PUT", "/v1/queues/q", r#"{"success": {"codes": ["abc"]}}"#, 422, "field_invalid"),
        ("PUT", "/v1/queues/q", r#"{"success": {"codes": []}}"#, 422, "field_invalid"),
        ("POST", tasks, r#"{"delay": "1h", "timezone": "Mars/One"}"#, 422, "field_invalid"),
        ("GET", "/v1/events?queue=b@d", "", 422, "queue_name_invalid"),
        ("GET", "/v1/queues/nobody", "", 404, "queue_not_found"),
        ("POST", "/v1/queues/q:explode", "", 404, "not_found"),
        ("GET", "/v2", "", 404, "not_found"),
        ("PUT", "/v1/tasks", "", 405, "method_not_allowed"),
        ("POST", "/schedule", r#"{"url": "http://example.com"}"#, 422, "field_invalid"),
        ("GET", "/v1/tasks?limit=1&limit=2", "", 400, "query_invalid"),
    ] {
        let answer = world.ask(method, path, body).await;
        let shown = &body[..body.len().min(80)];
        assert_eq!(answer.problem(), (status, code.to_owned()), "{method} {path} {shown}: {}", answer.body);
    }
    let all = world.ask("GET", "/v1/tasks", "").await.json();
    assert_eq!(all["tasks"].as_array().unwrap().len(), 0, "nothing was changed");
}

#[tokio::test]
async fn what_is_wrong_is_named_and_said_in_words_of_the_wire() {
    let world = World::new().await;
    let tasks = "/v1/queues/q/tasks";
    for (method, path, body, detail) in [
        ("GET", "/v1/tasks?limit=", "", "limit: is no number"),
        ("GET", "/v1/tasks?limit=abc", "", "limit: is no number"),
        ("GET", "/v1/tasks?state=", "", "state: "),
        (
            "POST",
            "/schedule",
            r#"{"url": "http://127.0.0.1:1/", "executionDateTime": "2030-01-01T09:00:00"}"#,
            "executionDateTime: 2030-01-01T09:00:00 has no offset",
        ),
        ("GET", "/v1/tasks?sate=dead", "", "did you mean \"state\"?"),
        ("POST", tasks, r#"{"lane": "\ud800"}"#, "text with half a character"),
        ("PUT", "/v1/queues/q", r#"{"target": "handler"}"#, "a word that needs a value"),
        ("PUT", "/v1/queues/q", r#"{"secrets": "whsec_"}"#, "expected a list"),
    ] {
        let problem = world.ask(method, path, body).await.json();
        let said = problem["detail"].as_str().unwrap();
        assert!(said.contains(detail), "{method} {path} {body}: {problem}");
    }
    let made = world.ask("POST", tasks, r#"{"delay": "1h"}"#).await.json();
    let path = format!("/v1/tasks/{}", made["id"].as_str().unwrap());
    let alone = world.ask("PATCH", &path, r#"{"timezone": "Europe/Paris"}"#).await;
    assert_eq!(alone.problem(), (422, "field_invalid".to_owned()), "a zone of no time");
}

/// They were read as if they had come as they are.
#[tokio::test]
async fn a_body_in_a_coding_is_refused() {
    let world = World::new().await;
    let refused = (415, "media_type_unknown".to_owned());
    for kind in ["application/json", "application/x-ndjson"] {
        for coding in ["gzip", "br", "identity, gzip"] {
            let headers = [("content-type", kind), ("content-encoding", coding)];
            let answer = world.ask_with("POST", "/v1/queues/q/tasks", &headers, b"{}").await;
            assert_eq!(answer.problem(), refused, "{kind} {coding}");
        }
        let headers =
            [("content-type", kind), ("content-encoding", "Identity"), ("prefer", "return=minimal")];
        let answer = world.ask_with("POST", "/v1/queues/q/tasks", &headers, b"{}").await;
        assert!(answer.status < 300, "{}", answer.body);
    }
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let request = "POST /v1/queues/q/tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                   Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 415 ") && answer.contains("send the body as it is"), "{answer}");
    let all = world.ask("GET", "/v1/tasks", "").await.json();
    assert_eq!(all["tasks"].as_array().unwrap().len(), 2, "nothing but what came plain");
}

#[tokio::test]
async fn the_cursor_of_another_list_is_refused() {
    let world = World::new().await;
    for queue in ["a", "b"] {
        assert_eq!(world.ask("PUT", &format!("/v1/queues/{queue}"), "").await.status, 200);
        assert_eq!(world.ask("POST", &format!("/v1/queues/{queue}/tasks"), "{}").await.status, 201);
    }
    let next = async |path: &str| {
        let page = world.ask("GET", &format!("{path}?limit=1"), "").await.json();
        page["next"].as_str().expect("there is more").to_owned()
    };
    let (of_queues, of_tasks) = (next("/v1/queues").await, next("/v1/tasks").await);
    let rest = world.ask("GET", &format!("/v1/queues?cursor={of_queues}"), "").await.json();
    assert_eq!((&rest["queues"][0]["name"], &rest["next"]), (&"b".into(), &Value::Null));
    let refused = (400, "cursor_invalid".to_owned());
    for (path, cursor) in
        [("queues", &of_tasks), ("tasks", &of_queues), ("keys", &of_queues), ("lanes", &of_queues)]
    {
        let answer = world.ask("GET", &format!("/v1/{path}?cursor={cursor}"), "").await;
        assert_eq!(answer.problem(), refused, "{path}");
    }
}

/// A pause "until tomorrow" was a pause for ever: what a verb was told was not even read.
#[tokio::test]
async fn a_verb_that_is_told_what_it_does_not_know_is_refused() {
    let world = World::new().await;
    assert_eq!(world.ask("PUT", "/v1/queues/q", "").await.status, 200);
    let made = world.ask("POST", "/v1/queues/q/tasks", r#"{"delay": "1h"}"#).await.json();
    let id = made["id"].as_str().unwrap();
    let verbs = [
        ("/v1/queues/q:pause".to_owned(), 200),
        ("/v1/queues/q:resume".to_owned(), 200),
        (format!("/v1/tasks/{id}:retry"), 409),
        (format!("/v1/tasks/{id}:run"), 200),
        ("/v1/queues/q:purge".to_owned(), 200),
        ("/v1/hold:release".to_owned(), 200),
    ];
    for path in verbs.iter().map(|(path, _)| path.as_str()).chain(["/v1/backup"]) {
        for (body, refused) in [
            (r#"{"until": "tomorrow"}"#, (422, "field_invalid".to_owned())),
            ("[]", (422, "field_invalid".to_owned())),
            ("tomorrow", (400, "body_invalid".to_owned())),
        ] {
            assert_eq!(world.ask("POST", path, body).await.problem(), refused, "{path} {body}");
        }
    }
    assert_eq!(world.ask("GET", "/v1/queues/q", "").await.json()["paused"], false);
    let task = world.ask("GET", &format!("/v1/tasks/{id}"), "").await.json();
    assert_eq!(
        (&task["state"], &task["revision"]),
        (&made["state"], &made["revision"]),
        "nothing was changed"
    );
    for (path, status) in &verbs {
        for body in ["", "{}"] {
            assert_eq!(world.ask("POST", path, body).await.status, *status, "{path} {body}");
        }
    }
}

#[tokio::test]
async fn every_problem_leads_to_a_page() {
    let world = World::new().await;
    let problem = world.ask("GET", "/v1/tasks/nonsense", "").await.json();
    let page = world.ask("GET", problem["type"].as_str().unwrap(), "").await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("What to do"), "{}", page.body);
}

#[tokio::test]
async fn a_query_that_means_nothing_is_refused() {
    let world = World::new().await;
    let made = world.ask("POST", "/v1/queues/mail/tasks", "{}").await.json();
    let id = made["id"].as_str().unwrap();
    for (path, methods) in PATHS {
        let path = path.replace("{queue}", "mail").replace("{id}", id).replace("{name}", "mail");
        for (method, need) in *methods {
            if matches!(need, Need::Nothing | Need::Scope(Scope::Metrics)) {
                continue;
            }
            let path = match (*method, path.as_str()) {
                ("POST", path) if path.ends_with(id) => format!("{path}:run"),
                ("POST", "/v1/queues/mail") => format!("{path}:pause"),
                _ => path.clone(),
            };
            let refused = world.ask(method, &format!("{path}?nonsense=1"), "{}").await;
            assert_eq!(refused.problem(), (400, "query_invalid".to_owned()), "{method} {path}");
            assert!(refused.body.contains("nonsense"), "{method} {path}: {}", refused.body);
        }
    }
    for path in ["/healthz?x=1", "/metrics?x=1", "/openapi.json?x=1", "/v1/tasks?", "/v1/queues/mail/stats?"]
    {
        assert_eq!(world.ask("GET", path, "").await.status, 200, "{path}");
    }
}
