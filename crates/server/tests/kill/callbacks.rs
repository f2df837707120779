//! A result that somebody asked for is sent, whenever the server dies after the task has ended.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use futures_util::StreamExt;
use punctual_client::Client;
use punctual_client::wire::{AckItem, NewTask, Reserve, State, TaskQuery};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{Server, rounds};

const QUEUE: &str = "work";
const TASKS: usize = 400;
/// So many are acknowledged before the server is killed, in this round and those after it.
const ACKED: [usize; 5] = [1, 40, 7, 120, 13];

/// Who was told of which tasks.
type Told = watch::Sender<BTreeSet<String>>;

async fn receiver(told: Arc<Told>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("the machine can do this");
    let url = format!("http://{}", listener.local_addr().expect("it listens"));
    let take = async move |body: Bytes| {
        let sent: Value = serde_json::from_slice(&body).expect("it is JSON");
        assert_eq!((&sent["state"], &sent["queue"]), (&"succeeded".into(), &QUEUE.into()));
        told.send_modify(|told| _ = told.insert(sent["id"].as_str().unwrap_or_default().to_owned()));
    };
    let router = Router::new().fallback(axum::routing::post(take));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// Works until the server is gone.
async fn work(client: Client, acked: Arc<watch::Sender<usize>>) {
    let reserve = Reserve { max: Some(5), wait: Some(Duration::from_secs(5).into()), ..Reserve::default() };
    while let Ok(got) = client.reserve(QUEUE, &reserve).await {
        let ack = |task: punctual_client::wire::ReservedTask| AckItem {
            id: task.id,
            token: task.token,
            result: None,
        };
        let Ok(results) = client.ack_many(QUEUE, &got.into_iter().map(ack).collect::<Vec<_>>()).await else {
            break;
        };
        acked.send_modify(|acked| *acked += results.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_result_is_lost_between_the_end_of_a_task_and_its_callback() {
    let (data, told) = (tempfile::tempdir().unwrap(), Arc::new(Told::new(BTreeSet::new())));
    let url = receiver(told.clone()).await;
    for round in 0..rounds() {
        let server = Server::start(data.path());
        let task = NewTask { callback: Some(url.clone()), ..NewTask::new() };
        server.client.create_many(QUEUE, &vec![task; TASKS]).await.unwrap();
        let acked = Arc::new(watch::Sender::new(0));
        let worker = tokio::spawn(work(server.client.clone(), acked.clone()));
        acked.subscribe().wait_for(|acked| *acked >= ACKED[round % ACKED.len()]).await.unwrap();
        // What was just acknowledged has ended, and its result is hardly on its way.
        server.kill();
        worker.await.unwrap();
    }
    let server = Server::start(data.path());
    let query =
        TaskQuery { queue: Some(QUEUE.to_owned()), state: Some(State::Succeeded), ..TaskQuery::default() };
    let ended: BTreeSet<String> = server.client.tasks(query).map(|task| task.unwrap().id).collect().await;
    assert!(ended.len() >= rounds(), "{} ended", ended.len());
    let mut heard = told.subscribe();
    let all = heard.wait_for(|told| told.is_superset(&ended));
    let waited = tokio::time::timeout(Duration::from_secs(60), all).await.is_ok();
    let missing = ended.difference(&told.borrow()).count();
    assert!(waited, "{missing} of {} results were never sent", ended.len());
    server.kill();
}
