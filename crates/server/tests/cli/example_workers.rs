//! The example workers in other languages do their work: real interpreters against a real server.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::program::{Server, read_until, tell};

#[test]
fn the_worker_in_python_works() {
    works(Command::new("python3").arg(example("python/worker.py")));
}

#[test]
fn the_worker_in_typescript_works() {
    let found = Command::new(root().join("scripts/node")).stderr(Stdio::inherit()).output().unwrap();
    assert!(found.status.success(), "there is no Node that runs TypeScript, and none can be installed");
    let node = String::from_utf8(found.stdout).unwrap();
    works(Command::new(node.trim()).arg(example("typescript/worker.ts")));
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn example(path: &str) -> std::path::PathBuf {
    root().join("examples/workers").join(path)
}

/// It acks with a result, nacks with a delay, buries, touches what takes long, and stops in good order.
fn works(worker: &mut Command) {
    let server = Server::start();
    let greeted = add(&server, &json!({"greet": "Ana"}));
    let later = add(&server, &json!({"greet": "nobody"}));
    let hopeless = add(&server, &json!({"sing": "loudly"}));
    let long = add(&server, &json!({"greet": "Bo", "takes_s": 2.5}));
    let mut worker = start(worker, &server);
    assert_eq!(ended(&server, &greeted)["result"], json!({"greeting": "Hello, Ana!"}));
    assert_eq!(ended(&server, &later)["state"], "succeeded");
    assert_eq!(look(&server, &later)["attempts"], 2, "it was to be tried again");
    assert_eq!(ended(&server, &hopeless)["state"], "dead");
    assert_eq!(look(&server, &hopeless)["last_error"], "there is nobody to greet");
    assert_eq!(ended(&server, &long)["state"], "succeeded");
    assert_eq!(look(&server, &long)["attempts"], 1, "it was touched, so that nobody else got it");
    stops_in_good_order(&server, &mut worker);
}

/// Told to stop, it finishes what it has begun, and takes nothing more.
fn stops_in_good_order(server: &Server, worker: &mut Child) {
    let begun = add(server, &json!({"greet": "Cy", "takes_s": 1.5}));
    while look(server, &begun)["state"] != "reserved" {}
    tell(worker, "TERM");
    let said = read_until(worker.stdout.as_mut().unwrap(), "stopped\n");
    assert!(said.contains("stopping: what has begun is finished first"), "{said}");
    assert!(worker.wait().unwrap().success());
    let left = add(server, &json!({"greet": "Di"}));
    assert_eq!(look(server, &begun)["state"], "succeeded");
    assert_eq!(look(server, &left)["state"], "scheduled");
}

/// With a time to run that is shorter than the longest task.
fn start(worker: &mut Command, server: &Server) -> Child {
    let options = ["--server", &server.url, "--queue", "work", "--ttr", "1s"];
    let mut worker = worker.args(options).stdout(Stdio::piped()).spawn().unwrap();
    read_until(worker.stdout.as_mut().unwrap(), "working on work\n");
    worker
}

fn add(server: &Server, payload: &Value) -> String {
    server.run(&["task", "add", "work", "--payload", &payload.to_string()]).line()
}

fn ended(server: &Server, id: &str) -> Value {
    let said = server.run(&["task", "result", id, "--wait", "30s", "--json"]);
    said.json()
}

fn look(server: &Server, id: &str) -> Value {
    server.run(&["task", "get", id, "--json"]).with(0).json()
}
