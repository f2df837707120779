//! Tasks as a stream of lines: answered while more come, in order, and none spoils another.

use punctual_client::wire::{NewTask, TaskQuery};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::world::{World, secs};

const PATH: &str = "/v1/queues/mail/tasks";
const NDJSON: [(&str, &str); 2] = [("content-type", "application/x-ndjson"), ("prefer", "return=minimal")];

#[tokio::test]
async fn a_line_is_answered_before_the_next_one_is_sent() {
    let world = World::new().await;
    let mut stream = BufReader::new(TcpStream::connect(world.address).await.unwrap());
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for (line, status) in
        [(r#"{"delay": "1h"}"#, 201), (r#"{"dealy": "1h"}"#, 422), ("nonsense", 400), ("{}", 201)]
    {
        let chunk = format!("{:x}\r\n{line}\n\r\n", line.len() + 1);
        stream.write_all(chunk.as_bytes()).await.unwrap();
        assert_eq!(next_answer(&mut stream).await["status"], status, "{line}");
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let mut rest = String::new();
    while rest != "0\r\n" {
        rest.clear();
        stream.read_line(&mut rest).await.unwrap();
    }
}

/// The next line that is an answer, and not part of how HTTP is written.
async fn next_answer(stream: &mut BufReader<TcpStream>) -> Value {
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).await.expect("it can be read"), 0, "the connection ended");
        if line.starts_with('{') {
            return serde_json::from_str(&line).expect("an answer is JSON");
        }
    }
}

/// From the second line on, the stream was taken for the head of a request, which has less time.
#[tokio::test]
async fn a_stream_may_pause_for_longer_than_a_head_or_without_a_request() {
    let data = tempfile::tempdir().unwrap();
    let world = World::with(data, |options| {
        let short = std::time::Duration::from_millis(100);
        (options.limits.head_timeout, options.limits.idle_max) = (short, short);
    })
    .await;
    let mut stream = BufReader::new(TcpStream::connect(world.address).await.unwrap());
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = "10\r\n{\"delay\": \"1h\"}\n\r\n";
    for _ in 0..3 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
        assert_eq!(next_answer(&mut stream).await["status"], 201);
        tokio::time::timeout(std::time::Duration::from_millis(400), std::future::pending::<()>()).await.ok();
    }
}

#[tokio::test]
async fn there_is_no_limit_to_how_many_lines_come() {
    let world = World::new().await;
    // More than fit into a batch, from somebody who reads nothing before everything is sent.
    let count = 25_000;
    let lines: String = (0..count)
        .map(|n| {
            if n % 1_000 == 7 {
                "{\"priority\": 10}\n".to_owned()
            } else {
                format!("{{\"delay\": \"1h\", \"payload\": {n}}}\n")
            }
        })
        .collect();
    let answer = world.ask_with("POST", PATH, &NDJSON, lines.as_bytes()).await;
    let results: Vec<Value> = answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), count);
    for (n, result) in results.iter().enumerate() {
        assert_eq!(result["status"], if n % 1_000 == 7 { 422 } else { 201 }, "{n}: {result}");
    }
    // In order: the thousandth answer is about the thousandth line.
    let id = results[1_000]["id"].as_str().unwrap();
    assert_eq!(world.client.full_task(id).await.unwrap().payload.unwrap().text(), "1000");
}

#[tokio::test]
async fn a_stream_that_breaks_off_makes_what_was_whole() {
    let world = World::new().await;
    let mut stream = BufReader::new(TcpStream::connect(world.address).await.unwrap());
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ncontent-length: 1000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(b"{\"delay\": \"1h\"}\n{\"delay\": \"2h").await.unwrap();
    assert_eq!(next_answer(&mut stream).await["status"], 201);
    drop(stream);
    assert_eq!(world.client.list(&TaskQuery::default()).await.unwrap().tasks.len(), 1);
}

#[tokio::test]
async fn what_is_wrong_with_the_queue_is_one_problem() {
    let world = World::new().await;
    let answer = world.ask_with("POST", "/v1/queues/a%20b/tasks", &NDJSON, b"{}\n{}\n").await;
    assert_eq!(answer.problem(), (422, "queue_name_invalid".to_owned()));
}

#[tokio::test]
async fn with_a_key_the_same_lines_get_the_same_answer() {
    let world = World::new().await;
    let headers = [NDJSON[0], ("idempotency-key", "k-1")];
    let first = world.ask_with("POST", PATH, &headers, b"{\"delay\": \"1h\"}\n").await;
    let again = world.ask_with("POST", PATH, &headers, b"{\"delay\": \"1h\"}\n").await;
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    let other = NewTask::new().after(secs(1));
    world.client.create("other", &other).await.unwrap();
    let mail = TaskQuery { queue: Some("mail".into()), ..TaskQuery::default() };
    assert_eq!(world.client.list(&mail).await.unwrap().tasks.len(), 1);
}

/// What a task carries is kept as it came, over several lines: so was its answer.
#[tokio::test]
async fn an_answer_is_one_line_whatever_the_task_carries() {
    let world = World::new().await;
    let there = "{\"at\": \"2099-01-01T00:00:00Z\", \"unique_key\": \"k\", \"payload\": {\n \"a\":\r\n 1}}";
    assert_eq!(world.ask("POST", PATH, there).await.status, 201);
    let again = r#"{"at": "2099-01-01T00:00:00Z", "unique_key": "k", "on_conflict": "keep"}"#;
    for more in [vec![], vec![("idempotency-key", "once")]] {
        let path = if more.is_empty() { format!("{PATH}?view=full") } else { PATH.to_owned() };
        let headers = [vec![("content-type", "application/x-ndjson")], more].concat();
        let answer = world.ask_with("POST", &path, &headers, again.as_bytes()).await;
        let lines: Vec<Value> =
            answer.body.lines().map(|line| serde_json::from_str(line).expect("each is JSON")).collect();
        assert_eq!(lines.len(), 1, "{}", answer.body);
        if headers.len() == 1 {
            assert_eq!(lines[0]["task"]["payload"], serde_json::json!({"a": 1}));
        }
    }
}
