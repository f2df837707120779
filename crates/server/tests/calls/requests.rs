//! What a called server sees.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::routing::any;
use bytes::Bytes;
use punctual_core::Attempt;
use punctual_server::call::{Call, QueueRules, Secret};

use crate::servers::*;

#[derive(Clone)]
struct Seen {
    line: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

async fn seen(attempt: Attempt, mut call: Call, rules: Arc<QueueRules>) -> Seen {
    let seen = Arc::new(Mutex::new(None));
    let kept = seen.clone();
    let look = move |request: Request| async move {
        let line = format!("{} {}", request.method(), request.uri());
        let headers = request.headers().clone();
        let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
        *kept.lock().unwrap() = Some(Seen { line, headers, body });
    };
    let server = serve(Router::new().fallback(any(look))).await;
    call.url = server.url(&call.url);
    result(caller().run(attempt, call, rules).await);
    let seen = seen.lock().unwrap().clone();
    seen.unwrap()
}

#[tokio::test]
async fn a_called_server_is_told_which_attempt_of_which_task_it_is() {
    let attempt = Attempt { token: attempt_no(5).token, ..attempt_with("{\"to\": \"ana\"}") };
    let seen = seen(attempt.clone(), Call::post("/hooks?x={1}"), rules()).await;
    let id = attempt.token.id.to_string();
    assert_eq!(seen.line, "POST /hooks?x={1}");
    assert_eq!(seen.body, "{\"to\": \"ana\"}");
    for name in ["idempotency-key", "webhook-id", "punctual-task"] {
        assert_eq!(seen.header(name), Some(id.as_str()), "{name}");
    }
    assert_eq!(seen.header("punctual-queue"), Some("mail"));
    assert_eq!(seen.header("punctual-attempt"), Some("5"));
    assert_eq!(seen.header("punctual-fence"), Some("12884901893"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert!(seen.header("user-agent").unwrap().starts_with("punctual/"));
    for name in ["webhook-signature", "webhook-timestamp", "traceparent", "transfer-encoding"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn the_scheduled_time_is_in_utc_with_microseconds() {
    let at = punctual_core::Timestamp::from_micros(1_794_816_000_000_001);
    let seen = seen(attempt_due(at), Call::post("/"), rules()).await;
    assert_eq!(seen.header("punctual-scheduled-for"), Some("2026-11-16T08:00:00.000001Z"));
}

#[tokio::test]
async fn what_the_task_says_is_sent_as_it_is() {
    let call = Call {
        method: "PURGE".into(),
        headers: vec![
            ("X-Key".into(), "1".into()),
            ("x-key".into(), "2".into()),
            ("content-type".into(), "text/plain".into()),
            ("User-Agent".into(), "mine".into()),
        ],
        body: Some("[]".into()),
        ..Call::post("/a/b")
    };
    let seen = seen(attempt_with("\"not this\""), call, rules()).await;
    assert_eq!((seen.line.as_str(), &seen.body[..]), ("PURGE /a/b", &b"[]"[..]));
    let keys: Vec<_> = seen.headers.get_all("x-key").iter().collect();
    assert_eq!(keys, ["1", "2"]);
    assert_eq!(seen.header("content-type"), Some("text/plain"));
    assert_eq!(seen.header("user-agent"), Some("mine"));
}

#[tokio::test]
async fn only_json_is_called_json() {
    let plain = seen(attempt_with("hello"), Call::post("/"), rules()).await;
    assert_eq!((plain.header("content-type"), &plain.body[..]), (None, &b"hello"[..]));
    let empty = seen(attempt(), Call::post("/"), rules()).await;
    assert_eq!((empty.header("content-type"), empty.header("content-length")), (None, Some("0")));
    let get = seen(attempt_with("{}"), get("/"), rules()).await;
    assert_eq!((get.header("content-type"), &get.body[..]), (None, &b""[..]));
}

#[tokio::test]
async fn each_attempt_is_a_span_of_its_own_in_the_same_trace() {
    let call = Call {
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
        tracestate: Some("vendor=1".into()),
        ..Call::post("/")
    };
    let mut spans = Vec::new();
    for number in [1, 2] {
        let seen = seen(attempt_no(number), call.clone(), rules()).await;
        assert_eq!(seen.header("tracestate"), Some("vendor=1"));
        let parent = seen.header("traceparent").unwrap();
        let rest = parent.strip_prefix("00-4bf92f3577b34da6a3ce929d0e0e4736-").unwrap();
        let span = rest.strip_suffix("-01").unwrap();
        assert_eq!(span.len(), 16);
        spans.push(span.to_string());
    }
    spans.push("00f067aa0ba902b7".into());
    spans.sort();
    spans.dedup();
    assert_eq!(spans.len(), 3);
}

#[tokio::test]
async fn what_is_not_a_trace_is_left_out() {
    for bad in [
        "",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
    ] {
        let call = Call { traceparent: Some(bad.into()), tracestate: Some("a=1".into()), ..Call::post("/") };
        let seen = seen(attempt(), call, rules()).await;
        assert_eq!((seen.header("traceparent"), seen.header("tracestate")), (None, None), "{bad}");
    }
}

#[tokio::test]
async fn a_signed_call_is_accepted_by_the_published_verifier_with_either_secret() {
    let texts = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"];
    let secrets = texts.map(|text| Secret::parse(text).unwrap()).to_vec();
    let rules = QueueRules { secrets, ..QueueRules::default() };
    let seen = seen(attempt_with("{\"paid\": true}"), Call::post("/"), Arc::new(rules)).await;
    assert_eq!(seen.header("webhook-signature").unwrap().split(' ').count(), 2);
    for text in texts {
        standardwebhooks::Webhook::new(text).unwrap().verify(&seen.body, &seen.headers).unwrap();
    }
}
