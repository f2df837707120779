//! Calls at a given time: what arrives, and what the answer does.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use punctual_client::wire::{Change, Http, HttpTarget, NewTask, QueueSettings, QueueTarget, State};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::json;
use standardwebhooks::Webhook;

use super::world::{Target, World, secs};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// The key pair of the first test of RFC 8032.
const PRIVATE: &str = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
const PUBLIC: &str = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

#[tokio::test]
async fn four_fields_schedule_a_call_and_it_arrives() {
    let (world, mut target) = (World::new().await, Target::answering(StatusCode::OK).await);
    let now = world.client.create("clock", &NewTask::new()).await.unwrap().task.at;
    let now = serde_json::to_string(&now).unwrap();
    let body = format!(
        r#"{{"url": "{}/path?q=1", "verb": "PUT", "body": "{{\"a\": 11}}", "executionDateTime": {now}}}"#,
        target.url
    );
    let answer = world.ask("POST", "/schedule", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    let call = target.next().await;
    assert_eq!((call.method.as_str(), call.uri.to_string().as_str()), ("PUT", "/path?q=1"));
    assert_eq!(&call.body[..], br#"{"a": 11}"#, "a string is sent as its text");
    assert_eq!(call.headers["idempotency-key"], id.as_str());
    assert_eq!(
        (&call.headers["punctual-attempt"], &call.headers["content-type"]),
        (&"1".parse().unwrap(), &"application/json".parse().unwrap())
    );
    let result = world.client.result(&id, secs(10)).await.unwrap();
    assert_eq!(result.state, State::Succeeded);
    assert_eq!(world.ask("GET", &format!("/schedule/{id}"), "").await.json()["status"], "Done");
}

#[tokio::test]
async fn whoever_has_the_public_key_of_a_queue_can_check_its_calls() {
    let (world, mut target) = (World::new().await, Target::answering(StatusCode::OK).await);
    let settings = json!({"target": {"http": {"url": target.url}}, "secrets": [PRIVATE, SECRET]}).to_string();
    let queue = world.ask("PUT", "/v1/queues/hooks", &settings).await;
    assert!(!queue.body.contains("whsk_"), "{}", queue.body);
    assert_eq!((&queue.json()["secrets"], &queue.json()["public_keys"]), (&2.into(), &json!([PUBLIC])));
    world.ask("POST", "/v1/queues/hooks/tasks", r#"{"payload": {"paid": true}}"#).await;
    let call = target.next().await;
    let header = |name: &str| call.headers[name].to_str().unwrap();
    let (own, shared) = header("webhook-signature").split_once(' ').unwrap();
    assert!(shared.starts_with("v1,"), "secrets of both kinds can be had at once");
    let signed =
        [format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).as_bytes(), call.body.as_ref()]
            .concat();
    let key = STANDARD.decode(PUBLIC.strip_prefix("whpk_").unwrap()).unwrap();
    let signature = STANDARD.decode(own.strip_prefix("v1a,").unwrap()).unwrap();
    UnparsedPublicKey::new(&ED25519, key).verify(&signed, &signature).unwrap();
    Webhook::new(SECRET).unwrap().verify(&call.body, &call.headers).unwrap();
    let public = json!({"secrets": [PUBLIC]}).to_string();
    let refused = world.ask("PATCH", "/v1/queues/hooks", &public).await;
    assert_eq!(refused.problem(), (422, "field_invalid".to_owned()));
    assert_eq!(refused.json()["errors"][0]["field"], "secrets");
}

#[tokio::test]
async fn a_payload_arrives_as_the_json_it_is_and_a_body_of_text_as_its_text() {
    let (world, mut target) = (World::new().await, Target::answering(StatusCode::OK).await);
    let of_queue = json!({"target": {"http": {"url": target.url}}}).to_string();
    world.ask("PUT", "/v1/queues/hooks", &of_queue).await;
    let json = Some("application/json");
    for (task, body, content_type) in [
        (json!({"payload": "text", "http": {"url": target.url}}), "\"text\"", json),
        (json!({"payload": "text"}), "\"text\"", json),
        (json!({"http": {"url": target.url, "body": "text"}}), "text", None),
        (json!({"http": {"url": target.url, "body": "{\"a\":1}"}}), "{\"a\":1}", json),
        (json!({"payload": {"a": 1}, "http": {"url": target.url}}), "{\"a\":1}", json),
        (json!({"http": {"url": target.url, "body": {"a": 1}}}), "{\"a\":1}", json),
        (json!({"payload_base64": "dGV4dA==", "http": {"url": target.url}}), "text", None),
        (json!({"http": {"url": target.url, "body_base64": "dGV4dA=="}}), "text", None),
    ] {
        let made = world.ask("POST", "/v1/queues/hooks/tasks", &task.to_string()).await;
        assert_eq!(made.status, 201, "{made:?}");
        let call = target.next().await;
        assert_eq!(std::str::from_utf8(&call.body), Ok(body), "{task}");
        let found = call.headers.get("content-type").map(|value| value.to_str().unwrap());
        assert_eq!(found, content_type, "{task}");
    }
}

#[tokio::test]
async fn a_queue_with_a_target_and_secrets_signs_what_it_sends() {
    let (world, mut target) = (World::new().await, Target::answering(StatusCode::NO_CONTENT).await);
    let settings = QueueSettings {
        target: Change::Set(QueueTarget::Http(HttpTarget {
            url: target.url.clone(),
            ..HttpTarget::default()
        })),
        secrets: Change::Set(vec![SECRET.to_owned()]),
        ..QueueSettings::default()
    };
    let queue = world.client.put_queue("hooks", &settings).await.unwrap();
    assert_eq!(queue.secrets, 1);
    world.client.create("hooks", &NewTask::new().payload(&"signed").unwrap()).await.unwrap();
    let call = target.next().await;
    Webhook::new(SECRET).unwrap().verify(&call.body, &call.headers).unwrap();
}

#[tokio::test]
async fn a_target_that_gives_up_ends_the_task_and_one_that_fails_is_tried_again() {
    let (world, mut gone) = (World::new().await, Target::answering(StatusCode::GONE).await);
    let made = world.client.create("q", &NewTask::new().http(Http::post(&gone.url))).await.unwrap();
    gone.next().await;
    let result = world.client.result(&made.task.id, secs(10)).await.unwrap();
    assert_eq!(result.state, State::Dead);
    assert!(result.error.unwrap().contains("410"));
    let mut broken = Target::answering(StatusCode::INTERNAL_SERVER_ERROR).await;
    let made = world.client.create("q", &NewTask::new().http(Http::post(&broken.url))).await.unwrap();
    broken.next().await;
    let again = broken.next().await;
    assert_eq!(again.headers["punctual-attempt"], "2");
    assert!(!world.client.task(&made.task.id).await.unwrap().state.has_ended());
}

#[tokio::test]
async fn what_may_not_be_called_is_refused_at_once() {
    let world = World::new().await;
    let own = format!("http://{}/", world.address);
    for url in [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest",
        "ftp://example.com/",
        "http://u:p@example.com/",
        &own,
    ] {
        let made = world.client.create("q", &NewTask::new().http(Http::post(url))).await;
        assert_eq!(made.unwrap_err().code(), Some("call_invalid"), "{url}");
    }
    let callback = NewTask { callback: Some("http://192.168.1.1/".to_owned()), ..NewTask::new() };
    assert_eq!(world.client.create("q", &callback).await.unwrap_err().code(), Some("call_invalid"));
}
