//! Servers that answer late, for ever, too much or not at all cost no more than they may.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;
use punctual_server::call::{Call, Caller};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};

use crate::servers::*;

#[tokio::test]
async fn a_server_that_never_answers_is_left_when_time_is_up() {
    let (closed_at_last, mut was_closed) = mpsc::channel(1);
    let server = serve_raw(move |mut connection| {
        let closed_at_last = closed_at_last.clone();
        async move {
            closed(&mut connection).await;
            closed_at_last.send(()).await.unwrap();
        }
    })
    .await;
    let error = error(outcome(&caller(), attempt_within(SHORT), Call::post(server.url("/"))).await);
    assert_eq!(error, format!("no answer from {} within 250ms", server.address));
    was_closed.recv().await.unwrap();
}

#[tokio::test]
async fn the_shorter_of_the_two_timeouts_counts() {
    let server = serve_raw(|mut connection| async move { closed(&mut connection).await }).await;
    let call = Call { timeout: Some(Duration::from_millis(40)), ..Call::post(server.url("/")) };
    assert!(error(outcome(&caller(), attempt(), call).await).ends_with("within 40ms"));
}

#[tokio::test]
async fn an_attempt_that_is_dropped_lets_go_of_its_connection() {
    let reached = Arc::new(Notify::new());
    let (closed_at_last, mut was_closed) = mpsc::channel(1);
    let told = reached.clone();
    let server = serve_raw(move |mut connection| {
        let (told, closed_at_last) = (told.clone(), closed_at_last.clone());
        async move {
            read_head(&mut connection).await;
            told.notify_one();
            closed(&mut connection).await;
            closed_at_last.send(()).await.unwrap();
        }
    })
    .await;
    let caller = caller();
    let running = tokio::spawn(caller.run(attempt(), Call::post(server.url("/")), rules()));
    reached.notified().await;
    running.abort();
    was_closed.recv().await.unwrap();
}

#[tokio::test]
async fn a_server_that_answers_byte_by_byte_is_left_when_time_is_up() {
    let slow_head = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
    let slowly = |fast: &'static str, slow: &'static str| {
        serve_raw(move |mut connection| async move {
            read_head(&mut connection).await;
            connection.write_all(fast.as_bytes()).await.unwrap();
            for byte in slow.bytes().cycle() {
                pause(Duration::from_millis(20)).await;
                if connection.write_all(&[byte]).await.is_err() {
                    return;
                }
            }
        })
    };
    let head = slowly("", slow_head).await;
    let text = error(outcome(&caller(), attempt_within(SHORT), Call::post(head.url("/"))).await);
    assert_eq!(text, format!("no answer from {} within 250ms", head.address));
    let body = slowly(slow_head, "x").await;
    // Long enough for the head to come, however busy the machine is.
    let second = Duration::from_secs(1);
    let text = error(outcome(&caller(), attempt_within(second), Call::post(body.url("/"))).await);
    assert_eq!(text, format!("HTTP 200 from {}, but no end of its body within 1s", body.address));
}

#[tokio::test]
async fn of_a_gigabyte_the_beginning_is_kept_and_the_rest_is_never_sent() {
    let (sent, mut was_sent) = mpsc::channel(1);
    let server = serve_raw(move |mut connection| {
        let sent = sent.clone();
        async move {
            read_head(&mut connection).await;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", 1u64 << 30);
            connection.write_all(head.as_bytes()).await.unwrap();
            let (piece, mut bytes) = ([b'x'; 16 * 1024], 0usize);
            while connection.write_all(&piece).await.is_ok() {
                bytes += piece.len();
            }
            sent.send(bytes).await.unwrap();
        }
    })
    .await;
    let result = result(outcome(&caller(), attempt(), Call::post(server.url("/"))).await);
    assert_eq!(result["truncated"], true);
    assert_eq!(result["body"].as_str().unwrap().len(), 64 * 1024);
    // What fits into the buffers of the two sockets may be under way.
    let bytes = was_sent.recv().await.unwrap();
    assert!(bytes < 32 << 20, "{bytes} bytes were sent");
}

#[tokio::test]
async fn a_body_of_exactly_what_may_be_read_is_whole_and_keeps_its_connection() {
    let answer = |body: String| async move { (StatusCode::OK, body) };
    let (server, caller) = (serve(Router::new().route("/", any(answer))).await, caller());
    for _ in 0..2 {
        let body = Some("y".repeat(64 * 1024).into());
        let call = Call { body, ..Call::post(server.url("/")) };
        let result = result(outcome(&caller, attempt(), call).await);
        assert_eq!(result.get("truncated"), None);
        assert_eq!(result["body"].as_str().unwrap().len(), 64 * 1024);
    }
    assert_eq!(server.connections(), 1);
    let call = Call { body: Some("y".repeat(64 * 1024 + 1).into()), ..Call::post(server.url("/")) };
    assert_eq!(result(outcome(&caller, attempt(), call).await)["truncated"], true);
}

#[tokio::test]
async fn compressed_bodies_are_not_opened() {
    let bomb: &[u8] = b"\x1f\x8b\x08\x00 not really";
    let answer = move || async move { ([("content-encoding", "gzip")], bomb) };
    let server = serve(Router::new().route("/", any(answer))).await;
    let result = result(outcome(&caller(), attempt(), Call::post(server.url("/"))).await);
    assert_eq!(result["body"], serde_json::Value::Null);
    assert!(result["body_base64"].as_str().unwrap().starts_with("H4sI"));
}

async fn answers(bytes: Vec<u8>) -> String {
    let bytes = Arc::new(bytes);
    let server = serve_raw(move |mut connection| {
        let bytes = bytes.clone();
        async move {
            read_head(&mut connection).await;
            // It may be cut off in the middle.
            let _ = connection.write_all(&bytes).await;
        }
    })
    .await;
    let text = error(outcome(&caller(), attempt(), Call::post(server.url("/"))).await);
    text.replace(&server.address.to_string(), "it")
}

#[tokio::test]
async fn headers_have_a_limit() {
    let too_large = "the headers of the answer from it are too large";
    let long = format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n\r\n", "x".repeat(1 << 20));
    assert_eq!(answers(long.into()).await, too_large);
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-many: 1\r\n".repeat(200));
    assert_eq!(answers(many.into()).await, too_large);
}

#[tokio::test]
async fn what_is_not_an_answer_is_said_in_plain_words() {
    assert_eq!(answers(Vec::new()).await, "it closed the connection before it answered");
    assert!(
        answers(b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec()).await.starts_with("what it answered is not HTTP")
    );
    let cut = answers(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec()).await;
    assert!(cut.starts_with("the answer from it broke off"), "{cut}");
}

#[tokio::test]
async fn a_reset_connection_is_a_failure() {
    let server = serve_raw(|mut connection| async move {
        read_head(&mut connection).await;
        connection.set_zero_linger().unwrap();
    })
    .await;
    let text = error(outcome(&caller(), attempt(), Call::post(server.url("/"))).await);
    assert_eq!(text, format!("the connection to {} broke: connection reset", server.address));
}

#[tokio::test]
async fn a_closed_port_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let text = error(outcome(&caller(), attempt(), Call::post(format!("http://{address}/"))).await);
    assert_eq!(text, format!("could not connect to {address}: connection refused"));
}

#[tokio::test]
async fn an_error_holds_the_beginning_of_what_was_said() {
    let answer = || async { (StatusCode::BAD_REQUEST, "é".repeat(100_000)) };
    let server = serve(Router::new().route("/", any(answer))).await;
    let text = error(outcome(&caller(), attempt(), Call::post(server.url("/"))).await);
    assert!(text.len() > 64_000 && text.len() <= 65_536, "{}", text.len());
}

#[tokio::test]
async fn a_name_that_is_not_found_in_time_is_a_failure() {
    struct Silent;
    impl punctual_server::call::Resolve for Silent {
        fn resolve(&self, _: &str) -> punctual_server::call::Resolved {
            Box::pin(std::future::pending())
        }
    }
    let mut options = options();
    options.resolver = Arc::new(Silent);
    options.resolve_timeout = Duration::from_millis(30);
    let text = error(outcome(&Caller::new(options), attempt(), Call::post("http://a.test/")).await);
    assert_eq!(text, "could not find the address of a.test: no answer within 30ms");
}
