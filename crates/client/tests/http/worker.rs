//! The worker loop: hands, reports, time to run, and how it stops.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use punctual_client::wire::*;
use punctual_client::{Error, Failure, Job, Summary, Worker};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::server::{Fault, Server};

/// A worker that runs, and what stops it.
struct Working {
    stop: oneshot::Sender<()>,
    run: JoinHandle<Result<Summary, Error>>,
}

impl Working {
    async fn stop(self) -> Summary {
        let _ = self.stop.send(());
        self.run.await.expect("the worker does not panic").expect("the worker does not fail")
    }
}

fn start<F, J, R>(worker: Worker, job: F) -> Working
where
    F: Fn(Job) -> J + Send + Sync + 'static,
    J: Future<Output = Result<R, Failure>> + Send + 'static,
    R: serde::Serialize + Send + 'static,
{
    let (stop, stopped) = oneshot::channel();
    let run = tokio::spawn(worker.run(job, async { drop(stopped.await) }));
    Working { stop, run }
}

async fn server_with(tasks: usize, ttr: Span) -> Server {
    let server = Server::start().await;
    server.world.tasks().ttr = Some(ttr);
    let new: Vec<NewTask> =
        (0..tasks).map(|n| NewTask { payload: Json::of(&n).ok(), ..NewTask::new() }).collect();
    server.client().create_many("mail", &new).await.expect("they can be made");
    server
}

fn worker(server: &Server) -> Worker {
    Worker::new(server.client(), "mail")
}

fn bodies<T: serde::de::DeserializeOwned>(server: &Server, line: &str) -> Vec<T> {
    let asked = server.asked(line).into_iter();
    asked.map(|asked| serde_json::from_slice(&asked.body).expect("a body")).collect()
}

#[tokio::test(start_paused = true)]
async fn tasks_are_done_by_as_many_hands_as_there_are() {
    let server = server_with(50, Span::from_secs(60)).await;
    let (busy, busiest) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let job = {
        let (busy, busiest) = (busy.clone(), busiest.clone());
        move |job: Job| {
            let (busy, busiest) = (busy.clone(), busiest.clone());
            async move {
                busiest.fetch_max(busy.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                busy.fetch_sub(1, Ordering::Relaxed);
                Ok(job.payload::<usize>()? * 2)
            }
        }
    };
    let working = start(worker(&server).name("w").concurrency(8).batch(5), job);
    server.until(|server| server.world.tasks().count(State::Succeeded) == 50).await;
    let summary = working.stop().await;
    assert_eq!(summary, Summary { succeeded: 50, ..Summary::default() });
    assert!(busiest.load(Ordering::Relaxed) <= 8);

    let asked: Vec<Reserve> = bodies(&server, "/reserve");
    assert!(asked.iter().all(|reserve| reserve.max.is_some_and(|max| (1..=5).contains(&max))), "{asked:?}");
    assert_eq!(asked[0].worker.as_deref(), Some("w"));
    let acks: Vec<Batch<AckItem>> = bodies(&server, "mail/ack");
    assert!(acks.len() < 50, "{} requests for 50 results", acks.len());
    assert_eq!(server.world.tasks().tasks["0021"].result.as_ref().unwrap().text(), "40");
}

#[tokio::test(start_paused = true)]
async fn failures_are_reported_as_what_they_are() {
    let server = server_with(4, Span::from_secs(60)).await;
    let job = |job: Job| async move {
        match (job.payload::<usize>()?, job.attempt()) {
            (0, 1) => Err(Failure::new("not yet").not_before(Duration::from_secs(5))),
            (1, _) => Err(Failure::new("never").give_up()),
            (2, 1) => panic!("as the test wants it"),
            (3, 1) => Err("three".parse::<u32>().unwrap_err().into()),
            _ => Ok(()),
        }
    };
    let working = start(worker(&server).concurrency(4), job);
    server.until(|server| server.world.tasks().count(State::Succeeded) == 3).await;
    let summary = working.stop().await;
    assert_eq!(summary, Summary { succeeded: 3, failed: 3, given_up: 1, ..Summary::default() });
    assert_eq!(server.world.tasks().state("0002"), State::Dead);

    let nacks: Vec<Batch<NackItem>> = bodies(&server, "/nack");
    let mut nacks: Vec<NackItem> = nacks.into_iter().flat_map(|batch| batch.tasks).collect();
    nacks.sort_by(|a, b| a.id.cmp(&b.id));
    let errors: Vec<_> = nacks.iter().map(|nack| nack.error.as_deref().unwrap()).collect();
    assert_eq!(errors, ["not yet", "the job panicked", "invalid digit found in string"]);
    assert_eq!(nacks[0].delay, Some(Span::from_secs(5)));
    assert_eq!(
        server.world.tasks().tasks["0001"].result,
        None,
        "nothing came out, and nothing is said of it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_job_gets_more_time_at_half_of_its_time() {
    let server = server_with(1, Span::from_secs(10)).await;
    let go_on = Arc::new(Semaphore::new(0));
    let working = start(worker(&server).ttr(Duration::from_secs(10)), when_told(&go_on));
    let began = paused_now();
    server.until(|server| server.asked("/touch").len() == 5).await;
    assert_eq!((paused_now() - began).as_secs(), 25);
    go_on.add_permits(1);
    server.until(|server| server.world.tasks().count(State::Succeeded) == 1).await;
    assert_eq!(working.stop().await, Summary { succeeded: 1, ..Summary::default() });
}

/// A job that ends when it is told to.
fn when_told(
    go_on: &Arc<Semaphore>,
) -> impl Fn(Job) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync + 'static {
    let go_on = go_on.clone();
    move |_| {
        let go_on = go_on.clone();
        Box::pin(async move {
            go_on.acquire().await?.forget();
            Ok(())
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "the test looks how far the paused clock has moved")]
fn paused_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// Says when it is dropped.
struct Told(Option<oneshot::Sender<()>>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.take().map(|told| told.send(()));
    }
}

/// A job that never ends the first time, and says when it is stopped.
fn endless_at_first()
-> (impl Fn(Job) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync + 'static, oneshot::Receiver<()>) {
    let (told, stopped) = oneshot::channel();
    let told = std::sync::Mutex::new(Some(told));
    let job = move |job: Job| {
        let told = Told(told.lock().expect("no panic").take().filter(|_| job.attempt() == 1));
        Box::pin(async move {
            if job.attempt() == 1 {
                pending::<()>().await;
            }
            drop(told);
            Ok(())
        }) as BoxFuture<'static, _>
    };
    (job, stopped)
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_token_is_late_is_stopped_and_dropped() {
    let server = server_with(1, Span::from_secs(10)).await;
    let (job, stopped) = endless_at_first();
    let working = start(worker(&server), job);
    server.until(|server| server.world.tasks().count(State::Reserved) == 1).await;
    server.world.tasks().take_away("0001");
    stopped.await.unwrap();
    // The hand is free, and takes the task again.
    server.until(|server| server.world.tasks().count(State::Succeeded) == 1).await;
    assert_eq!(working.stop().await, Summary { succeeded: 1, late: 1, ..Summary::default() });
    assert_eq!(server.asked("/nack").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_time_cannot_be_prolonged_is_stopped_when_it_is_over() {
    let server = server_with(1, Span::from_secs(10)).await;
    for _ in 0..100 {
        server.fail("/touch", Fault::Refuse(503, "stopped"));
    }
    let (job, stopped) = endless_at_first();
    let working = start(worker(&server), job);
    stopped.await.unwrap();
    assert!(server.asked("/touch").len() > 2, "it was tried again and again");
    assert_eq!(working.stop().await, Summary { late: 1, ..Summary::default() });
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_asked_again() {
    let server = server_with(3, Span::from_secs(60)).await;
    server.is_down.store(true, Ordering::Relaxed);
    let connects = server.world.changed.subscribe();
    let before = *connects.borrow();
    let working = start(worker(&server).concurrency(2), |_| async { Ok(()) });
    server.until(|server| *server.world.changed.borrow() >= before + 5).await;
    server.fail("/reserve", Fault::Refuse(503, "stopped"));
    server.fail("mail/ack", Fault::Refuse(503, "stopped"));
    server.fail("mail/ack", Fault::Refuse(500, "broken"));
    server.fail("mail/ack", Fault::Hang);
    server.is_down.store(false, Ordering::Relaxed);
    server.until(|server| server.world.tasks().count(State::Succeeded) == 3).await;
    assert_eq!(working.stop().await, Summary { succeeded: 3, ..Summary::default() });
}

/// A worker said nothing for as long as it had no server.
#[tokio::test(start_paused = true)]
async fn whoever_wants_to_know_hears_once_that_a_server_is_lost_and_once_that_it_is_back() {
    let server = server_with(0, Span::from_secs(60)).await;
    server.is_down.store(true, Ordering::Relaxed);
    let (tell, mut told) = mpsc::channel(10);
    let worker = worker(&server).on_contact(move |news| tell.try_send(news).expect("there is room"));
    let before = *server.world.changed.borrow();
    let working = start(worker, |_| async { Ok(()) });
    assert!(matches!(told.recv().await, Some(Err(Error::Unreachable(_)))));
    server.until(|server| *server.world.changed.borrow() >= before + 10).await;
    server.is_down.store(false, Ordering::Relaxed);
    // Nothing is due, and the server is not made to wait for a task before it says that it is there.
    assert!(matches!(told.recv().await, Some(Ok(()))));
    let first: Reserve = bodies(&server, "/reserve").remove(0);
    assert_eq!(first.wait, Some(Span::from_secs(0)));
    working.stop().await;
    assert!(told.recv().await.is_none(), "once is enough");
}

#[tokio::test(start_paused = true)]
async fn a_report_whose_answer_was_lost_is_made_again_and_does_no_harm() {
    let server = server_with(1, Span::from_secs(60)).await;
    server.fail("mail/ack", Fault::LoseAnswer);
    let working = start(worker(&server), |_| async { Ok(()) });
    server.until(|server| server.asked("mail/ack").len() == 2).await;
    // The server says that the second is late, and it is: the first was heard.
    assert_eq!(working.stop().await, Summary { late: 1, ..Summary::default() });
    assert_eq!(server.world.tasks().state("0001"), State::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn what_was_begun_is_finished_and_nothing_else_is_begun() {
    let server = server_with(1, Span::from_secs(60)).await;
    let go_on = Arc::new(Semaphore::new(0));
    let working = start(worker(&server).concurrency(2), when_told(&go_on));
    // One hand is busy, the other waits for a task.
    server.until(|server| server.asked("/reserve").len() == 2).await;
    working.stop.send(()).unwrap();
    // So many things have happened when the worker knows of it; a task that comes now is not for it.
    tokio::task::yield_now().await;
    go_on.add_permits(1);
    let summary = working.run.await.unwrap().unwrap();
    assert_eq!(summary, Summary { succeeded: 1, ..Summary::default() });
    assert_eq!(server.asked("/reserve").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_done_in_time_goes_back_and_was_no_attempt() {
    let server = server_with(3, Span::from_secs(20)).await;
    let working = start(worker(&server).concurrency(2).drain(Duration::from_secs(60)), |_| async {
        pending::<()>().await;
        Ok(())
    });
    server.until(|server| server.world.tasks().count(State::Reserved) == 2).await;
    let summary = working.stop().await;
    assert_eq!(summary, Summary { released: 2, ..Summary::default() });
    assert_eq!(server.world.tasks().count(State::Scheduled), 3);
    assert_eq!(server.world.tasks().tasks["0001"].attempts, 0);
    assert!(server.asked("/touch").len() > 4, "time was asked for while they were waited for");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_comes_too_late_goes_back() {
    let server = server_with(0, Span::from_secs(20)).await;
    let working = start(worker(&server), |_| async { Ok(()) });
    server.until(|server| server.asked("/reserve").len() == 1).await;
    working.stop.send(()).unwrap();
    // The worker sees the stop first, the task comes to the request that is under way.
    tokio::task::yield_now().await;
    server.client().create("mail", &NewTask::new()).await.unwrap();
    let summary = working.run.await.unwrap().unwrap();
    assert_eq!(summary, Summary { released: 1, ..Summary::default() });
    assert_eq!(server.world.tasks().state("0001"), State::Scheduled);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_leaves_does_not_wait_for_a_server_that_does_not_listen() {
    let server = server_with(1, Span::from_secs(60)).await;
    for _ in 0..100 {
        server.fail("mail/ack", Fault::Refuse(503, "stopped"));
    }
    let working = start(worker(&server).drain(Duration::from_secs(5)), |_| async { Ok(()) });
    server.until(|server| !server.asked("mail/ack").is_empty()).await;
    assert_eq!(working.stop().await, Summary { unreported: 1, ..Summary::default() });
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_ends_the_worker_with_an_error() {
    let server = server_with(1, Span::from_secs(60)).await;
    server.fail("/reserve", Fault::Refuse(401, "key_unknown"));
    let working = start(worker(&server), |_| async { Ok(()) });
    let error = working.run.await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some("key_unknown"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_wait_is_not_asked_all_the_time() {
    let server = server_with(0, Span::from_secs(60)).await;
    let ten_seconds = async {
        let _ = tokio::time::timeout(Duration::from_secs(10), pending::<()>()).await;
    };
    let run = worker(&server).wait(Duration::ZERO).run(|_| async { Ok(()) }, ten_seconds);
    assert_eq!(run.await.unwrap(), Summary::default());
    let asked = server.asked("/reserve").len();
    assert!((9..=11).contains(&asked), "asked {asked} times in ten seconds");
}
