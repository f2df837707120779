//! Answers that flow: results of a stream of tasks, and events.

use futures_util::{StreamExt, TryStreamExt, stream};
use punctual_client::wire::*;

use crate::server::Server;

#[tokio::test]
async fn a_stream_of_tasks_has_a_result_for_each() {
    let server = Server::start().await;
    let tasks = stream::iter((0..1_000).map(|number| NewTask::new().payload(&number).unwrap()));
    let results = server.client().creating("stream-queue").minimal().stream(tasks).await.unwrap();
    let ids: Vec<String> =
        results.map_ok(|result| result.id().unwrap().to_owned()).try_collect().await.unwrap();
    assert_eq!(ids.len(), 1_000);
    assert!(ids.is_sorted());
    let tasks = &server.world.tasks().tasks;
    assert_eq!(tasks[&ids[41]].payload.as_ref().unwrap().text(), "41");
}

#[tokio::test]
async fn events_come_as_they_happen_and_unknown_kinds_are_left_out() {
    let server = Server::start().await;
    let query = EventQuery { queue: Some("mail".to_owned()), kind: Some(EventKind::LaneBlocked) };
    let events = server.client().events(&query).await.unwrap();
    let events: Vec<Event> = events.map(Result::unwrap).collect().await;
    let ids: Vec<&str> = events.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids, ["1", "3"]);
    assert_eq!(events[0].kind, EventKind::LaneBlocked);
    assert_eq!(events[0].data.queue.as_deref(), Some("mail"));
}
