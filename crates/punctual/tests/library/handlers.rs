//! Handlers that come later, and tasks that nobody can run yet.

use punctual::{EndState, Error, Job, NewTask, Refusal, TaskState};

use super::world::{Log, World, id_of, pass, secs, task};

#[tokio::test(start_paused = true)]
async fn tasks_wait_for_a_handler_that_is_registered_later() {
    let (world, log) = (World::of(1), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let tasks = (0..500u32).map(|n| NewTask::new("double").payload(&n).unwrap()).collect();
    let scheduled = scheduler.schedule_many(tasks).await;
    let beside = id_of(&scheduler, task("beside")).await;
    scheduler.result(beside).await.unwrap();
    pass(secs(3600)).await;
    let first = scheduled[0].as_ref().unwrap().id();
    assert_eq!(scheduler.find(first).await.unwrap().unwrap().state(), TaskState::Scheduled);
    scheduler.register("double", |job: Job<u32>| async move { Ok(2 * job.payload) }).await.unwrap();
    for (n, scheduled) in (0u32..).zip(scheduled) {
        let result = scheduler.result(scheduled.unwrap().id()).await.unwrap();
        assert_eq!(result.read::<u32>().unwrap(), 2 * n);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_be_replaced_while_tasks_wait_for_it() {
    let world = World::new();
    let scheduler = world.start(world.builder().handler("which", |_: Job<()>| async { Ok("old") })).await;
    let id = id_of(&scheduler, NewTask::new("which").after(secs(60))).await;
    scheduler.register("which", |_: Job<()>| async { Ok("new") }).await.unwrap();
    assert_eq!(scheduler.result(id).await.unwrap().read::<String>().unwrap(), "new");
}

#[tokio::test(start_paused = true)]
async fn a_handler_knows_its_job() {
    let world = World::new();
    let scheduler = world
        .start(world.builder().handler("what", |job: Job<()>| async move {
            Ok((job.id.to_string(), job.attempt, job.at.as_micros(), job.lane))
        }))
        .await;
    let at = world.now() + secs(5);
    let id = id_of(&scheduler, NewTask::new("what").at(at).lane("ana")).await;
    let result = scheduler.result(id).await.unwrap();
    assert_eq!(result.state, EndState::Succeeded);
    let seen: (String, u32, i64, Option<Box<str>>) = result.read().unwrap();
    assert_eq!(seen, (id.to_string(), 1, at.as_micros(), Some("ana".into())));
}

#[tokio::test(start_paused = true)]
async fn a_handler_needs_a_name() {
    let world = World::new();
    let unnamed = world.builder().handler("", |_: Job<()>| async { Ok(()) }).start(world.store.clone()).await;
    assert!(matches!(unnamed.err(), Some(Error::Refused(Refusal::Empty("the handler's name")))));
    let scheduler = world.start(world.builder()).await;
    let refused = scheduler.register(&"x".repeat(501), |_: Job<()>| async { Ok(()) }).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::TooLong { max: 500, .. }))));
}
