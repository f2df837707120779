//! A server whose clock stands still: what is due is done when the clock is set forward, and not before.

use http::StatusCode;
use punctual_client::wire::{Ack, AdvanceClock, ClockKind, Http, NewTask, Reserve, Retry, RetryRule, State};
use serde_json::json;

use super::world::{Target, World, secs};

fn by(span: u64) -> AdvanceClock {
    AdvanceClock { by: Some(secs(span).into()), ..AdvanceClock::default() }
}

#[tokio::test]
async fn nothing_starts_until_the_clock_is_set_forward() {
    let (world, mut target) =
        (World::at("2030-01-01T09:00:00Z").await, Target::answering(StatusCode::OK).await);
    let clock = world.client.clock().await.unwrap();
    assert_eq!(
        (clock.clock, clock.now.to_string().as_str()),
        (ClockKind::Virtual, "2030-01-01T09:00:00.000000Z")
    );
    let task = NewTask::new().after(secs(86_400)).http(Http::post(&target.url));
    let made = world.client.create("calls", &task).await.unwrap();
    assert_eq!(made.task.at.to_string(), "2030-01-02T09:00:00.000000Z");
    assert_eq!(world.client.advance_clock(&by(86_399)).await.unwrap().started, 0);
    let advanced = world.client.advance_clock(&by(1)).await.unwrap();
    assert_eq!((advanced.started, advanced.now), (1, made.task.at));
    // The answer comes when the call has been made, so that nothing is waited for here.
    target.calls.try_recv().unwrap();
    assert_eq!(world.client.task(&made.task.id).await.unwrap().state, State::Succeeded);
}

#[tokio::test]
async fn retries_fall_where_they_would_on_a_real_clock() {
    let (world, mut target) =
        (World::at("2030-01-01T00:00:00Z").await, Target::answering(StatusCode::BAD_GATEWAY).await);
    let rule = RetryRule {
        min: Some(secs(60).into()),
        max: Some(secs(60).into()),
        attempts: Some(5),
        ..RetryRule::default()
    };
    let task = NewTask { retry: Some(Retry::Rule(rule)), ..NewTask::new().http(Http::post(&target.url)) };
    let made = world.client.create("calls", &task).await.unwrap();
    let advanced = world.client.advance_clock(&by(3_600)).await.unwrap();
    assert_eq!(advanced.now.to_string(), "2030-01-01T01:00:00.000000Z");
    let ended = world.client.task(&made.task.id).await.unwrap();
    assert_eq!((ended.state, ended.attempts), (State::Dead, 5));
    assert!(ended.ended_at.unwrap().since(made.task.at) < secs(5 * 60), "{ended:?}");
    let mut calls = 0;
    while target.calls.try_recv().is_ok() {
        calls += 1;
    }
    assert_eq!(calls, 5);
}

#[tokio::test]
async fn a_workers_time_to_run_passes_with_the_clock() {
    let world = World::at("2030-01-01T00:00:00Z").await;
    world.client.create("work", &NewTask::new()).await.unwrap();
    let reserve = Reserve { wait: Some(secs(5).into()), ttr: Some(secs(60).into()), ..Reserve::default() };
    let got = world.client.reserve("work", &reserve).await.unwrap().remove(0);
    world.client.advance_clock(&by(61)).await.unwrap();
    let late = world.client.ack(&got.id, &Ack { token: got.token, result: None }).await.unwrap_err();
    assert_eq!(late.code(), Some("token_late"), "{late}");
}

#[tokio::test]
async fn time_does_not_go_back_and_a_real_clock_cannot_be_set() {
    let world = World::at("2030-01-01T00:00:00Z").await;
    for body in
        [json!({"to": "2029-12-31T23:59:59Z"}), json!({}), json!({"by": "1s", "to": "2031-01-01T00:00:00Z"})]
    {
        let refused = world.ask("POST", "/v1/clock:advance", &body.to_string()).await;
        assert_eq!(refused.problem(), (422, "field_invalid".to_owned()), "{body}");
    }
    let to = world
        .ask("POST", "/v1/clock:advance", r#"{"to": "2031-01-01T00:00", "timezone": "Asia/Tokyo"}"#)
        .await;
    assert_eq!(to.json(), json!({"now": "2030-12-31T15:00:00.000000Z", "started": 0}));
    let real = World::new().await;
    assert_eq!(real.ask("GET", "/v1/clock", "").await.json()["clock"], "real");
    let refused = real.ask("POST", "/v1/clock:advance", r#"{"by": "1h"}"#).await;
    assert_eq!(refused.problem(), (409, "clock_not_virtual".to_owned()));
}
