//! Stopping: nothing new, what runs may finish, the rest is interrupted, and nothing is lost.

use std::time::Duration;

use punctual::{EndState, Error, Failure, Found, Job, NewTask, RetryPolicy, Store, Task, TaskId};
use punctual_core::Query;
use punctual_store::faulty::{Call, Fate};
use tokio::sync::mpsc;

use super::script::Script;
use super::world::{Log, Seen, World, id_of, notes, pass, secs, task};

#[tokio::test(start_paused = true)]
async fn a_stop_lets_what_runs_finish() {
    let (world, log) = (World::new(), Log::default());
    let (observer, mut notes) = notes();
    let written = log.clone();
    let slow = move |_: Job<()>| {
        let log = written.clone();
        async move {
            pass(secs(5)).await;
            log.add("finished");
            Ok(())
        }
    };
    let scheduler = world.start(world.builder().observer(observer).handler("slow", slow)).await;
    let running = id_of(&scheduler, NewTask::new("slow")).await;
    let waiting = id_of(&scheduler, NewTask::new("slow").after(secs(2))).await;
    notes.until_started(running).await;
    let begun = world.now();
    scheduler.stop(secs(60)).await.unwrap();
    assert_eq!(world.now().since(begun).as_secs(), 5, "a stop waits for what runs, and no longer");
    assert_eq!(log.lines(), ["finished"]);
    let second = world.start(world.builder().handler("slow", |_: Job<()>| async { Ok(()) })).await;
    assert_eq!(second.result(running).await.unwrap().state, EndState::Succeeded);
    assert_eq!(second.result(waiting).await.unwrap().state, EndState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn an_interruption_is_not_an_attempt() {
    let world = World::new();
    let (observer, mut notes) = notes();
    let hang = |_: Job<()>| std::future::pending::<Result<(), Failure>>();
    let first = world.start(world.builder().observer(observer).handler("work", hang)).await;
    let id = id_of(&first, NewTask::new("work").retry(RetryPolicy::NEVER)).await;
    notes.until_started(id).await;
    first.stop(Duration::from_millis(10)).await.unwrap();
    assert!(matches!(first.find(id).await, Err(Error::Stopped)));
    let task = stored(&world, id).await;
    assert_eq!((task.attempts, task.counted_attempts(), task.crashes), (1, 0, 0));
    let second =
        world.start(world.builder().handler("work", |job: Job<()>| async move { Ok(job.attempt) })).await;
    assert_eq!(second.result(id).await.unwrap().read::<u32>().unwrap(), 2);
}

/// A look into the store itself: the scheduler has stopped.
async fn stored(world: &World, id: TaskId) -> Task {
    let found = world.store.find(id.partition(4), &[Query::Id(id)]).await.unwrap();
    match found.into_iter().next().flatten() {
        Some(Found::Live(task)) => task,
        found => panic!("it has ended: {found:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_scheduler_says_so() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let id = id_of(&scheduler, task("x").after(secs(60))).await;
    let waiting = scheduler.result(id);
    let stopping = scheduler.stop(secs(1));
    let (waited, stopped) = tokio::join!(waiting, stopping);
    assert!(matches!(waited, Err(Error::Stopped)));
    stopped.unwrap();
    scheduler.stop(secs(1)).await.expect("a second stop is no mistake");
    assert!(matches!(scheduler.schedule(task("y")).await, Err(Error::Stopped)));
    assert!(matches!(scheduler.schedule(task("y").queue("new")).await, Err(Error::Stopped)));
    assert!(matches!(scheduler.schedule_many(vec![task("y")]).await[..], [Err(Error::Stopped)]));
    assert!(matches!(scheduler.cancel(id).await, Err(Error::Stopped)));
    assert!(matches!(scheduler.pause("mail").await, Err(Error::Stopped)));
}

#[tokio::test(start_paused = true)]
async fn a_second_stop_can_shorten_the_first() {
    let world = World::new();
    let (observer, mut notes) = notes();
    let hang = |_: Job<()>| std::future::pending::<Result<(), Failure>>();
    let scheduler = world.start(world.builder().observer(observer).handler("work", hang)).await;
    let id = id_of(&scheduler, NewTask::new("work").timeout(secs(7200))).await;
    notes.until_started(id).await;
    let begun = world.now();
    let (patient, hasty) = tokio::join!(scheduler.stop(secs(3600)), scheduler.stop(secs(2)));
    patient.unwrap();
    hasty.unwrap();
    assert_eq!(world.now().since(begun).as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_clone_stops_the_loop() {
    let world = World::new();
    let (observer, mut notes) = notes();
    let (alive, mut dropped) = mpsc::channel::<()>(1);
    let hang = move |_: Job<()>| {
        let alive = alive.clone();
        async move {
            std::future::pending::<()>().await;
            drop(alive);
            Ok(())
        }
    };
    let scheduler = world.start(world.builder().observer(observer).handler("work", hang)).await;
    let id = id_of(&scheduler, NewTask::new("work").timeout(secs(7200))).await;
    notes.until_started(id).await;
    let clone = scheduler.clone();
    drop(scheduler);
    clone.load().await.expect("a clone keeps it running");
    drop(clone);
    for _ in 0..4 {
        notes.until(|seen| matches!(seen, Seen::Released(_))).await;
    }
    assert_eq!(dropped.recv().await, None, "the handler and what it ran are gone");
    let second =
        world.start(world.builder().handler("work", |job: Job<()>| async move { Ok(job.attempt) })).await;
    assert_eq!(second.result(id).await.unwrap().read::<u32>().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_store_that_is_away() {
    let (world, log, script) = (World::of(2), Log::default(), Script::default());
    let builder = world.builder().handler("log", log.handler());
    let scheduler = builder.start(script.store(world.store.clone())).await.unwrap();
    script.then(Call::Record, Fate::RequestLost).then_late(Call::Write, secs(365 * 86_400));
    assert!(matches!(scheduler.schedule(task("x").lane("ana")).await, Err(Error::Unknown)));
    let begun = world.now();
    scheduler.stop(secs(5)).await.unwrap();
    assert!(world.now().since(begun) <= secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_when_a_worker_went_away_before_it_was_given_a_task() {
    // The task was taken back while others were being carried out, and what followed from that was thrown away: the
    // partitions in which nothing ran were never released, and the stop never ended.
    let (world, script) = (World::new(), Script::default());
    let hang = |_: Job<()>| std::future::pending::<Result<(), Failure>>();
    let builder = world.builder().handler("hang", hang);
    let scheduler = builder.start(script.store(world.store.clone())).await.unwrap();
    id_of(&scheduler, NewTask::new("hang")).await;
    id_of(&scheduler, NewTask::for_worker().queue("work").lane("x")).await;
    pass(secs(1)).await;
    // A lane's task is given when that is on record: just when the stop has waited long enough for what runs.
    script.then_late(Call::Record, secs(5));
    let begun = world.now();
    let worker = scheduler.clone();
    let reserving = tokio::spawn(async move { worker.reserve("work", 1, secs(0), None).await });
    pass(Duration::from_millis(1)).await;
    reserving.abort();
    let stopping = scheduler.stop(secs(5) - world.now().since(begun));
    tokio::time::timeout(secs(60), stopping).await.expect("it ends").unwrap();
}
