//! Tasks, queues and lanes: added, looked at, changed.

use crate::program::Server;

#[test]
fn a_task_goes_through_its_life() {
    let server = Server::start();
    let said = server.run(&[
        "task",
        "add",
        "mail",
        "--payload",
        r#"{"to": "ana"}"#,
        "--at",
        "in 90m",
        "--name",
        "letter",
    ]);
    let said = said.with(0);
    assert!(said.err.starts_with("due ") && said.err.contains("in 1h 30m"), "{said:#?}");
    let id = said.out.trim();
    let full = server.run(&["task", "get", id, "--json"]).with(0).json();
    assert_eq!(full["payload"]["to"], "ana");
    assert_eq!((&full["state"], &full["name"]), (&"scheduled".into(), &"letter".into()));
    let moved = server.run(&["task", "move", id, "--at", "2090-12-24 18:00 Europe/Paris", "--json"]).with(0);
    assert_eq!(moved.json()["next_at"], "2090-12-24T17:00:00.000000Z");
    server.run(&["task", "result", id]).with(6);
    server.run(&["task", "run", id]).with(0);
    server.run(&["task", "cancel", id]).with(0);
    assert_eq!(server.run(&["task", "result", id, "--json"]).with(5).json()["state"], "cancelled");
    let again = server.run(&["task", "cancel", id, "--json"]).with(1);
    let problem: serde_json::Value = serde_json::from_str(&again.err).unwrap();
    assert_eq!(problem["code"], "task_ended");
}

#[test]
fn payloads_come_from_flags_files_and_stdin() {
    let server = Server::start();
    fn add<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["task", "add", "q", "--delay", "1h", "--json"], more].concat()
    }
    let full =
        |id: &serde_json::Value| server.run(&["task", "get", id.as_str().unwrap(), "--json"]).with(0).json();
    let made = server.run(&add(&["--text", "héllo"])).with(0).json();
    assert_eq!(full(&made["id"])["payload"], "héllo");
    let made = server.run_with(&add(&["--file", "-"]), "[1, 2]").with(0).json();
    assert_eq!(full(&made["id"])["payload"], serde_json::json!([1, 2]));
    let path = server.path("bytes");
    std::fs::write(&path, [0, 159, 146]).unwrap();
    let made = server.run(&add(&["--file", &path])).with(0).json();
    assert_eq!(full(&made["id"])["payload_base64"], "AJ+S");
    let call =
        ["--url", "http://127.0.0.1:9/x", "--method", "PUT", "--header", "A: b: c", "--body", r#"{"n": 1}"#];
    let made = server.run(&add(&call)).with(0).json();
    let http = &full(&made["id"])["http"];
    assert_eq!(http["method"], "PUT");
    assert_eq!(http["headers"]["A"], "b: c");
    // What is sent is what the task carries.
    assert_eq!(full(&made["id"])["payload"]["n"], 1);
}

#[test]
fn the_same_task_again_is_the_same_task() {
    let server = Server::start();
    let add = ["task", "add", "q", "--at", "2091-01-01 9:00", "--unique-key", "k"];
    let first = server.run(&add).line();
    let second = server.run(&add).with(0);
    assert_eq!(second.out.trim(), first);
    assert!(second.err.contains("was there already"), "{second:#?}");
    let third = server.run(&[&add[..], &["--on-conflict", "error"]].concat()).with(1);
    assert!(third.err.contains(&first), "{third:#?}");
}

#[test]
fn many_tasks_are_changed_by_filter() {
    let server = Server::start();
    for lane in ["a", "a", "b"] {
        server.run(&["task", "add", "q", "--delay", "1h", "--lane", lane]).with(0);
    }
    let list = server.run(&["task", "list", "--lane", "a", "--json"]).with(0).json();
    assert_eq!(list["tasks"].as_array().unwrap().len(), 2);
    assert_eq!(
        server.run(&["task", "cancel", "--queue", "q", "--dry-run"]).line(),
        "3 tasks would be cancelled."
    );
    let moved = server.run(&["task", "move", "--lane", "b", "--at", "in 2h", "--json"]).with(0).json();
    assert_eq!((&moved["matched"], &moved["changed"]), (&1.into(), &1.into()));
    assert_eq!(server.run(&["task", "cancel", "--lane", "a"]).line(), "2 tasks cancelled.");
    let said = server.run(&["queue", "purge", "q"]).with(2);
    assert!(said.err.contains("1 task") && said.err.contains("--yes"), "{said:#?}");
    assert_eq!(server.run(&["queue", "purge", "q", "--yes"]).line(), "1 task cancelled.");
    // Nothing waits in it, but it is there.
    server.run(&["queue", "purge", "q"]).with(2);
}

#[test]
fn a_queue_shows_the_public_half_of_its_keys_and_nothing_of_the_other() {
    let server = Server::start();
    let secret = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
    server.run(&["queue", "set", "q", "--secret", secret]).with(0);
    let shown = server.run(&["queue", "get", "q"]).with(0).out;
    assert!(shown.contains("public key      whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="), "{shown}");
    assert!(!shown.contains("whsk_"), "{shown}");
    let refused = server.run(&["queue", "set", "q", "--secret", "whsk_AAAA"]).with(1);
    assert!(refused.err.contains("--secret: an ed25519 key has 32 bytes"), "{refused:#?}");
}

#[test]
fn a_queue_that_is_not_there_cannot_be_purged() {
    let server = Server::start();
    for yes in [&[][..], &["--yes"]] {
        let said = server.run(&[&["queue", "purge", "nothing"], yes].concat()).with(4);
        assert!(said.err.contains("queue") && !said.err.contains("would cancel"), "{said:#?}");
    }
}

#[test]
fn all_tasks_are_cancelled_only_by_whoever_means_it() {
    let server = Server::start();
    for queue in ["a", "a", "b"] {
        server.run(&["task", "add", queue, "--delay", "1h"]).with(0);
    }
    let said = server.run(&["task", "cancel", "--all"]).with(2);
    assert!(said.err.contains("3 tasks") && said.err.contains("--yes"), "{said:#?}");
    let dry = server.run(&["task", "cancel", "--all", "--dry-run"]).line();
    assert_eq!(dry, "3 tasks would be cancelled.");
    assert_eq!(server.run(&["task", "cancel", "--queue", "b"]).line(), "1 task cancelled.");
    assert_eq!(server.run(&["task", "cancel", "--all", "--yes"]).line(), "2 tasks cancelled.");
}

#[test]
fn what_is_refused_names_the_flag_that_was_typed() {
    let server = Server::start();
    for (typed, said) in [
        (&["queue", "set", "q", "--concurrency", "0"][..], "--concurrency must not be zero"),
        (&["queue", "set", "q", "--rate", "0/s"], "--rate must not be zero"),
        (&["queue", "set", "q", "--secret", "x"], "--secret: "),
        (&["task", "add", "q", "--at", "2001-01-01 9:00"], "`punctual queue set QUEUE --past run_now`"),
        (&["task", "add", "q", "--url", "ftp://x"], "--url: "),
        (&["key", "add", "--scope", "admin", "--expires", "in 90d"], "--expires-at: the first key must not"),
    ] {
        let refused = server.run(typed).with(1);
        assert!(refused.err.contains(said), "{refused:#?}");
    }
    let id = server.run(&["task", "add", "q", "--delay", "1h"]).line();
    let refused = server.run(&["task", "retry", &id]).with(1);
    assert!(refused.err.contains("`punctual task run`"), "{refused:#?}");
    let problem = server.run(&["queue", "set", "q", "--concurrency", "0", "--json"]).with(1);
    assert!(
        problem.err.contains("\"concurrency must not be zero"),
        "programs read the API's words: {problem:#?}"
    );
}

#[test]
fn a_queue_is_made_changed_paused_and_deleted() {
    let server = Server::start();
    let set = ["queue", "set", "q", "--concurrency", "5", "--rate", "100/s", "--timeout", "1m", "--json"];
    let queue = server.run(&set).with(0).json();
    assert_eq!((&queue["concurrency"], &queue["rate"]["starts"]), (&5.into(), &100.into()));
    let queue = server.run(&["queue", "set", "q", "--concurrency", "default", "--json"]).with(0).json();
    assert_eq!((&queue["concurrency"], &queue["timeout"]), (&serde_json::Value::Null, &"PT1M".into()));
    assert_eq!(server.run(&["queue", "pause", "q", "--json"]).with(0).json()["paused"], true);
    assert_eq!(server.run(&["queue", "resume", "q", "--json"]).with(0).json()["paused"], false);
    let list = server.run(&["queue", "list", "--json"]).with(0).json();
    assert_eq!(list["queues"][0]["name"], "q");
    server.run(&["queue", "delete", "q"]).with(0);
    server.run(&["queue", "get", "q"]).with(4);
}

#[test]
fn tables_do_not_wrap_and_have_no_colors_in_a_pipe() {
    let server = Server::start();
    let id = server.run(&["task", "add", "q", "--delay", "1h", "--name", "n"]).line();
    let table = server.run(&["task", "list"]).line();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[1].starts_with(&id) && lines[1].ends_with("n"), "{table}");
    assert!(!table.contains('\u{1b}'), "{table}");
}

#[test]
fn tasks_come_as_lines_and_one_that_is_refused_spoils_no_other() {
    let server = Server::start();
    let lines = "{\"payload\": 1, \"delay\": \"1h\"}\n\nnonsense\n{\"dealy\": \"1h\"}\n{\"payload\": 2, \"delay\": \"2h\"}";
    let said = server.run_with(&["task", "add", "q", "--ndjson", "-"], lines).with(1);
    let ids: Vec<&str> = said.out.lines().collect();
    assert_eq!(ids.len(), 2, "{said:#?}");
    let payload = |id: &str| server.run(&["task", "get", id, "--json"]).with(0).json()["payload"].clone();
    assert_eq!((payload(ids[0]), payload(ids[1])), (1.into(), 2.into()));
    assert!(said.err.contains("task 2: the body is not JSON"), "{said:#?}");
    assert!(
        said.err.contains("task 3: dealy: unknown field \"dealy\", did you mean \"delay\"?"),
        "{said:#?}"
    );
    assert_eq!(said.err.matches("unknown field").count(), 1, "once is enough: {said:#?}");
    assert!(said.err.contains("2 of 4 tasks were refused"), "{said:#?}");
    let said = server.run_with(&["task", "add", "q", "--ndjson", "-", "--json"], "{}\n").with(0);
    assert_eq!(said.json()["status"], 201);
    server.run(&["task", "add", "q", "--ndjson", "/no/such/file"]).with(2);
    server.run(&["task", "add", "q", "--ndjson", "-", "--lane", "l"]).with(2);
}

#[test]
fn whoever_adds_a_task_that_no_server_runs_is_told() {
    let server = Server::start();
    let said = server.run(&["task", "add", "q", "--handler", "typo"]).with(0);
    assert!(said.err.contains("no server runs handlers"), "{said:#?}");
    assert_eq!(server.run(&["task", "add", "q"]).with(0).err, "");
}

/// Whoever gives a task its name must not rule the terminal of whoever lists it.
#[test]
fn control_characters_are_written_out() {
    let server = Server::start();
    let id =
        server.run(&["task", "add", "mail", "--delay", "1h", "--name", "a\u{1b}]0;b\u{7}\u{9b}c"]).line();
    for said in [server.run(&["task", "list"]).with(0), server.run(&["task", "get", &id]).with(0)] {
        assert!(said.out.contains("a\\u{1b}]0;b\\u{7}\\u{9b}c"), "{said:#?}");
        assert!(said.out.chars().all(|letter| letter == '\n' || !letter.is_control()), "{said:#?}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_does_not_say_that_nothing_was_done() {
    let server = Server::start();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut adding = server.command(&["task", "add", "mail", "--delay", "1h"]);
    let added = adding.stdout(full).stderr(std::process::Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&added.stderr);
    assert_eq!(added.status.code(), Some(7), "{said}");
    assert!(said.contains("stdout"), "{said}");
    assert!(server.run(&["task", "list"]).with(0).out.contains("mail"), "it was added");
}

#[test]
fn a_queue_that_is_not_there_is_not_made_by_pausing_it() {
    let server = Server::start();
    server.run(&["queue", "pause", "typo"]).with(4);
    server.run(&["queue", "get", "typo"]).with(4);
}
