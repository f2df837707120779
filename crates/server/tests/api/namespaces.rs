//! Namespaces are apart: whatever a key of one asks, at whatever path, it learns and changes nothing of another.
//!
//! The paths are those of the router itself, and what is asked at each is written here, so that a route that is
//! new fails these tests until somebody has thought about it.

use std::collections::BTreeSet;

use futures_util::StreamExt;
use http::StatusCode;
use punctual_client::Client;
use punctual_client::wire::{EventKind, EventQuery, Nack, NewNotification, NewTask, Reserve, Scope};
use punctual_server::PATHS;
use serde_json::{Value, json};

use super::keys::key;
use super::world::{Target, World, secs};

/// Stands in everything of the first namespace that nobody else may see.
const MARK: &str = "only-of-alpha";
const QUEUE: &str = "only-of-alpha.work";
const ALL: [Scope; 4] = [Scope::Read, Scope::Payloads, Scope::Write, Scope::Work];

/// What the other namespace is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answered {
    /// There is no such thing.
    NotFound,
    /// Something of its own, or that there is no such thing of its own.
    Own,
    /// It may not ask this at all.
    Forbidden,
    /// The same as everybody.
    Open,
    /// This request is not for this path.
    NoMethod,
    /// It is looked at by a test of its own.
    Elsewhere,
}

use Answered::{Elsewhere, Forbidden, NoMethod, NotFound, Open, Own};

/// A task and its queue of the first namespace, as the other one may know them from hearsay.
struct Known {
    id: String,
    token: String,
}

/// Paths that belong to no namespace.
fn of_the_server(method: &str, path: &str) -> Option<Answered> {
    match (method, path) {
        (_, "/healthz" | "/openapi.json" | "/readyz" | "/v1/clock") => Some(Open),
        ("GET" | "POST", "/v1/keys") | ("DELETE", "/v1/keys/{id}") => Some(Forbidden),
        (_, "/metrics" | "/v1/backup" | "/v1/hold" | "/v1/hold:release" | "/v1/clock:advance") => {
            Some(Forbidden)
        }
        _ => None,
    }
}

impl Known {
    /// What is asked at a path of the router, and what the answer must be. Each path that a verb makes is a request.
    fn asked(&self, method: &str, path: &str) -> Option<Vec<(String, String, Answered)>> {
        let (id, token) = (&self.id, &self.token);
        let at = |suffix: &str| {
            path.replace("{id}", id).replace("{queue}", QUEUE).replace("{name}", "same") + suffix
        };
        let one = |body: Value, answered| Some(vec![(at(""), body.to_string(), answered)]);
        let item = json!({"tasks": [{"id": id, "token": token}]});
        if !has_method(path, method) {
            return one(json!({}), NoMethod);
        }
        if let Some(answered) = of_the_server(method, path) {
            return one(json!({}), answered);
        }
        match (method, path) {
            ("GET", "/errors/{code}") => Some(vec![("/errors/not_found".into(), String::new(), Open)]),
            ("POST", "/v1/keys/{id}") => Some(vec![(at(":rotate"), String::new(), Forbidden)]),
            ("GET" | "DELETE", "/v1/notifications/{name}") => one(json!({}), Own),
            ("PUT", "/v1/notifications/{name}") => {
                one(json!({"url": "https://beta.example.com/", "events": ["task.dead"]}), Own)
            }
            ("GET", "/v1/events") => one(json!({}), Elsewhere),
            ("POST", "/schedule") => {
                let call = json!({"url": "http://127.0.0.1:9/", "executionDateTime": "2099-01-01T00:00:00Z"});
                one(call, Own)
            }
            ("GET", "/v1/lanes" | "/v1/queues" | "/v1/notifications") => one(json!({}), Own),
            ("GET", "/v1/tasks") => Some(vec![
                (at(""), String::new(), Own),
                (at("?view=full&limit=1"), String::new(), Own),
                (at(&format!("?queue={QUEUE}")), String::new(), Own),
                (at("?state=blocked"), String::new(), Own),
                (at("?lane=only-of-alpha.lane"), String::new(), Own),
                (at("?state=dead&limit=1"), String::new(), Own),
            ]),
            ("POST", "/v1/lanes:release" | "/v1/lanes:skip") => {
                one(json!({"queue": QUEUE, "lane": format!("{MARK}.lane")}), NotFound)
            }
            ("GET", "/v1/queues/{queue}" | "/v1/queues/{queue}/stats") => one(json!({}), Own),
            ("DELETE", "/v1/queues/{queue}") => one(json!({}), Own),
            ("PUT" | "PATCH", "/v1/queues/{queue}") => one(json!({"concurrency": 1}), Own),
            ("POST", "/v1/queues/{queue}") => Some(vec![
                (at(":purge"), String::new(), Own),
                (at(":pause"), String::new(), Own),
                (at(":resume"), String::new(), Own),
            ]),
            ("GET", "/v1/queues/{queue}/peek") => one(json!({}), Own),
            ("POST", "/v1/queues/{queue}/reserve") => one(json!({"max": 100}), Own),
            ("POST", "/v1/queues/{queue}/tasks") => {
                one(json!({"at": "2099-01-01T00:00:00Z", "unique_key": "same", "lane": "same"}), Own)
            }
            ("POST", "/v1/queues/{queue}/kick") => one(json!({"tasks": [{"id": id}]}), Own),
            ("POST", batch) if batch.starts_with("/v1/queues/{queue}/") => one(item, Own),
            ("POST", "/v1/tasks/{id}") => {
                Some(vec![(at(":run"), String::new(), NotFound), (at(":retry"), String::new(), NotFound)])
            }
            ("PATCH", "/v1/tasks/{id}") => one(json!({"delay": "1s"}), NotFound),
            ("GET" | "DELETE", "/v1/tasks/{id}") => one(json!({}), NotFound),
            ("GET", "/v1/tasks/{id}/result") => {
                Some(vec![(at(""), String::new(), NotFound), (at("?wait=30s"), String::new(), NotFound)])
            }
            ("GET", "/schedule/{id}") => one(json!({}), NotFound),
            ("POST", "/v1/tasks/{id}/kick") => one(json!({}), NotFound),
            ("POST", report) if report.starts_with("/v1/tasks/{id}/") => {
                one(json!({"token": token}), NotFound)
            }
            ("POST", "/v1/tasks:move") => one(json!({"filter": {}, "delay": "1s"}), Own),
            ("POST", "/v1/tasks:cancel" | "/v1/tasks:retry" | "/v1/tasks:run") => {
                one(json!({"filter": {}}), Own)
            }
            _ => None,
        }
    }
}

fn has_method(path: &str, method: &str) -> bool {
    PATHS.iter().any(|(known, methods)| *known == path && methods.iter().any(|(known, _)| *known == method))
}

/// Every path of the router.
fn routes() -> BTreeSet<&'static str> {
    punctual_server::api::paths().into_iter().collect()
}

#[test]
fn every_path_of_the_router_has_a_line_in_the_table_of_who_may_ask() {
    let listed: BTreeSet<&str> = PATHS.iter().map(|(path, _)| *path).collect();
    assert_eq!(routes(), listed, "say in access/table.rs what it takes to be answered there");
}

/// A world with two namespaces, of which the first has something in every state.
struct Two {
    world: World,
    admin: Client,
    alpha: Client,
    beta: String,
    known: Vec<Known>,
}

impl Two {
    async fn new() -> Two {
        let world = World::new().await;
        let (_, admin) = key(&world.client, "default", &[Scope::Admin]).await;
        let admin = world.client_with(&admin);
        let (_, alpha) = key(&admin, "alpha", &ALL).await;
        let (_, beta) = key(&admin, "beta", &ALL).await;
        let alpha = world.client_with(&alpha);
        let known = fill(&alpha).await;
        Two { world, admin, alpha, beta, known }
    }

    async fn ask_as_beta(&self, method: &str, path: &str, body: &str) -> super::world::Answer {
        let bearer = format!("Bearer {}", self.beta);
        self.world.ask_with(method, path, &[("authorization", &bearer)], body.as_bytes()).await
    }

    /// All that the first namespace sees of itself.
    async fn alpha_sees(&self) -> String {
        let tasks = self.alpha.list(&Default::default()).await.expect("it may look");
        let queues = self.alpha.queues(&Default::default()).await.expect("it may look");
        let lanes = self.alpha.lanes(&Default::default()).await.expect("it may look");
        assert!(tasks.tasks.len() > 3 && !queues.queues.is_empty() && !lanes.lanes.is_empty());
        let told = self.alpha.notifications(&Default::default()).await.expect("it may look");
        format!("{tasks:#?} {queues:#?} {lanes:#?} {told:#?}")
    }
}

/// Tasks that wait, are held by a worker, block a lane, are dead, and are done.
async fn fill(alpha: &Client) -> Vec<Known> {
    let made = |name: &str| NewTask::new().name(format!("{MARK}.{name}"));
    let mut waits = made("waits").unique_key("same").lane("same");
    waits.at = Some("2099-01-01T00:00:00Z".parse().expect("it is a time"));
    let waits = alpha.create(QUEUE, &waits).await.expect("it is right").task.id;
    let mut known = vec![Known { id: waits, token: "1.1".into() }];
    let once = |task: NewTask| NewTask { retry: serde_json::from_value(json!({"attempts": 1})).ok(), ..task };
    for (task, lane) in [("blocks", true), ("dead", false), ("done", false), ("held", false)] {
        let task = once(made(task));
        let task = if lane { task.lane(format!("{MARK}.lane")) } else { task };
        alpha.create(QUEUE, &task).await.expect("it is right");
        let reserve =
            Reserve { wait: Some(secs(5).into()), ttr: Some(secs(600).into()), ..Reserve::default() };
        let got = alpha.reserve(QUEUE, &reserve).await.expect("it is there").remove(0);
        let name = got.name.clone().unwrap_or_default();
        let nack = Nack { token: got.token.clone(), error: Some(MARK.to_owned()), delay: None };
        match name.as_str() {
            "only-of-alpha.held" => {}
            "only-of-alpha.done" => {
                let ack =
                    serde_json::from_value(json!({"token": got.token, "result": MARK})).expect("it is right");
                alpha.ack(&got.id, &ack).await.expect("it is held");
            }
            _ => drop(alpha.nack(&got.id, &nack).await.expect("it is held")),
        }
        known.push(Known { id: got.id, token: got.token });
    }
    let (url, events) = (format!("https://{MARK}.example.com/"), vec![EventKind::TaskDead]);
    let told = NewNotification { url, events, ..NewNotification::default() };
    alpha.put_notification("same", &told).await.expect("it is right");
    known
}

#[tokio::test]
async fn no_path_shows_or_changes_anything_of_another_namespace() {
    let two = Two::new().await;
    let before = two.alpha_sees().await;
    for path in routes() {
        for method in ["GET", "PUT", "POST", "PATCH", "DELETE"] {
            for known in &two.known {
                let asked = known.asked(method, path);
                let asked = asked.unwrap_or_else(|| panic!("say above what is asked at {method} {path}"));
                for (at, body, answered) in asked {
                    if answered == Elsewhere {
                        continue;
                    }
                    let body = if method == "GET" { "" } else { &body };
                    let answer = two.ask_as_beta(method, &at, body).await;
                    let status = match answered {
                        NotFound => answer.status == 404,
                        Open => answer.status < 300,
                        Own => answer.status < 300 || answer.status == 404,
                        Forbidden => answer.status == 403,
                        NoMethod => answer.status == 405,
                        Elsewhere => true,
                    };
                    assert!(status, "{method} {at}: {answered:?}, but {} {}", answer.status, answer.body);
                    check(method, &at, &answer.body);
                }
            }
        }
        assert_eq!(before, two.alpha_sees().await, "after {path}");
    }
}

/// The other namespace may be told its own words, and ids that it has sent; nothing else with the mark is its business.
fn check(method: &str, at: &str, body: &str) {
    let told = body.replace(QUEUE, "its own").replace("only-of-alpha.lane", "its own");
    assert!(!told.contains(MARK), "{method} {at} tells of another namespace: {body}");
    let Ok(answer) = serde_json::from_str::<Value>(body) else { return };
    for result in answer["results"].as_array().into_iter().flatten() {
        assert_eq!(result["status"], 404, "{method} {at}: {body}");
    }
}

#[tokio::test]
async fn nothing_of_another_namespace_is_counted_listed_or_reserved() {
    let two = Two::new().await;
    let changed =
        two.ask_as_beta("POST", "/v1/tasks:cancel", r#"{"filter": {}, "dry_run": true}"#).await.json();
    assert_eq!((&changed["matched"], &changed["next"]), (&json!(0), &Value::Null));
    let listed = two.ask_as_beta("GET", "/v1/tasks?limit=1", "").await.json();
    assert_eq!(listed, json!({"tasks": [], "next": null}));
    let queues = two.ask_as_beta("GET", "/v1/queues", "").await.json();
    assert_eq!(queues["queues"], json!([]));
    let path = format!("/v1/queues/{QUEUE}/reserve");
    assert_eq!(two.ask_as_beta("POST", &path, r#"{"max": 100}"#).await.json(), json!({"tasks": []}));
    // The same unique key, lane and time is another task here.
    let path = format!("/v1/queues/{QUEUE}/tasks");
    let same = r#"{"at": "2099-01-01T00:00:00Z", "unique_key": "same", "lane": "same"}"#;
    let made = two.ask_as_beta("POST", &path, same).await;
    assert_eq!(made.status, 201);
    assert_ne!(made.json()["id"], two.known[0].id.as_str());
}

#[tokio::test]
async fn events_are_those_of_ones_own_namespace() {
    let two = Two::new().await;
    let beta = two.world.client_with(&two.beta);
    let mut events = std::pin::pin!(beta.events(&EventQuery::default()).await.unwrap());
    two.alpha.create(QUEUE, &NewTask::new().name(MARK)).await.unwrap();
    let own = beta.create("own", &NewTask::new()).await.unwrap().task.id;
    let first = events.next().await.unwrap().unwrap();
    assert_eq!(first.subject, Some(own), "what came before was not its business: {first:?}");
}

#[tokio::test]
async fn the_same_idempotency_key_is_another_in_another_namespace() {
    let two = Two::new().await;
    let (_, gamma) = key(&two.admin, "gamma", &ALL).await;
    let mut ids = BTreeSet::new();
    for secret in [&two.beta, &gamma, &two.beta, &gamma] {
        let bearer = format!("Bearer {secret}");
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", "k")];
        let answer = two.world.ask_with("POST", "/v1/queues/q/tasks", &headers, br#"{"delay": "1h"}"#).await;
        assert_eq!(answer.status, 201);
        ids.insert(answer.json()["id"].to_string());
    }
    assert_eq!(ids.len(), 2, "one for each namespace");
}

#[tokio::test]
async fn results_are_sent_within_the_namespace_of_their_task() {
    let (two, mut target) = (Two::new().await, Target::answering(StatusCode::OK).await);
    let task = NewTask { callback: Some(format!("{}/done", target.url)), ..NewTask::new() };
    two.alpha.create("sums", &task).await.unwrap();
    let reserve = Reserve { wait: Some(secs(5).into()), ..Reserve::default() };
    let got = two.alpha.reserve("sums", &reserve).await.unwrap().remove(0);
    let ack = serde_json::from_value(json!({"token": got.token, "result": MARK})).unwrap();
    two.alpha.ack(&got.id, &ack).await.unwrap();
    assert!(String::from_utf8_lossy(&target.next().await.body).contains(MARK));
    // The call is a task too, and carries the result.
    let queues = two.alpha.queues(&Default::default()).await.unwrap();
    assert!(queues.queues.iter().any(|queue| queue.name == "callbacks"));
    let others = two.ask_as_beta("GET", "/v1/tasks?view=full", "").await.json();
    assert_eq!(others["tasks"], json!([]));
}
