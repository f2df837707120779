//! Connections that are kept: used again, closed in time, and never trusted with more than they can take.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::any;
use futures_util::poll;
use punctual_server::call::{Call, Caller, CallerOptions};
use tokio::io::AsyncWriteExt;
use tokio::sync::{Barrier, mpsc};

use crate::servers::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A server that answers one call over each connection and closes it without a word; and when it has.
async fn closes_after_each() -> (Served, mpsc::Receiver<()>) {
    let (tell, is_closed) = mpsc::channel(1);
    let server = serve_raw(move |mut connection| {
        let tell = tell.clone();
        async move {
            read_head(&mut connection).await;
            connection.write_all(OK).await.unwrap();
            drop(connection);
            tell.send(()).await.unwrap();
        }
    })
    .await;
    (server, is_closed)
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_time() {
    let (tell, mut is_closed) = mpsc::channel(1);
    let server = serve_raw(move |mut connection| {
        let tell = tell.clone();
        async move {
            read_head(&mut connection).await;
            connection.write_all(OK).await.unwrap();
            closed(&mut connection).await;
            tell.send(()).await.unwrap();
        }
    })
    .await;
    let caller = Caller::new(CallerOptions { idle_timeout: Duration::from_millis(40), ..options() });
    result(outcome(&caller, attempt(), get(server.url("/"))).await);
    is_closed.recv().await.unwrap();
    // And again, when whoever looked for idle ones has long gone.
    result(outcome(&caller, attempt(), get(server.url("/"))).await);
    is_closed.recv().await.unwrap();
}

#[tokio::test]
async fn a_connection_that_was_closed_while_it_was_idle_is_not_used() {
    let (server, mut is_closed) = closes_after_each().await;
    let caller = caller();
    for calls in 1..=5 {
        result(outcome(&caller, attempt(), get(server.url("/"))).await);
        is_closed.recv().await.unwrap();
        // That it was closed is heard when this thread next asks the system what has happened.
        tokio::task::yield_now().await;
        assert_eq!(server.connections(), calls);
    }
}

#[tokio::test]
async fn a_connection_that_turns_out_to_be_closed_gives_the_request_back() {
    // A connection that has ended, and is not dropped, keeps a request that it has not taken up: whoever waits would hang.
    let (server, mut is_closed) = closes_after_each().await;
    let caller = caller();
    result(outcome(&caller, attempt(), get(server.url("/"))).await);
    is_closed.recv().await.unwrap();
    tokio::task::yield_now().await;
    // Whoever has had its turn sees no socket: the connection looks good when it is taken up.
    while poll!(pin!(tokio::task::coop::consume_budget())).is_ready() {}
    result(outcome(&caller, attempt(), get(server.url("/"))).await);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_request_that_was_sent_is_not_sent_again() {
    let heard = Arc::new(AtomicUsize::new(0));
    let hears = heard.clone();
    let server = serve_raw(move |mut connection| {
        let heard = hears.clone();
        async move {
            read_head(&mut connection).await;
            connection.write_all(OK).await.unwrap();
            // The second one is heard, and never answered.
            read_head(&mut connection).await;
            heard.fetch_add(1, Ordering::SeqCst);
        }
    })
    .await;
    let caller = caller();
    result(outcome(&caller, attempt(), Call::post(server.url("/"))).await);
    let error = error(outcome(&caller, attempt(), Call::post(server.url("/"))).await);
    assert!(error.contains("closed the connection before it answered"), "{error}");
    assert_eq!((heard.load(Ordering::SeqCst), server.connections()), (1, 1));
}

#[tokio::test]
async fn answers_of_every_kind_leave_the_connection_ready_for_the_next() {
    let kinds: [(&str, &[u8]); 5] = [
        ("GET", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n"),
        ("POST", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("PUT", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: sum\r\n\r\n2\r\nok\r\n0\r\nsum: 1\r\n\r\n"),
        ("DELETE", b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
    ];
    let server = serve_raw(move |mut connection| async move {
        for (_, answer) in kinds {
            read_head(&mut connection).await;
            // In pieces, as a slow network brings them.
            for piece in answer.chunks(7) {
                connection.write_all(piece).await.unwrap();
                connection.flush().await.unwrap();
                tokio::task::yield_now().await;
            }
        }
        closed(&mut connection).await;
    })
    .await;
    let caller = caller();
    for (method, _) in kinds {
        let call = Call { method: method.into(), ..Call::post(server.url("/")) };
        drop(outcome(&caller, attempt(), call).await);
        assert_eq!(server.connections(), 1, "{method}");
    }
}

#[tokio::test]
async fn a_server_that_says_it_closes_is_called_over_another_connection() {
    let server = serve_raw(|mut connection| async move {
        read_head(&mut connection).await;
        let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
        connection.write_all(answer).await.unwrap();
        // It says so, and leaves closing to us.
        closed(&mut connection).await;
    })
    .await;
    let caller = caller();
    for calls in 1..=3 {
        result(outcome(&caller, attempt(), get(server.url("/"))).await);
        assert_eq!(server.connections(), calls);
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_no_connection_behind() {
    let (tell, mut is_closed) = mpsc::channel(1);
    let server = serve_raw(move |mut connection| {
        let tell = tell.clone();
        async move {
            read_head(&mut connection).await;
            closed(&mut connection).await;
            tell.send(()).await.unwrap();
        }
    })
    .await;
    let caller = caller();
    let error = error(outcome(&caller, attempt_within(SHORT), get(server.url("/"))).await);
    assert!(error.contains("no answer"), "{error}");
    is_closed.recv().await.unwrap();
}

#[tokio::test]
async fn as_many_are_kept_for_a_host_as_may_be() {
    const AT_ONCE: usize = 6;
    let (barrier, kept) = (Arc::new(Barrier::new(AT_ONCE)), 2);
    let together = barrier.clone();
    let router = Router::new().route("/", any(|| async { "ok" })).route(
        "/together",
        any(move || {
            let barrier = together.clone();
            async move {
                barrier.wait().await;
                "ok"
            }
        }),
    );
    let server = serve(router).await;
    let caller = Caller::new(CallerOptions { idle_max: kept, ..options() });
    let all = async || {
        let calls = (0..AT_ONCE).map(|_| outcome(&caller, attempt(), get(server.url("/together"))));
        futures_util::future::join_all(calls).await.into_iter().for_each(|outcome| drop(result(outcome)));
    };
    all().await;
    assert_eq!(server.connections(), AT_ONCE);
    all().await;
    assert_eq!(server.connections(), AT_ONCE + AT_ONCE - kept);
}
