//! Two schedulers on one store: the second takes it over, and the first is fenced off.

use punctual::{EndState, Error, NewTask};

use super::world::{Log, Seen, World, id_of, notes, secs, task};

#[tokio::test(start_paused = true)]
async fn a_second_scheduler_takes_over_and_the_first_is_fenced_off() {
    let (world, first_log, second_log) = (World::of(1), Log::default(), Log::default());
    let (observer, mut notes) = notes();
    let first = world.start(world.builder().observer(observer).handler("log", first_log.handler())).await;
    let done = id_of(&first, task("done")).await;
    first.result(done).await.unwrap();
    let waiting = id_of(&first, task("waiting").after(secs(60))).await;
    let second = world.start(world.builder().name("second").handler("log", second_log.handler())).await;
    let hears_of_it = first.result(waiting);
    let refused = first.schedule(task("refused"));
    let (hears_of_it, refused) = tokio::join!(hears_of_it, refused);
    assert!(matches!(refused, Err(Error::NotOwner)), "nothing was changed: {refused:?}");
    assert!(matches!(hears_of_it, Err(Error::NotOwner)));
    notes.until(|seen| matches!(seen, Seen::Lost(_))).await;
    assert!(matches!(first.schedule(task("refused again")).await, Err(Error::NotOwner)));
    assert!(matches!(first.cancel(waiting).await, Err(Error::NotOwner)));
    assert!(matches!(first.result(waiting).await, Err(Error::NotOwner)));
    assert_eq!(second.result(waiting).await.unwrap().state, EndState::Succeeded);
    assert_eq!(first.result(done).await.unwrap().state, EndState::Succeeded, "the store still answers");
    first.stop(secs(1)).await.unwrap();
    assert_eq!(first_log.lines(), ["done"]);
    assert_eq!(second_log.lines(), ["waiting"]);
}

#[tokio::test(start_paused = true)]
async fn a_report_of_a_scheduler_that_was_pushed_aside_changes_nothing() {
    let (world, log) = (World::of(1), Log::default());
    let (observer, mut notes) = notes();
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let finished = std::sync::Mutex::new(Some(finished));
    let slow = move |_: punctual::Job<()>| {
        let finished = finished.lock().unwrap().take().expect("it runs once here");
        async move {
            finished.await.ok();
            Ok("first")
        }
    };
    let first = world.start(world.builder().observer(observer).handler("work", slow)).await;
    let id = id_of(&first, NewTask::new("work").timeout(secs(3600))).await;
    notes.until(|seen| matches!(seen, Seen::Began(_))).await;
    let written = log.clone();
    let work = move |job: punctual::Job<()>| {
        written.add(format!("attempt {}", job.attempt));
        async { Ok("second") }
    };
    let second = world.start(world.builder().handler("work", work)).await;
    assert_eq!(second.result(id).await.unwrap().read::<String>().unwrap(), "second");
    finish.send(()).unwrap();
    notes.until(|seen| matches!(seen, Seen::Lost(_))).await;
    assert_eq!(second.result(id).await.unwrap().read::<String>().unwrap(), "second");
    assert_eq!(log.lines(), ["attempt 2"]);
}
