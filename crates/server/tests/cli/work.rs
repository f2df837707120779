//! Workers that run commands, lanes that block, and the load generator.

use std::process::Stdio;

use crate::program::{Server, command, read_until, script, tell};

#[test]
fn a_command_does_tasks_and_its_exit_code_counts() {
    let server = Server::start();
    let job = script(
        &server.folder.path().join("job"),
        r#"read payload
case "$payload" in
  *good*) echo "{\"task\": \"$PUNCTUAL_TASK\", \"attempt\": $PUNCTUAL_ATTEMPT, \"queue\": \"$PUNCTUAL_QUEUE\"}" ;;
  *bad*) echo "it is broken" >&2; exit 100 ;;
esac"#,
    );
    let good = server.run(&["task", "add", "q", "--text", "good"]).line();
    let bad = server.run(&["task", "add", "q", "--text", "bad"]).line();
    let mut worker = server.command(&["worker", "--queue", "q", "--json", "--", &job]);
    let mut worker = worker.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let result = server.run(&["task", "result", &good, "--wait", "30s", "--json"]).with(0).json();
    assert_eq!(result["result"]["task"], good);
    assert_eq!((&result["result"]["attempt"], &result["result"]["queue"]), (&1.into(), &"q".into()));
    let result = server.run(&["task", "result", &bad, "--wait", "30s"]).with(5);
    assert!(result.err.contains("dead: exit code 100: it is broken"), "{result:#?}");
    tell(&worker, "TERM");
    let summary: serde_json::Value =
        serde_json::from_str(&read_until(worker.stdout.take().unwrap(), "\n")).unwrap();
    assert!(worker.wait().unwrap().success());
    assert_eq!((&summary["succeeded"], &summary["given_up"]), (&1.into(), &1.into()));
}

#[test]
fn a_command_and_a_local_url_hear_of_the_trace_of_their_task() {
    let server = Server::start();
    let job = script(&server.folder.path().join("job"), r#"echo "$TRACEPARENT $TRACESTATE""#);
    let (traced, plain) = (make_traced(&server, "q"), server.run(&["task", "add", "q"]).line());
    // The worker's own trace is not that of its tasks.
    let mut worker = server.command(&["worker", "--queue", "q", "--", &job]);
    let mut worker = worker.env("TRACEPARENT", "other").stderr(Stdio::null()).spawn().unwrap();
    let result = |id: &str| server.run(&["task", "result", id, "--wait", "30s", "--json"]).with(0).json();
    assert_eq!(result(&traced)["result"], format!("{TRACE} a=b"));
    assert_eq!(result(&plain).get("result"), None, "it has none");
    worker.kill().unwrap();
    worker.wait().unwrap();
    make_traced(&server, "local");
    let local = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/tasks", local.local_addr().unwrap());
    let worker =
        server.command(&["worker", "--queue", "local", "--post", &url]).stderr(Stdio::null()).spawn();
    let mut worker = worker.unwrap();
    let asked = read_until(local.accept().unwrap().0, "\r\n\r\n").to_lowercase();
    assert!(asked.contains(&format!("traceparent: {TRACE}\r\ntracestate: a=b")), "{asked}");
    worker.kill().unwrap();
    worker.wait().unwrap();
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Makes a task in a trace, and returns its id.
fn make_traced(server: &Server, queue: &str) -> String {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    write!(
        stream,
        "POST /v1/queues/{queue}/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\
         prefer: return=minimal\r\ntraceparent: {TRACE}\r\ntracestate: a=b\r\n\r\n{{}}"
    )
    .unwrap();
    let answer = read_until(stream, "\"}");
    answer.rsplit('"').nth(1).unwrap().to_owned()
}

#[test]
fn a_worker_that_comes_before_its_queue_says_so_and_waits() {
    let server = Server::start();
    let mut worker = server.command(&["worker", "--queue", "q", "--", "cat"]);
    let mut worker = worker.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said = read_until(worker.stderr.as_mut().unwrap(), "is the name right?");
    assert!(said.contains("there is no queue q yet"), "{said}");
    server.run(&["queue", "get", "q"]).with(4);
    let id = server.run(&["task", "add", "q", "--text", "hello"]).line();
    let result = server.run(&["task", "result", &id, "--wait", "30s"]).with(0);
    assert!(result.out.contains("hello"), "{result:#?}");
    tell(&worker, "TERM");
    assert!(worker.wait().unwrap().success());
}

#[test]
fn a_blocked_lane_is_listed_and_goes_on_when_its_head_is_skipped() {
    let server = Server::start();
    let job = script(
        &server.folder.path().join("job"),
        r#"read payload; case "$payload" in *bad*) exit 100 ;; esac"#,
    );
    let bad = server.run(&["task", "add", "q", "--text", "bad", "--lane", "l"]).line();
    let good = server.run(&["task", "add", "q", "--text", "good", "--lane", "l", "--delay", "10ms"]).line();
    let worker = server.command(&["worker", "--queue", "q", "--", &job]).stderr(Stdio::piped()).spawn();
    let mut worker = worker.unwrap();
    read_until(worker.stderr.as_mut().unwrap(), "exit code 100");
    // The report is on its way: the lane is listed as soon as it is there.
    let lanes = loop {
        let lanes = server.run(&["lane", "list", "--json"]).with(0).json();
        if lanes["lanes"].as_array().is_some_and(|lanes| !lanes.is_empty()) {
            break lanes;
        }
    };
    assert_eq!(
        (&lanes["lanes"][0]["lane"], &lanes["lanes"][0]["head"]["id"]),
        (&"l".into(), &bad.as_str().into())
    );
    server.run(&["task", "result", &bad]).with(6);
    server.run(&["lane", "skip", "q", "l"]).with(0);
    server.run(&["task", "result", &good, "--wait", "30s"]).with(0);
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[test]
fn a_local_url_does_tasks() {
    use std::io::{Read, Write};
    let server = Server::start();
    let local = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/tasks", local.local_addr().unwrap());
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = local.accept().unwrap();
        let asked = read_until(&mut stream, "\"hello\"");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{\"n\": 1}").unwrap();
        // Until the other side has had enough.
        stream.read_to_end(&mut Vec::new()).ok();
        asked
    });
    let id = server.run(&["task", "add", "q", "--text", "hello"]).line();
    let worker = server.command(&["worker", "--queue", "q", "--post", &url]).stderr(Stdio::null()).spawn();
    let mut worker = worker.unwrap();
    assert_eq!(server.run(&["task", "result", &id, "--wait", "30s"]).line(), r#"{"n":1}"#);
    worker.kill().unwrap();
    worker.wait().unwrap();
    let asked = receiver.join().unwrap().to_lowercase();
    assert!(asked.starts_with("post /tasks") && asked.contains(&format!("idempotency-key: {id}")), "{asked}");
}

/// Seconds were obeyed, and a date was not.
#[test]
fn a_local_url_may_say_until_when_it_wants_to_be_left_alone() {
    use std::io::Write;
    let server = Server::start();
    let local = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/tasks", local.local_addr().unwrap());
    let id = server.run(&["task", "add", "q", "--text", "hello"]).line();
    let worker = server.command(&["worker", "--queue", "q", "--post", &url]).stderr(Stdio::piped()).spawn();
    let mut worker = worker.unwrap();
    let mut stream = local.accept().unwrap().0;
    read_until(&mut stream, "\"hello\"");
    let date = "retry-after: Mon, 16 Nov 2099 09:00:00 GMT";
    write!(stream, "HTTP/1.1 503 Busy\r\n{date}\r\ncontent-length: 0\r\n\r\n").unwrap();
    read_until(worker.stderr.as_mut().unwrap(), "503");
    // The report is on its way.
    let task = loop {
        let task = server.run(&["task", "get", &id, "--json"]).with(0).json();
        if task["state"] == "retrying" {
            break task;
        }
    };
    let time = |field: &str| task[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let waits = time("next_at").duration_since(time("at"));
    assert!(waits > jiff::SignedDuration::from_hours(23), "a day is the longest: {waits:?}");
    worker.kill().unwrap();
    worker.wait().unwrap();
}

/// Results were read and written again to be shown: digits and fields were lost, and what could not be read was
/// answered with an error as if that were the result.
#[test]
fn a_result_is_shown_as_it_was_given() {
    let server = Server::start();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let odd = [r#""\ud800""#, "1e999", "12345678901234567890123", r#"{"a":1,"a":2}"#, &deep];
    let mut worker = server.command(&["worker", "--queue", "q", "--", "cat"]);
    let mut worker = worker.stderr(Stdio::null()).spawn().unwrap();
    for payload in odd {
        let id = server.run(&["task", "add", "q", "--payload", payload]).line();
        assert_eq!(server.run(&["task", "result", &id, "--wait", "30s"]).line(), payload);
        let shown = server.run(&["task", "get", &id]).with(0).out.replace(['\n', ' '], "");
        assert_eq!(shown.matches(payload).count(), 2, "payload and result: {shown}");
    }
    let id = server.run(&["task", "add", "q", "--payload", "[1,\n  2\n]", "--delay", "1h"]).line();
    let answer = server.run(&["task", "get", &id, "--json"]).with(0).out;
    assert_eq!(answer.lines().count(), 1, "one object to a line: {answer}");
    worker.kill().unwrap();
    worker.wait().unwrap();
}

/// It was silent for as long as there was no server.
#[test]
fn a_worker_without_a_server_says_so_once_and_goes_on_when_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let url = format!("http://{address}");
    let mut worker = command(&["worker", "--server", &url, "--queue", "q", "--", "cat"]);
    let mut worker = worker.stderr(Stdio::piped()).spawn().unwrap();
    read_until(worker.stderr.as_mut().unwrap(), "trying again\n");
    let data = folder.path().join("data");
    let _server = Server::start_with(&["--listen", &address, "--data", data.to_str().unwrap()]);
    let said = read_until(worker.stderr.as_mut().unwrap(), "again\n");
    assert_eq!(said, format!("{url} is there again\n"));
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[test]
fn told_twice_a_worker_kills_its_command_and_stops() {
    let server = Server::start();
    let pipe = server.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let job = script(&server.folder.path().join("job"), &format!("exec 3>{pipe}; sleep 3600 & wait"));
    server.run(&["task", "add", "q"]).with(0);
    let worker = server.command(&["worker", "--queue", "q", "--", &job]).stderr(Stdio::piped()).spawn();
    let mut worker = worker.unwrap();
    let mut said = worker.stderr.take().unwrap();
    // Opens when the command has it open, and ends when the command and its child are gone.
    let mut held = std::fs::File::open(&pipe).unwrap();
    tell(&worker, "INT");
    read_until(&mut said, "stopping");
    tell(&worker, "INT");
    assert_eq!(worker.wait().unwrap().code(), Some(1));
    assert!(read_until(&mut said, "never said").contains("stopped at once"));
    assert_eq!(std::io::copy(&mut held, &mut std::io::sink()).unwrap(), 0);
}

#[test]
fn a_command_that_cannot_be_found_takes_no_task() {
    let server = Server::start();
    let said = server.run(&["worker", "--queue", "q", "--", "no-such-command-anywhere"]).with(4);
    assert!(said.err.contains("no-such-command-anywhere"), "{said:#?}");
}

#[test]
fn the_load_generator_counts_what_it_did() {
    let server = Server::start();
    let bench = ["bench", "--seconds", "1", "--connections", "4", "--batch", "10", "--json"];
    let report = server.run(&bench).with(0).json();
    assert!(report["tasks"].as_u64().unwrap() >= 10 && report["failures"] == 0, "{report}");
    assert!(report["latency"]["p50_us"].as_u64().unwrap() > 0, "{report}");
    let reserve = [&bench[..], &["--mode", "reserve", "--fill", "200", "--queue", "other"]].concat();
    let report = server.run(&reserve).with(0).json();
    assert_eq!(report["tasks"], 200, "{report}");
    let list = [&bench[..], &["--mode", "list", "--fill", "1500", "--queue", "far"]].concat();
    let report = server.run(&list).with(0).json();
    assert!(report["tasks"].as_u64().unwrap() >= 100 && report["failures"] == 0, "{report}");
}
