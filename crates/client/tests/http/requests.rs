//! Each request of the client is understood, and its answer too.

use std::time::Duration;

use futures_util::TryStreamExt;
use punctual_client::wire::*;
use punctual_client::{Client, Error};

use crate::server::Server;

#[tokio::test]
async fn a_task_is_made_looked_at_changed_and_cancelled() {
    let server = Server::start().await;
    let client = server.client_with(|builder| builder.key("sesame"));
    assert!(client.is_ready().await.unwrap());

    let new = NewTask::new().payload(&[1, 2]).unwrap().after(Duration::from_secs(90)).lane("a").name("n");
    let made = client.create("mail", &new).await.unwrap();
    assert!(made.is_new);
    assert_eq!(made.task.state, State::Scheduled);
    let id = made.task.id;

    assert_eq!(client.task(&id).await.unwrap().payload, None);
    assert_eq!(client.full_task(&id).await.unwrap().payload, Some(Json::of(&[1, 2]).unwrap()));

    let patch = Patch { callback: Change::Clear, timeout: Span::from_secs(5).into(), ..Patch::default() };
    let patched = client.patch_if(&id, 1, &patch).await.unwrap();
    assert_eq!((patched.revision, patched.timeout), (2, Some(Span::from_secs(5))));
    let outdated = client.patch_if(&id, 1, &patch).await.unwrap_err();
    assert_eq!(outdated.code(), Some(code::TASK_CHANGED));
    assert_eq!(client.patch(&id, &Patch::default()).await.unwrap().revision, 3);

    assert_eq!(client.run(&id).await.unwrap().id, id);
    client.cancel(&id).await.unwrap();
    assert_eq!(client.cancel(&id).await.unwrap_err().code(), Some(code::TASK_ENDED));
    assert_eq!(client.retry(&id).await.unwrap().state, State::Scheduled);
    assert_eq!(client.task("nobody").await.unwrap_err().code(), Some(code::TASK_NOT_FOUND));

    let asked = server.asked("");
    assert!(asked.iter().all(|asked| asked.headers["authorization"] == "Bearer sesame"));
}

#[tokio::test]
async fn a_batch_has_a_result_for_each() {
    let server = Server::start().await;
    let client = server.client();
    let bad = NewTask { at: Some("2026-11-16T09:00".parse().unwrap()), ..NewTask::new() };
    let results = client.create_many("mail", &[NewTask::new(), bad, NewTask::new()]).await.unwrap();
    let ids: Vec<_> = results.iter().map(|result| result.id().ok()).collect();
    assert_eq!(ids, [Some("0001"), None, Some("0002")]);
    assert_eq!(results[1].problem.as_ref().unwrap().errors[0].field, "at");

    let minimal = client.creating("mail").minimal().idempotency_key("once");
    assert!(minimal.many(&[NewTask::new()]).await.unwrap()[0].task.is_none());
    assert_eq!(minimal.one_id(&NewTask::new()).await.unwrap(), "0004");
    assert_eq!(server.asked("/tasks").last().unwrap().headers["idempotency-key"], "once");
}

#[tokio::test(start_paused = true)]
async fn a_result_is_waited_for() {
    let server = Server::start().await;
    let client = server.client();
    let id = client.create("mail", &NewTask::new()).await.unwrap().task.id;
    // No end in sight: the state, after the wait.
    let result = client.result(&id, Duration::from_secs(30)).await.unwrap();
    assert_eq!(result, TaskResult { state: State::Scheduled, result: None, error: None });

    let waiting = tokio::spawn({
        let (client, id) = (client.clone(), id.clone());
        async move { client.result(&id, Duration::from_secs(3600)).await }
    });
    server.until(|server| server.asked("wait=PT1H").len() == 1).await;
    let reserved = client.reserve("mail", &Reserve::default()).await.unwrap();
    let ack = Ack { token: reserved[0].token.clone(), result: Some(Json::of("sent").unwrap()) };
    assert_eq!(client.ack(&id, &ack).await.unwrap().state, State::Succeeded);
    let result = waiting.await.unwrap().unwrap();
    assert_eq!(result.result.unwrap().read::<String>().unwrap(), "sent");
}

#[tokio::test]
async fn tasks_are_listed_page_by_page_and_changed_by_filter() {
    let server = Server::start().await;
    let client = server.client();
    let new: Vec<NewTask> = (0..25).map(|_| NewTask::new().name("a&b=c d+e/ü")).collect();
    client.create_many("mail", &new).await.unwrap();
    client.create("other", &NewTask::new()).await.unwrap();

    let filter = Filter { name: Some("a&b=c d+e/ü".to_owned()), ..Filter::default() };
    let query = TaskQuery { limit: Some(10), ..TaskQuery::from(filter) };
    assert_eq!(client.list(&query).await.unwrap().next.as_deref(), Some("0010"));
    let all: Vec<Task> = client.tasks(query).try_collect().await.unwrap();
    assert_eq!(all.len(), 25);
    assert_eq!(server.asked("GET /v1/tasks").len(), 4);

    let filter = Filter { queue: Some("mail".to_owned()), ..Filter::default() };
    let by_filter = ByFilter { filter: filter.clone(), dry_run: true, ..ByFilter::default() };
    assert_eq!(client.cancel_by_filter(&by_filter).await.unwrap().changed, 0);
    let by_filter = ByFilter { dry_run: false, ..by_filter };
    assert_eq!(client.cancel_by_filter(&by_filter).await.unwrap().changed, 25);
    assert_eq!(server.world.tasks().count(State::Cancelled), 25);
    assert_eq!(client.retry_by_filter(&by_filter).await.unwrap().matched, 25);
    assert_eq!(client.run_by_filter(&by_filter).await.unwrap().matched, 25);
    let moved = MoveByFilter { filter, delay: Some(Span::from_secs(60)), ..MoveByFilter::default() };
    assert_eq!(client.move_by_filter(&moved).await.unwrap().matched, 25);
}

#[tokio::test]
async fn queues_lanes_and_notifications() {
    let server = Server::start().await;
    let client = server.client();
    let settings = QueueSettings {
        concurrency: 5.into(),
        target: QueueTarget::Http(HttpTarget {
            url: "https://example.com".to_owned(),
            ..HttpTarget::default()
        })
        .into(),
        secrets: vec!["whsec_1".to_owned(), "whsec_2".to_owned()].into(),
        ..QueueSettings::default()
    };
    let queue = client.put_queue("mail", &settings).await.unwrap();
    assert_eq!((queue.concurrency, queue.secrets), (Some(5), 2));
    assert_eq!(client.patch_queue("mail", &QueueSettings::default()).await.unwrap().priority, 5);
    assert_eq!(client.queue("mail").await.unwrap().name, "mail");
    assert_eq!(client.queues(&PageQuery::default()).await.unwrap().queues.len(), 1);
    assert_eq!(client.queue_stats("mail").await.unwrap().queue, "mail");
    assert!(client.pause_queue("mail").await.unwrap().paused);
    assert!(!client.resume_queue("mail").await.unwrap().paused);
    assert_eq!(client.purge_queue("mail").await.unwrap().changed, 3);
    client.delete_queue("mail").await.unwrap();
    assert_eq!(client.delete_queue("full").await.unwrap_err().code(), Some(code::QUEUE_NOT_EMPTY));

    let query = LaneQuery { queue: Some("mail".to_owned()), blocked: Some(true), ..LaneQuery::default() };
    assert!(client.lanes(&query).await.unwrap().lanes[0].blocked);
    let lane = LaneName { queue: "mail".to_owned(), lane: "a".to_owned() };
    assert_eq!(client.release_lane(&lane).await.unwrap().state, State::Scheduled);
    assert_eq!(client.skip_lane(&lane).await.unwrap().state, State::Cancelled);

    let new = NewNotification {
        url: "https://example.com".to_owned(),
        events: vec![EventKind::TaskDead, EventKind::Lateness],
        lateness_over: Some(Span::from_secs(5)),
        secret: Some("whsec_1".to_owned()),
        queue: None,
    };
    assert!(client.put_notification("ops", &new).await.unwrap().signed);
    assert_eq!(client.notification("ops").await.unwrap().name, "ops");
    assert!(client.notifications(&PageQuery::default()).await.unwrap().notifications.is_empty());
    client.delete_notification("ops").await.unwrap();
}

#[tokio::test]
async fn reports_one_by_one_and_in_batches() {
    let server = Server::start().await;
    let client = server.client();
    client.create_many("mail", &vec![NewTask::new(); 12]).await.unwrap();
    assert_eq!(client.peek("mail", 2).await.unwrap().len(), 2);
    let reserve = Reserve { worker: Some("w".to_owned()), max: Some(20), ..Reserve::default() };
    let mut tasks = client.reserve("mail", &reserve).await.unwrap().into_iter();
    let mut next = || tasks.next().map(|task| (task.id, task.token)).expect("there are enough");

    let (id, token) = next();
    let touched = client.touch(&id, &Touch { token: token.clone(), ttr: Some(Span::from_secs(9)) }).await;
    assert!(touched.is_ok());
    assert_eq!(
        client.ack(&id, &Ack { token: token.clone(), result: None }).await.unwrap().state,
        State::Succeeded
    );
    let late = client.ack(&id, &Ack { token, result: None }).await.unwrap_err();
    assert_eq!(late.code(), Some(code::TOKEN_LATE));
    let (id, token) = next();
    let nack = Nack { token, error: Some("no".to_owned()), delay: Some(Span::from_secs(5)) };
    assert_eq!(client.nack(&id, &nack).await.unwrap().state, State::Retrying);
    let (id, token) = next();
    assert_eq!(client.release(&id, &Release { token }).await.unwrap().state, State::Scheduled);
    let (id, token) = next();
    assert_eq!(client.bury(&id, &Bury { token, error: None }).await.unwrap().state, State::Dead);
    assert_eq!(client.kick(&id).await.unwrap().state, State::Scheduled);

    let (ack, nack, touch, release, bury) = (next(), next(), next(), next(), next());
    let ack = Ack { token: ack.1, result: None }.of(ack.0);
    let results = client.ack_many("mail", &[ack.clone(), ack]).await.unwrap();
    assert_eq!(results[0].state, Some(State::Succeeded));
    assert_eq!(results[1].problem.as_ref().unwrap().code, code::TOKEN_LATE);
    let nack = Nack { token: nack.1, ..Nack::default() }.of(nack.0);
    assert_eq!(client.nack_many("mail", &[nack]).await.unwrap()[0].status, 200);
    let touch = Touch { token: touch.1, ttr: None }.of(touch.0);
    assert_eq!(client.touch_many("mail", &[touch]).await.unwrap()[0].status, 200);
    let release = Release { token: release.1 }.of(release.0);
    assert_eq!(client.release_many("mail", &[release]).await.unwrap()[0].status, 200);
    let bury = Bury { token: bury.1, error: None }.of(bury.0);
    assert_eq!(client.bury_many("mail", std::slice::from_ref(&bury)).await.unwrap()[0].status, 200);
    let kick = Kick::default().of(bury.id);
    assert_eq!(client.kick_many("mail", &[kick]).await.unwrap()[0].state, Some(State::Scheduled));
}

#[tokio::test]
async fn a_call_is_scheduled_in_four_fields() {
    let server = Server::start().await;
    let call: CallAt = serde_json::from_str(
        r#"{"url": "https://example.com", "verb": "GET", "body": null, "executionDateTime": "2026-11-16T09:00:00",
            "timezone": "Europe/Paris"}"#,
    )
    .unwrap();
    let scheduled = server.client().schedule_call(&call).await.unwrap();
    assert_eq!(scheduled.execution_date_time.to_string(), "2026-11-16T08:00:00.000000Z");
    assert_eq!(scheduled.status, CallStatus::ToDo);
}

#[tokio::test]
async fn names_cannot_leave_their_place_in_the_path() {
    let server = Server::start().await;
    let client = server.client();
    for name in ["a/b", "..", "a?b#c", "ü %", "a:run"] {
        let _ = client.task(name).await;
    }
    let lines: Vec<String> = server.asked("").into_iter().map(|asked| asked.line).collect();
    assert_eq!(
        lines,
        [
            "GET /v1/tasks/a%2Fb",
            "GET /v1/tasks/%2E%2E",
            "GET /v1/tasks/a%3Fb%23c",
            "GET /v1/tasks/%C3%BC%20%25",
            "GET /v1/tasks/a%3Arun"
        ]
    );
}

#[test]
fn addresses_that_cannot_be_meant_are_refused() {
    for url in ["", "127.0.0.1:8700", "ftp://example.com", "http://example.com/?a=b", "/v1"] {
        assert!(matches!(Client::new(url), Err(Error::Impossible(_))), "{url}");
    }
    assert_eq!(Client::new("https://example.com").is_ok(), cfg!(feature = "tls"));
    assert!(Client::new("http://127.0.0.1:8700/punctual/").is_ok());
}
