//! What answers of real servers come to.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::any;
use punctual_core::{Attempt, Outcome};
use punctual_server::call::{Call, Codes, Conflict, QueueRules, Success};
use serde_json::json;

use crate::servers::*;

async fn any_status() -> Served {
    let answer = |Path(code): Path<u16>| async move {
        (StatusCode::from_u16(code).unwrap(), format!("this is {code}"))
    };
    serve(Router::new().route("/{code}", any(answer))).await
}

#[tokio::test]
async fn every_status_has_its_outcome() {
    let (server, caller) = (any_status().await, caller());
    for code in (200..600).filter(|code| ![204, 205, 304].contains(code)) {
        let outcome = outcome(&caller, attempt(), Call::post(server.url(&format!("/{code}")))).await;
        let text = format!("HTTP {code} from {}: this is {code}", server.address);
        match (code, outcome) {
            (200..300, Outcome::Succeeded(_)) => {}
            (410, Outcome::GaveUp(error)) => assert_eq!(*error, text),
            (500.., Outcome::Failed { error, retry_after: None }) => assert_eq!(*error, text),
            (300..500, Outcome::Refused { error, retry_after: None, is_busy }) if code != 410 => {
                assert_eq!((&*error, is_busy), (&*text, code == 429));
            }
            (_, outcome) => panic!("{code}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn a_success_keeps_what_was_answered() {
    let server = any_status().await;
    let outcome = outcome(&caller(), attempt(), Call::post(server.url("/201"))).await;
    let expected = json!({"status": 201, "content_type": "text/plain; charset=utf-8", "body": "this is 201"});
    assert_eq!(result(outcome), expected);
}

#[tokio::test]
async fn a_success_without_a_body_is_one() {
    let server = any_status().await;
    let empty = outcome(&caller(), attempt(), Call::post(server.url("/204"))).await;
    assert_eq!(result(empty)["body"], json!(null));
    let head = Call { method: "HEAD".into(), ..Call::post(server.url("/200")) };
    let head = outcome(&caller(), attempt(), head).await;
    assert_eq!(result(head)["body"], json!(null));
}

#[tokio::test]
async fn a_conflict_is_a_success_when_it_may_have_been_called_before() {
    let server = any_status().await;
    let (server, caller) = (&server, &caller());
    // Its owner may have called it and died before it said so.
    let due_before_a_crash = || Attempt { may_be_repeated: true, ..attempt() };
    let done = |attempt, conflict| async move {
        let success = Success { conflict, ..Success::default() };
        let rules = QueueRules { success, ..QueueRules::default() };
        let outcome = caller.run(attempt, Call::post(server.url("/409")), Arc::new(rules)).await;
        matches!(outcome, Outcome::Succeeded(_))
    };
    assert!(!done(attempt(), Conflict::Repeated).await);
    assert!(done(due_before_a_crash(), Conflict::Repeated).await);
    assert!(done(attempt_no(2), Conflict::Repeated).await);
    assert!(done(attempt(), Conflict::Always).await);
    assert!(!done(attempt_no(2), Conflict::Never).await);
    assert!(!done(due_before_a_crash(), Conflict::Never).await);
}

#[tokio::test]
async fn a_queue_can_say_which_codes_mean_what() {
    let (server, caller) = (any_status().await, caller());
    let success = Success {
        codes: Codes::parse(&["2xx", "404"]).unwrap(),
        give_up: Codes::parse(&["422"]).unwrap(),
        conflict: Conflict::Repeated,
    };
    let rules = Arc::new(QueueRules { success, ..QueueRules::default() });
    let (server, caller, rules) = (&server, &caller, &rules);
    let run = |code: u16| caller.run(attempt(), Call::post(server.url(&format!("/{code}"))), rules.clone());
    assert!(matches!(run(404).await, Outcome::Succeeded(_)));
    assert!(matches!(run(422).await, Outcome::GaveUp(_)));
    assert!(matches!(run(410).await, Outcome::Refused { .. }));
}

#[tokio::test]
async fn a_busy_server_is_left_alone_for_as_long_as_it_asks() {
    let date = httpdate::fmt_http_date(punctual::system_time(attempt().spec.at + Duration::from_secs(600)));
    let seconds = || async { (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "120")]) };
    let date = move || async move { (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, date)]) };
    let long = || async { (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "100000000")]) };
    let router = Router::new().route("/s", any(seconds)).route("/d", any(date)).route("/l", any(long));
    let (server, caller) = (serve(router).await, caller());
    let (server, caller) = (&server, &caller);
    let wait = |path: &'static str| async move {
        match outcome(caller, attempt(), Call::post(server.url(path))).await {
            Outcome::Failed { retry_after, .. } | Outcome::Refused { retry_after, .. } => {
                retry_after.unwrap()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(wait("/s").await, Duration::from_secs(120));
    assert_eq!(wait("/l").await, Duration::from_secs(86_400));
    let until_date = wait("/d").await;
    assert!((Duration::from_secs(540)..Duration::from_secs(602)).contains(&until_date), "{until_date:?}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let answer = || async { (StatusCode::FOUND, [(header::LOCATION, "/self")]).into_response() };
    let server = serve(Router::new().route("/self", any(answer))).await;
    let error = error(outcome(&caller(), attempt(), get(server.url("/self"))).await);
    let expected =
        format!("HTTP 302 from {}: it points to /self, and redirects are not followed", server.address);
    assert_eq!(error, expected);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let (server, caller) = (any_status().await, caller());
    for _ in 0..20 {
        result(outcome(&caller, attempt(), Call::post(server.url("/200"))).await);
        error(outcome(&caller, attempt(), Call::post(server.url("/500"))).await);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn what_cannot_be_called_is_given_up() {
    let bad = Call { method: "CONNECT".into(), ..Call::post("http://127.0.0.1/") };
    for call in [bad, Call::post("gopher://127.0.0.1/")] {
        let outcome = outcome(&caller(), attempt(), call).await;
        assert!(matches!(&outcome, Outcome::GaveUp(error) if error.starts_with("this cannot be called")));
    }
}
