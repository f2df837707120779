//! Two schedulers on one store: the second takes it over, and the first is fenced off.

use std::sync::Arc;

use punctual::clock::Clock;
use punctual::shell::{Command, Parts, Shell};
use punctual::{EndState, Error, Handlers, NewTask, Store};
use punctual_core::{BootTime, Fence, PartitionId, Settings};
use punctual_store::faulty::Call;
use tokio::sync::{mpsc, oneshot};

use super::script::Script;
use super::world::{Log, Seen, World, id_of, notes, pass, secs, task};

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

#[tokio::test(start_paused = true)]
async fn a_release_that_is_answered_late_does_not_take_what_was_begun_anew() {
    let (world, script) = (World::of(1), Script::default());
    let (observer, mut notes) = notes();
    let store = script.store(world.store.clone());
    let parts = Parts {
        store: Arc::new(store),
        executor: Arc::new(Handlers::default()),
        observer: Arc::new(observer),
        clock: Clock::simulated(world.hands.clone()),
        settings: Settings::default(),
        name: "node".into(),
        inline: false,
        forward_to: None,
    };
    let (shell, commands) = Shell::new(parts).await.unwrap();
    tokio::spawn(shell.run());
    commands.send(Command::TrustUntil(BootTime::from_micros(u64::MAX))).await.unwrap();
    claim_all(&world, &commands).await;
    notes.until(|seen| matches!(seen, Seen::Taken(_))).await;
    script.then_late(Call::Write, secs(5));
    commands.send(Command::HandOver(PartitionId(0))).await.unwrap();
    pass(secs(1)).await;
    claim_all(&world, &commands).await;
    notes.until(|seen| matches!(seen, Seen::Taken(_))).await;
    pass(secs(10)).await;
    let (reply, owned) = oneshot::channel();
    commands.send(Command::Owned(reply)).await.unwrap();
    assert_eq!(owned.await.unwrap(), 1, "what was given up was the ownership before");
}

async fn claim_all(world: &World, commands: &mpsc::Sender<Command>) {
    let present = world.store.ownerships().await.expect("a store in memory answers");
    let fences: Vec<Fence> = present.iter().map(|ownership| ownership.fence()).collect();
    commands.send(Command::Claim(fences)).await.expect("the loop runs");
}
