//! `kill -9` of a real server under load: nothing that was acknowledged is lost.

mod callbacks;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use punctual_client::Client;
use punctual_client::wire::{NewTask, TaskQuery};
use tokio::sync::watch;
use tokio::task::JoinSet;

const PRODUCERS: usize = 4;

/// Rounds of load and kill: five, or as many as `PUNCTUAL_KILL_ROUNDS` says.
fn rounds() -> usize {
    std::env::var("PUNCTUAL_KILL_ROUNDS").map_or(5, |rounds| rounds.parse().expect("it is a number"))
}

struct Server {
    process: Child,
    client: Client,
}

impl Server {
    fn start(data: &Path) -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_punctual"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .stderr(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary is there");
        let said = process.stdout.take().expect("it was asked for");
        let mut lines = BufReader::new(said).lines();
        let url = lines.find_map(|line| {
            let line = line.ok()?;
            line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
        });
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let client = Client::new(&url.expect("it says where it listens")).expect("that is a URL");
        Server { process, client }
    }

    /// As rudely as possible.
    fn kill(mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it is ours");
    }
}

/// Makes tasks until the server is gone, and says which were acknowledged.
async fn produce(client: Client, producer: usize, made: Arc<watch::Sender<usize>>) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for size in [1, 7, 100].into_iter().cycle() {
        let task = NewTask::new().after(Duration::from_secs(86_400)).name(format!("p{producer}"));
        match client.create_many("q", &vec![task; size]).await {
            Ok(results) => {
                acknowledged.extend(results.iter().filter_map(|result| Some(result.id().ok()?.to_owned())));
                made.send_modify(|made| *made += results.len());
            }
            Err(_) => break,
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_a_kill() {
    let data = tempfile::tempdir().unwrap();
    let mut acknowledged: BTreeSet<String> = BTreeSet::new();
    for round in 0..rounds() {
        let server = Server::start(data.path());
        let made = Arc::new(watch::Sender::new(0));
        let mut producers = JoinSet::new();
        for producer in 0..PRODUCERS {
            producers.spawn(produce(server.client.clone(), producer, made.clone()));
        }
        // Requests are under way when it dies, never at the same point.
        let enough = 300 * (round + 1) + 37 * round;
        made.subscribe().wait_for(|made| *made >= enough).await.unwrap();
        server.kill();
        while let Some(made) = producers.join_next().await {
            acknowledged.extend(made.unwrap());
        }
    }
    let server = Server::start(data.path());
    let tasks = server.client.tasks(TaskQuery { limit: Some(1_000), ..TaskQuery::default() });
    let there: BTreeSet<String> = tasks.map(|task| task.unwrap().id).collect().await;
    server.kill();
    let lost: Vec<&String> = acknowledged.difference(&there).collect();
    assert!(!acknowledged.is_empty() && lost.is_empty(), "{} of {} lost", lost.len(), acknowledged.len());
}
