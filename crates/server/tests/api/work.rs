//! Workers over HTTP.

use punctual_client::wire::{Ack, Bury, Json, Nack, NewTask, Release, Reserve, State, Touch};

use serde_json::json;

use super::world::{World, secs};

fn reserve(max: u32) -> Reserve {
    Reserve { max: Some(max), wait: Some(secs(5).into()), ..Reserve::default() }
}

fn ack(token: &str) -> Ack {
    Ack { token: token.to_owned(), result: Some(Json::of(&49).expect("a number is JSON")) }
}

#[tokio::test]
async fn a_worker_reserves_touches_and_acknowledges() {
    let world = World::new().await;
    let made = world.client.create("work", &NewTask::new().payload(&7).unwrap()).await.unwrap();
    let got = world.client.reserve("work", &reserve(10)).await.unwrap();
    assert_eq!((got.len(), got[0].id.as_str()), (1, made.task.id.as_str()));
    assert_eq!((got[0].payload.as_ref().unwrap().text(), got[0].attempt), ("7", 1));
    let (id, token) = (got[0].id.as_str(), got[0].token.as_str());
    let held = world.client.task(id).await.unwrap();
    // It counts from the first moment, before it is on record.
    assert_eq!((held.state, held.attempts), (State::Reserved, 1));
    world.client.touch(id, &Touch { token: token.to_owned(), ttr: Some(secs(90).into()) }).await.unwrap();
    assert_eq!(world.client.ack(id, &ack(token)).await.unwrap().state, State::Succeeded);
    let result = world.client.result(id, secs(0)).await.unwrap();
    assert_eq!(result.result.unwrap().text(), "49");
    assert_eq!(world.client.ack(id, &ack(token)).await.unwrap_err().code(), Some("token_late"));
}

#[tokio::test]
async fn a_long_poll_is_answered_as_soon_as_there_is_a_task() {
    let world = World::new().await;
    let waiting = tokio::spawn({
        let client = world.client.clone();
        async move { client.reserve("work", &reserve(1)).await.unwrap() }
    });
    let made = world.client.create("work", &NewTask::new()).await.unwrap();
    assert_eq!(waiting.await.unwrap()[0].id, made.task.id);
}

#[tokio::test]
async fn a_reserve_makes_no_queue() {
    let world = World::new().await;
    assert_eq!(world.client.reserve("wrok", &Reserve::default()).await.unwrap(), []);
    let missing = world.client.queue("wrok").await.unwrap_err();
    assert_eq!(missing.code(), Some("queue_not_found"));
    assert_eq!(world.ask("GET", "/v1/queues", "").await.json()["queues"], serde_json::json!([]));
    for name in ["no%20way", "x".repeat(200).as_str()] {
        let refused = world.ask("POST", &format!("/v1/queues/{name}/reserve"), "{}").await;
        assert_eq!(refused.problem().0, 422, "{name}");
    }
}

#[tokio::test]
async fn what_is_nacked_released_or_buried_goes_where_it_should() {
    let world = World::new().await;
    world.client.create("work", &NewTask::new()).await.unwrap();
    let got = world.client.reserve("work", &reserve(1)).await.unwrap().remove(0);
    let released = world.client.release(&got.id, &Release { token: got.token }).await.unwrap();
    assert_eq!(released.state, State::Scheduled);
    let got = world.client.reserve("work", &reserve(1)).await.unwrap().remove(0);
    let nack = Nack { token: got.token, error: Some("busy".into()), delay: Some(secs(3600).into()) };
    let nacked = world.client.nack(&got.id, &nack).await.unwrap();
    assert_eq!((nacked.state, nacked.next_at.is_some()), (State::Retrying, true));
    assert_eq!(world.client.task(&got.id).await.unwrap().last_error.as_deref(), Some("busy"));
    world.client.run(&got.id).await.unwrap();
    let got = world.client.reserve("work", &reserve(1)).await.unwrap().remove(0);
    let bury = Bury { token: got.token, error: Some("broken".into()) };
    assert_eq!(world.client.bury(&got.id, &bury).await.unwrap().state, State::Dead);
    assert_eq!(world.client.kick(&got.id).await.unwrap().state, State::Scheduled);
}

#[tokio::test]
async fn batches_answer_for_each() {
    let world = World::new().await;
    world.client.create_many("work", &vec![NewTask::new(); 3]).await.unwrap();
    let mut got = world.client.reserve("work", &reserve(10)).await.unwrap();
    while got.len() < 3 {
        got.extend(world.client.reserve("work", &reserve(10)).await.unwrap());
    }
    let mut acks: Vec<_> = got.iter().map(|task| ack(&task.token).of(&task.id)).collect();
    acks.push(ack("9.9").of(&got[0].id));
    acks.push(ack("nonsense").of(&got[0].id));
    acks.push(ack("1.1").of("no-id"));
    let results = world.client.ack_many("work", &acks).await.unwrap();
    let statuses: Vec<u16> = results.iter().map(|result| result.status).collect();
    assert_eq!(statuses, [200, 200, 200, 409, 422, 404]);
}

#[tokio::test]
async fn what_a_worker_holds_survives_a_restart_in_good_order() {
    let world = World::new().await;
    world.client.create("work", &NewTask::new()).await.unwrap();
    let got = world.client.reserve("work", &reserve(1)).await.unwrap().remove(0);
    let world = World::on(world.stop().await).await;
    assert_eq!(world.client.ack(&got.id, &ack(&got.token)).await.unwrap().state, State::Succeeded);
}

#[tokio::test]
async fn one_bad_report_of_a_batch_spoils_no_other() {
    let world = World::new().await;
    world.client.create("q", &NewTask::new()).await.unwrap();
    let reserved = world.ask("POST", "/v1/queues/q/reserve", "{}").await.json();
    let (id, token) = (&reserved["tasks"][0]["id"], &reserved["tasks"][0]["token"]);
    let body = format!(
        r#"{{"tasks": [5, {{"id": "x", "tokn": "1.1"}}, {{"id": {id}, "token": "late"}}, {{"id": {id}, "token": {token}}}]}}"#
    );
    let results = world.ask("POST", "/v1/queues/q/ack", &body).await.json();
    let statuses: Vec<_> =
        results["results"].as_array().unwrap().iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [422, 422, 422, 200], "{results}");
    assert_eq!(results["results"][1]["id"], "x");
    let body = format!(r#"{{"tasks": [{{"id": {id}}}, {{"token": {token}}}, 5]}}"#);
    for verb in ["ack", "nack", "release", "bury", "touch"] {
        let results = world.ask("POST", &format!("/v1/queues/q/{verb}"), &body).await.json();
        let of = |place: usize| &results["results"][place]["problem"];
        assert_eq!(of(0)["errors"], json!([{"field": "token", "detail": "is missing"}]), "{verb}");
        assert_eq!(of(1)["errors"], json!([{"field": "id", "detail": "is missing"}]), "{verb}");
        assert_eq!(of(2)["detail"], "invalid type: integer `5`, expected an object", "{verb}");
    }
    let whole = world.ask("POST", "/v1/queues/q/ack", r#"{"tasks": {}}"#).await;
    assert_eq!(whole.problem(), (422, "field_invalid".to_owned()));
    let nothing = world.ask("POST", "/v1/queues/q/ack", "{}").await.json();
    assert_eq!(nothing["errors"][0]["field"], "tasks", "{nothing}");
}

#[tokio::test]
async fn a_batch_of_reports_is_for_tasks_of_its_queue_only() {
    let world = World::new().await;
    world.client.create("other", &NewTask::new()).await.unwrap();
    world.client.create("q", &NewTask::new()).await.unwrap();
    let got = world.client.reserve("q", &reserve(1)).await.unwrap().remove(0);
    let (id, token) = (&got.id, &got.token);
    for (verb, item) in [
        ("ack", json!({"id": id, "token": token})),
        ("nack", json!({"id": id, "token": token})),
        ("release", json!({"id": id, "token": token})),
        ("bury", json!({"id": id, "token": token})),
        ("touch", json!({"id": id, "token": token})),
        ("kick", json!({"id": id})),
    ] {
        let body = json!({"tasks": [item]}).to_string();
        for queue in ["other", "nowhere"] {
            let results = world.ask("POST", &format!("/v1/queues/{queue}/{verb}"), &body).await.json();
            let result = &results["results"][0];
            assert_eq!((&result["status"], &result["id"]), (&404.into(), &json!(id)), "{verb} {results}");
            let problem = &result["problem"];
            assert_eq!(problem["code"], "task_not_found", "{verb}");
            assert!(problem["detail"].as_str().unwrap().contains("in the queue q,"), "{problem}");
        }
    }
    let held = world.client.task(id).await.unwrap();
    // It counts from the first moment, before it is on record.
    assert_eq!((held.state, held.attempts), (State::Reserved, 1));
    assert_eq!(world.client.ack(id, &ack(token)).await.unwrap().state, State::Succeeded);
}

#[tokio::test]
async fn a_worker_goes_on_with_the_trace_that_the_task_was_made_in() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let world = World::new().await;
    let headers = [("traceparent", TRACE), ("tracestate", "a=b")];
    let made = world.ask_with("POST", "/v1/queues/q/tasks", &headers, br#"{"delay": "1h"}"#).await.json();
    let path = format!("/v1/tasks/{}", made["id"].as_str().unwrap());
    let callback = json!({"payload": 1, "callback": "http://127.0.0.1:9/"}).to_string();
    assert_eq!(world.ask("PATCH", &path, &callback).await.status, 200);
    let world = World::on(world.stop().await).await;
    world.ask("POST", &format!("{path}:run"), "").await;
    let got = world.client.reserve("q", &reserve(1)).await.unwrap().remove(0);
    assert_eq!((got.traceparent.as_deref(), got.tracestate.as_deref()), (Some(TRACE), Some("a=b")));
    for bad in ["nonsense", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"] {
        let headers = [("traceparent", bad), ("tracestate", "a=b")];
        world.ask_with("POST", "/v1/queues/q/tasks", &headers, b"{}").await;
        let got = world.client.reserve("q", &reserve(1)).await.unwrap().remove(0);
        assert_eq!((got.traceparent, got.tracestate), (None, None), "{bad}");
    }
}

#[tokio::test]
async fn a_result_that_is_too_large_is_refused_and_the_task_stays_reserved() {
    let world = World::new().await;
    let made = world.ask("POST", "/v1/queues/q/tasks", "{}").await.json();
    let path = format!("/v1/tasks/{}", made["id"].as_str().unwrap());
    let reserved = world.ask("POST", "/v1/queues/q/reserve", "").await.json();
    let token = &reserved["tasks"][0]["token"];
    let large = format!(r#"{{"token": {token}, "result": "{}"}}"#, "x".repeat(256 * 1024));
    let refused = world.ask("POST", &format!("{path}/ack"), &large).await;
    assert_eq!(refused.problem(), (422, "payload_too_large".to_owned()));
    assert_eq!(world.ask("GET", &path, "").await.json()["state"], "reserved");
    let item =
        format!(r#"{{"tasks": [{}]}}"#, large.replacen('{', &format!(r#"{{"id": {}, "#, made["id"]), 1));
    let results = world.ask("POST", "/v1/queues/q/ack", &item).await.json();
    assert_eq!(results["results"][0]["problem"]["code"], "payload_too_large", "{results}");
    let short = format!(r#"{{"token": {token}, "result": "x"}}"#);
    assert_eq!(world.ask("POST", &format!("{path}/ack"), &short).await.json()["state"], "succeeded");
}
