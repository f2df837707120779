//! How much a server takes: what is too large, too slow, too often or too much is refused in words, and others go on.

use std::io;
use std::time::Duration;

use punctual_client::wire::{NewKey, Scope};
use punctual_server::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::keys::key;
use super::world::{Answer, World};

async fn limited(tell: impl FnOnce(&mut Limits)) -> World {
    let data = tempfile::tempdir().expect("the machine can do this");
    World::with(data, |options| tell(&mut options.limits)).await
}

async fn connect(world: &World) -> TcpStream {
    TcpStream::connect(world.address).await.expect("the server listens")
}

/// All that comes until the server hangs up.
async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}"),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_head_that_comes_a_byte_at_a_time_is_cut() {
    let world = limited(|limits| limits.head_timeout = Duration::from_millis(300)).await;
    let (mut reads, mut writes) = connect(&world).await.into_split();
    // It never stops sending, and never comes to an end.
    let trickling = tokio::spawn(async move {
        writes.write_all(b"GET /healthz HTTP/1.1\r\n").await?;
        loop {
            writes.write_all(b"x-more: 1\r\n").await?;
            tokio::task::yield_now().await;
            tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>()).await.ok();
        }
        #[expect(unreachable_code, reason = "it names the type of what may go wrong")]
        io::Result::Ok(())
    });
    let mut answer = Vec::new();
    // The server hangs up: an end, or an error because we were still sending.
    reads.read_to_end(&mut answer).await.ok();
    assert!(trickling.await.unwrap().is_err(), "it was cut while it was sending");
    assert_eq!(world.ask("GET", "/healthz", "").await.status, 200);
}

#[tokio::test]
async fn a_connection_that_is_kept_is_not_cut_for_being_idle_between_requests() {
    let world = limited(|limits| limits.head_timeout = Duration::from_millis(100)).await;
    let mut stream = connect(&world).await;
    for _ in 0..3 {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut answer = [0; 1024];
        let bytes = stream.read(&mut answer).await.unwrap();
        assert!(
            answer[..bytes].starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&answer[..bytes])
        );
        // Three times as long as a head may take.
        let mut nothing = [0];
        let waited = tokio::time::timeout(Duration::from_millis(300), stream.read(&mut nothing)).await;
        assert!(waited.is_err(), "it is kept: {waited:?}");
    }
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed_in_the_end() {
    let world = limited(|limits| limits.idle_max = Duration::from_millis(300)).await;
    assert_eq!(rest(connect(&world).await).await, "");
}

#[tokio::test]
async fn a_connection_is_idle_from_its_last_answer_on() {
    let world = limited(|limits| limits.idle_max = Duration::from_millis(400)).await;
    let mut stream = connect(&world).await;
    // A request may take longer than that.
    let body = "{\"wait\": \"1s\"}";
    let head = "POST /v1/queues/q/reserve HTTP/1.1\r\nhost: localhost\r\ncontent-length:";
    for ask in [
        format!("{head} {}\r\n\r\n{body}", body.len()),
        "HEAD /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(2),
    ] {
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = [0; 1024];
        let bytes = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..bytes]);
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    }
    // Two were asked for at once, and the second answer may come by itself.
    let mut answer = [0; 1024];
    tokio::time::timeout(Duration::from_millis(200), stream.read(&mut answer)).await.ok();
    assert_eq!(rest(stream).await, "");
}

#[tokio::test]
async fn whoever_does_not_take_the_answer_is_cut() {
    let world =
        limited(|limits| (limits.idle_max, limits.connections_max) = (Duration::from_millis(300), 1)).await;
    let task = format!("{{\"delay\": \"1h\", \"payload\": \"{}\"}}", "x".repeat(200_000));
    let tasks = format!("{{\"tasks\": [{}]}}", vec![task; 100].join(","));
    assert_eq!(world.ask("POST", "/v1/queues/q/tasks", &tasks).await.status, 200);
    // Twenty megabytes, which no socket takes by itself, and nobody reads them.
    let mut stream = loop {
        let mut stream = connect(&world).await;
        let ask = "GET /v1/tasks?view=full&limit=100 HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        // The connection before may not be gone yet.
        if &first == b"HTTP/1.1 200" {
            break stream;
        }
    };
    assert_eq!(world.ask("GET", "/healthz", "").await.status, 503, "it is the only one there is room for");
    while world.ask("GET", "/healthz", "").await.status != 200 {}
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.ok();
    assert!(rest.len() < 20_000_000, "it was cut after {} bytes", rest.len());
}

/// Idle connections were told by what they sent last: whoever listened for longer than that was cut, whatever they were told.
#[tokio::test]
async fn whoever_listens_is_not_idle() {
    let world = limited(|limits| limits.idle_max = Duration::from_millis(200)).await;
    let mut stream = connect(&world).await;
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 64 * 1024];
    let bytes = stream.read(&mut answer).await.unwrap();
    assert!(answer[..bytes].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..bytes]));
    for _ in 0..3 {
        assert_eq!(world.ask("POST", "/v1/queues/q/tasks", "{\"delay\": \"1h\"}").await.status, 201);
        let bytes = stream.read(&mut answer).await.unwrap();
        let event = String::from_utf8_lossy(&answer[..bytes]);
        assert!(event.contains("task.created"), "{event}");
        let waited = tokio::time::timeout(Duration::from_millis(600), stream.read(&mut answer)).await;
        assert!(waited.is_err(), "nothing happens, and nobody hangs up: {waited:?}");
    }
}

#[tokio::test]
async fn whoever_takes_an_answer_slowly_gets_all_of_it() {
    let world = limited(|limits| limits.idle_max = Duration::from_secs(1)).await;
    let task = format!("{{\"delay\": \"1h\", \"payload\": \"{}\"}}", "x".repeat(200_000));
    let tasks = format!("{{\"tasks\": [{}]}}", vec![task; 100].join(","));
    assert_eq!(world.ask("POST", "/v1/queues/q/tasks", &tasks).await.status, 200);
    // With little room of its own, or it would take much at once and then nothing for long.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(128 * 1024).unwrap();
    let mut stream = socket.connect(world.address).await.expect("the server listens");
    let ask = "GET /v1/tasks?view=full&limit=100 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(ask.as_bytes()).await.unwrap();
    let (mut piece, mut answer) = (vec![0; 64 * 1024], Vec::new());
    // A few times as long as nothing of it need be taken.
    loop {
        let bytes = stream.read(&mut piece).await.unwrap_or_default();
        if bytes == 0 {
            break;
        }
        answer.extend_from_slice(&piece[..bytes]);
        tokio::time::timeout(Duration::from_millis(15), std::future::pending::<()>()).await.ok();
    }
    assert!(answer.len() > 10_000_000 && answer.ends_with(b"}"), "it ended after {} bytes", answer.len());
}

#[tokio::test]
async fn a_body_that_does_not_come_is_refused() {
    let world = limited(|limits| limits.body_timeout = Duration::from_millis(300)).await;
    let mut stream = connect(&world).await;
    let head =
        "POST /v1/queues/q/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 20\r\n\r\n{\"delay\": ";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = Answer::read(rest(stream).await.as_bytes());
    assert_eq!(answer.problem(), (408, "body_too_slow".to_owned()));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_whether_it_says_so_or_not() {
    let world = limited(|limits| limits.body_max = 4 * 1024).await;
    let large = format!("{{\"payload\": \"{}\"}}", "x".repeat(5_000));
    let answer = world.ask("POST", "/v1/queues/q/tasks", &large).await;
    assert_eq!(answer.problem(), (413, "body_too_large".to_owned()));
    assert!(answer.body.contains("4 KiB is the most"), "{}", answer.body);
    let mut stream = connect(&world).await;
    let head = "POST /v1/queues/q/tasks HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(format!("{head}{:x}\r\n{large}\r\n", large.len()).as_bytes()).await.unwrap();
    let answer = Answer::read(rest(stream).await.as_bytes());
    assert_eq!(answer.problem(), (413, "body_too_large".to_owned()));
    let small = format!("{{\"payload\": \"{}\"}}", "x".repeat(3_000));
    assert_eq!(world.ask("POST", "/v1/queues/q/tasks", &small).await.status, 201);
}

#[tokio::test]
async fn whoever_sends_a_body_that_is_not_read_hears_why_all_the_same() {
    let world = limited(|limits| limits.body_max = 4 * 1024).await;
    let large = "x".repeat(20_000_000);
    for (path, refused) in [
        ("/v1/queues/q/tasks", (413, "body_too_large".to_owned())),
        ("/v1/queues/q:resume", (413, "body_too_large".to_owned())),
        ("/v1/nowhere", (404, "not_found".to_owned())),
    ] {
        // All of it is sent before anything is read, as many clients do.
        assert_eq!(world.ask("POST", path, &large).await.problem(), refused, "{path}");
    }
    // One that never ends is not listened to for ever.
    let mut stream = connect(&world).await;
    let head = "POST /v1/queues/q/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = vec![b'x'; 1 << 20];
    let mut sent = 0;
    while stream.write_all(&chunk).await.is_ok() {
        sent += chunk.len();
        assert!(sent < 10_000_000_000, "it is cut in the end");
    }
}

/// The connection was closed without a word: whoever sent the next request on it heard nothing.
#[tokio::test]
async fn an_answer_says_when_it_is_the_last_of_its_connection() {
    let world = limited(|limits| limits.body_max = 4 * 1024).await;
    for (path, what) in [
        ("/v1/nowhere", "content-length: 20000000\r\n\r\nxxx"),
        ("/v1/nowhere", "transfer-encoding: chunked\r\n\r\n3\r\nxxx\r\n"),
        // Whoever waits to be asked for the body is not asked.
        ("/v1/nowhere", "expect: 100-continue\r\ncontent-length: 3\r\n\r\n"),
        // Only a little, but it does not come.
        ("/v1/nowhere", "content-length: 4\r\n\r\nxxx"),
        ("/v1/queues/q/tasks", "content-length: 20000000\r\n\r\nxxx"),
    ] {
        let mut stream = connect(&world).await;
        let ask = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{what}");
        stream.write_all(ask.as_bytes()).await.unwrap();
        let answer = Answer::read(rest(stream).await.as_bytes());
        assert!([404, 413].contains(&answer.status), "{what}: {}", answer.head);
        assert!(answer.head.contains("connection: close"), "{what}: {}", answer.head);
    }
}

#[tokio::test]
async fn a_connection_is_kept_when_little_was_sent_in_vain() {
    let world = World::new().await;
    let mut stream = connect(&world).await;
    for body in ["{}".to_owned(), "x".repeat(10_000)] {
        let head = "POST /v1/nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length:";
        stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        let mut answer = [0; 4096];
        let bytes = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..bytes]).to_lowercase();
        assert!(answer.starts_with("http/1.1 404") && !answer.contains("connection: close"), "{answer}");
    }
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(rest(stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    for head_max in [8 * 1024, 20 * 1024, 32 * 1024] {
        let world = limited(|limits| limits.head_max = head_max).await;
        let fits = head_max - 200;
        for (length, status) in [(fits, 200), (fits + 200, 431), (2 * head_max, 431), (2_000_000, 431)] {
            let long = "x".repeat(length);
            let answer = world.ask_with("GET", "/healthz", &[("x-long", &long)], b"").await;
            assert_eq!(answer.status, status, "{length} of {head_max}");
            let answer = world.ask("GET", &format!("/v1/tasks?name={long}"), "").await;
            assert_eq!(answer.status, status, "{length} of {head_max}, in the path");
        }
    }
    // Also one that does not fit into any buffer is told why.
    let world = limited(|limits| limits.head_max = 32 * 1024).await;
    for length in [32 * 1024, 2_000_000] {
        let answer = world.ask_with("GET", "/healthz", &[("x-long", &"x".repeat(length))], b"").await;
        assert!(answer.head.contains("application/problem+json"), "{length}: {}", answer.head);
        assert_eq!((answer.status, &answer.json()["code"]), (431, &"head_too_large".into()));
        assert!(answer.body.contains("32 KiB is the most"), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_connection_too_many_is_told_so_and_others_go_on() {
    let world = limited(|limits| limits.connections_max = 2).await;
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(&world).await;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        kept.push(stream);
    }
    let answer = world.ask("GET", "/healthz", "").await;
    assert_eq!((answer.status, &answer.json()["code"]), (503, &"connections_full".into()));
    assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
    drop(kept.pop());
    // When the one has gone, there is room again; the server sees it in a moment.
    while world.ask("GET", "/healthz", "").await.status != 200 {}
    kept[0].write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
}

#[tokio::test]
async fn what_would_not_fit_into_memory_is_refused_before_it_is_read() {
    let (body_max, in_flight_max) = (64 * 1024, 100 * 1024);
    let world = limited(|limits| (limits.body_max, limits.in_flight_max) = (body_max, in_flight_max)).await;
    // Announced, and half sent: its room is taken.
    let mut slow = connect(&world).await;
    let head = format!(
        "POST /v1/queues/q/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: {body_max}\r\n\r\n{{"
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    let large = format!("{{\"payload\": \"{}\"}}", "x".repeat(60 * 1024));
    let refused = loop {
        // The other may not have come in yet.
        let answer = world.ask("POST", "/v1/queues/q/tasks", &large).await;
        if answer.status != 201 {
            break answer;
        }
    };
    assert_eq!(refused.problem(), (429, "overloaded".to_owned()));
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    assert_eq!(world.ask("POST", "/v1/queues/q/tasks", "{}").await.status, 201, "what is small still fits");
    drop(slow);
    while world.ask("POST", "/v1/queues/q/tasks", &large).await.status != 201 {}
}

#[tokio::test]
async fn a_key_that_asks_too_often_is_told_to_wait_and_others_are_not() {
    let world =
        limited(|limits| (limits.requests_per_second, limits.requests_burst) = (Some(1), Some(5))).await;
    let (_, admin) = key(&world.client, "default", &[Scope::Admin]).await;
    let statuses = async |secret: &str, count: usize| {
        let bearer = format!("Bearer {secret}");
        let mut statuses = Vec::new();
        for _ in 0..count {
            let answer = world.ask_with("GET", "/v1/tasks", &[("authorization", &bearer)], b"").await;
            if answer.status != 200 {
                assert_eq!(answer.problem(), (429, "rate_limited".to_owned()));
                assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
            }
            statuses.push(answer.status);
        }
        statuses
    };
    let new = NewKey { requests_per_second: Some(1_000), ..NewKey::default() };
    let fast = world.client_with(&admin).add_key(&new).await.unwrap().secret;
    // One of the burst was used to make the other key. The bucket fills slowly: a token a second.
    let said = statuses(&admin, 20).await;
    assert_eq!(said[..3], [200; 3]);
    assert!(said.contains(&429), "{said:?}");
    assert_eq!(statuses(&fast, 20).await, [200; 20], "a key may have a rate of its own");
    while statuses(&admin, 1).await != [200] {}
}

#[tokio::test]
async fn ten_thousand_idle_connections_leave_the_server_answering() {
    let world = limited(|limits| limits.connections_max = 12_000).await;
    // Both ends are ours, and each is a file. The server has raised the limit as far as the machine lets it.
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = 10_000.min((files.saturating_sub(1_000) / 2) as usize);
    let mut idle = Vec::with_capacity(count);
    for _ in 0..count {
        idle.push(connect(&world).await);
    }
    let task = r#"{"delay": "1h"}"#;
    for _ in 0..20 {
        assert_eq!(world.ask("POST", "/v1/queues/q/tasks", task).await.status, 201, "with {count} idle");
    }
    assert!(count > 400, "there was room for {count} connections only");
}
