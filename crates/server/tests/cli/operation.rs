//! What those who run a server do: a clock for tests, and who is notified.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::program::{Server, command, run, tell};

#[test]
fn a_virtual_clock_is_shown_and_set_forward() {
    let server = Server::with(&["--clock", "virtual", "--now", "2030-01-01T09:00:00Z"]);
    assert!(server.announcement.contains("clock  virtual"), "{}", server.announcement);
    assert_eq!(server.run(&["clock", "show"]).line(), "2030-01-01T09:00:00Z  virtual");
    server.run(&["task", "add", "mail", "--delay", "30m"]).with(0);
    let said = server.run(&["clock", "advance", "2h"]).line();
    assert_eq!(said, "2030-01-01T11:00:00Z  0 attempts started", "a worker's task waits for a worker");
    // The clocks of Paris show an hour more, and the server's day counts.
    assert_eq!(
        server.run(&["clock", "advance", "tomorrow 9:00"]).line(),
        "2030-01-02T08:00:00Z  0 attempts started"
    );
}

#[test]
fn a_real_clock_is_not_set() {
    let server = Server::start();
    let said = server.run(&["clock", "advance", "1h"]).with(1);
    assert!(said.err.contains("--clock virtual"), "{said:#?}");
    run(&["serve", "--now", "2030-01-01T09:00:00Z"]).with(2);
    run(&["serve", "--clock", "virtual", "--now", "2030-01-01T09:00:00"]).with(2);
}

#[test]
fn notifications_are_set_shown_and_deleted() {
    let server = Server::start();
    assert_eq!(server.run(&["notification", "list"]).line(), "Nobody is notified.");
    let set = [
        "notification",
        "set",
        "ops",
        "--url",
        "https://ops.example.com/in",
        "--event",
        "task.dead,lateness",
    ];
    let said = server.run(&set).with(1);
    assert!(said.err.contains("--lateness-over"), "{said:#?}");
    let set = [&set[..], &["--lateness-over", "30s", "--queue", "mail", "--json"]].concat();
    let made = server.run(&set).with(0).json();
    assert_eq!((&made["name"], &made["lateness_over"]), (&"ops".into(), &"PT30S".into()));
    let listed = server.run(&["notification", "list"]).with(0);
    assert!(listed.out.contains("task.dead lateness") && listed.out.contains("30s"), "{listed:#?}");
    server.run(&["notification", "delete", "ops"]).with(0);
    server.run(&["notification", "get", "ops"]).with(4);
}

#[test]
fn logs_are_lines_of_json_without_payloads() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let flags = ["--log", "debug", "--log-format", "json"];
    let serve =
        [&["serve", "--listen", "127.0.0.1:0", "--json", "--data", data.to_str().unwrap()], &flags[..]]
            .concat();
    let mut process = command(&serve).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    let url = serde_json::from_str::<Value>(&first).unwrap()["url"].as_str().unwrap().to_owned();
    run(&["task", "add", "mail", "--server", &url, "--text", "hush-hush", "--delay", "1h"]).with(0);
    tell(&process, "TERM");
    let said = String::from_utf8(process.wait_with_output().unwrap().stderr).unwrap();
    let messages: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_there = |message: &str, field: &str| {
        messages
            .iter()
            .any(|line| line["message"] == message && !line[field].is_null() && line["level"].is_string())
    };
    assert!(is_there("started", "address") && is_there("stopped", "timestamp"), "{said}");
    assert!(is_there("answered", "path"), "{said}");
    assert!(!said.contains("hush-hush"), "{said}");
    run(&["serve", "--log", "loud"]).with(2);
}
