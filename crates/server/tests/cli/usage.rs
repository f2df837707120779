//! What goes wrong before or instead of an answer: each has its exit code, and says what to do.

use std::net::TcpListener;

use crate::program::{Server, run};

#[test]
fn a_server_that_is_not_there_is_3_and_says_how_to_start_one() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let said = run(&["task", "list", "--server", &url]).with(3);
    assert!(said.err.contains(&format!("no server at {url}")), "{said:#?}");
    assert!(said.err.contains("punctual serve"), "{said:#?}");
    let said = run(&["task", "list", "--server", &url, "--json"]).with(3);
    let error: serde_json::Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(error["code"], "not_reached");
}

#[test]
fn wrong_usage_is_2() {
    run(&["task", "list", "--server", "nonsense"]).with(2);
    run(&["task", "fly"]).with(2);
    run(&["worker", "--queue", "a"]).with(2);
    run(&["task", "cancel"]).with(2);
    let said = run(&["task", "add", "mail", "--at", "soon"]).with(2);
    assert!(said.err.contains("tomorrow 9:00 Europe/Paris"), "{said:#?}");
    let said = run(&["task", "add", "mail", "--payload", "hello"]).with(2);
    assert!(said.err.contains("--text"), "{said:#?}");
}

/// They were asked of the server, which has other things at such paths, and answered as if it were too old.
#[test]
fn an_empty_id_or_name_is_a_variable_that_is_not_set() {
    for typed in [
        &["task", "get", ""][..],
        &["task", "result", ""],
        &["task", "cancel", ""],
        &["task", "move", "--at", "in 1h", "x", ""],
        &["task", "run", ""],
        &["task", "retry", ""],
        &["task", "cancel", "--queue", "a", "--lane", ""],
        &["task", "list", "--name", ""],
        &["task", "list", "--queue", ""],
        &["task", "add", ""],
        &["queue", "get", ""],
        &["queue", "set", ""],
        &["queue", "pause", ""],
        &["queue", "resume", ""],
        &["queue", "purge", "", "--yes"],
        &["queue", "stats", ""],
        &["queue", "delete", ""],
        &["lane", "list", "--queue", ""],
        &["lane", "release", "", "l"],
        &["lane", "skip", "q", ""],
        &["notification", "get", ""],
        &["notification", "delete", ""],
        &["key", "rotate", ""],
        &["key", "revoke", ""],
        &["worker", "--queue", "", "--", "cat"],
        &["bench", "--queue", ""],
    ] {
        let said = run(typed).with(2);
        assert!(
            said.err.contains("it is empty: is a variable of your shell not set?"),
            "{typed:?}: {said:#?}"
        );
    }
}

/// The same was sent again without a time, and there were two tasks.
#[test]
fn the_help_says_what_a_unique_key_counts_with() {
    let help = run(&["task", "add", "--help"]).with(0).out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "Give a fixed time with --at, too: now, and so long from now, are another time each time";
    assert!(help.contains(told), "{help}");
}

#[test]
fn a_worker_without_hands_is_refused() {
    let said = run(&["worker", "--queue", "q", "--concurrency", "0", "--", "cat"]).with(2);
    assert!(said.err.contains("--concurrency") && said.err.contains("0 is not in 1.."), "{said:#?}");
}

#[test]
fn a_retry_policy_that_is_none_is_told_which_there_are() {
    let names = "default, webhooks, pagerduty, schedule";
    for command in [&["task", "add", "q"][..], &["queue", "set", "q"]] {
        for (policy, told) in [
            ("sometimes", names),
            ("webhook", "did you mean \"webhooks\"?"),
            (r#"{"atempts": 3}"#, "did you mean \"attempts\"?"),
            ("{atempts: 3}", "a rule is JSON, such as"),
        ] {
            let said = run(&[command, &["--retry", policy]].concat()).with(2);
            assert!(said.err.contains(told) && said.err.contains("--retry"), "{said:#?}");
        }
    }
}

#[test]
fn what_is_not_there_is_4() {
    let server = Server::start();
    server.run(&["queue", "get", "nothing"]).with(4);
    let id = server.run(&["task", "add", "mail", "--at", "in 1h"]).line();
    let other: String = id.chars().rev().collect();
    server.run(&["task", "get", &other]).with(4);
}

#[test]
fn a_server_announces_itself_and_stops_when_told() {
    let mut server = Server::start();
    assert!(server.announcement.contains("any port of this machine"), "{}", server.announcement);
    assert!(server.announcement.contains(&format!("curl {}/v1/queues/hello/tasks", server.url)));
    server.run(&["check"]).with(0);
    // A connection that nobody uses must not keep it.
    let idle = std::net::TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    assert_eq!(server.stop(), 0);
    drop(idle);
    server.run(&["check"]).with(3);
}

#[test]
fn two_servers_do_not_share_a_folder() {
    let server = Server::start();
    let said = run(&["serve", "--listen", "127.0.0.1:0", "--data", &server.data()]).with(8);
    assert!(said.err.contains("in use by process"), "{said:#?}");
    let address = server.url.trim_start_matches("http://");
    let said = run(&["serve", "--listen", address, "--data", &server.path("other")]).with(1);
    assert!(said.err.contains("is in use"), "{said:#?}");
}

#[test]
fn completions_and_version_need_no_server() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(run(&["completions", shell]).with(0).out.contains("punctual"));
    }
    assert_eq!(run(&["version"]).line(), format!("punctual {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(run(&["version", "--json"]).with(0).json()["version"], env!("CARGO_PKG_VERSION"));
    assert!(run(&["--help"]).with(0).out.contains("Exit codes:"));
}
