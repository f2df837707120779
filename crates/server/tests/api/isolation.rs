//! Others' trouble: a host that never answers, and a paused queue, hold up nobody else.

use http::StatusCode;
use punctual_client::wire::{Http, NewTask};
use tokio::net::TcpListener;

use super::world::{Target, World, secs};

const HEALTHY: usize = 99;
/// So many a host may have under way that has not answered yet.
const UNANSWERED: usize = 4;
/// More than one host may have under way, and than may wait for it in memory.
const TO_THE_HANGING_ONE: usize = 200;

/// A host that takes every connection and says nothing. Tells how many came.
async fn hanging() -> (String, tokio::sync::watch::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("the machine can do this");
    let url = format!("http://{}/", listener.local_addr().expect("the machine can do this"));
    let (came, seen) = tokio::sync::watch::channel(0);
    tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            silent.push(connection);
            came.send_replace(silent.len());
        }
    });
    (url, seen)
}

#[tokio::test]
async fn a_host_that_hangs_holds_up_no_other_of_its_queue() {
    let world = World::new().await;
    let (hanging, mut came) = hanging().await;
    let hopeless = NewTask::new().http(Http { timeout: Some(secs(600).into()), ..Http::post(&hanging) });
    let made = world.client.creating("calls").many(&vec![hopeless; TO_THE_HANGING_ONE]).await.unwrap();
    assert!(made.iter().all(|made| made.id().is_ok()));
    came.wait_for(|came| *came == UNANSWERED).await.unwrap();
    let mut healthy = Vec::new();
    for _ in 0..HEALTHY {
        healthy.push(Target::answering(StatusCode::OK).await);
    }
    let calls = healthy.iter().map(|host| NewTask::new().http(Http::post(&host.url)));
    let made = world.client.creating("calls").many(&calls.collect::<Vec<_>>()).await.unwrap();
    assert!(made.iter().all(|made| made.id().is_ok()));
    for host in &mut healthy {
        host.next().await;
    }
    assert_eq!(*came.borrow(), UNANSWERED, "and it still has as many as such a host may have, and no more");
}

#[tokio::test]
async fn a_paused_queue_full_of_due_tasks_holds_up_no_other() {
    let world = World::new().await;
    world.client.create("paused", &NewTask::new()).await.unwrap();
    world.client.pause_queue("paused").await.unwrap();
    for _ in 0..20 {
        let made =
            world.client.creating("paused").minimal().many(&vec![NewTask::new(); 1_000]).await.unwrap();
        assert!(made.iter().all(|made| made.id().is_ok()));
    }
    let mut host = Target::answering(StatusCode::OK).await;
    world.client.create("live", &NewTask::new().http(Http::post(&host.url))).await.unwrap();
    host.next().await;
    let nothing = punctual_client::wire::Reserve { max: Some(1), ..Default::default() };
    assert_eq!(world.client.reserve("paused", &nothing).await.unwrap(), []);
}
