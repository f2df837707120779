//! Lanes, priorities and deadlines: what goes first.

use std::sync::atomic::{AtomicU32, Ordering};

use punctual::{EndState, Failure, Job, Limits, OnExhausted, QueueSettings, RetryPolicy, TaskState};

use super::world::{Log, World, id_of, secs, task};

#[tokio::test(start_paused = true)]
async fn a_lane_keeps_its_order_while_its_head_is_retried() {
    let (world, log) = (World::new(), Log::default());
    let (written, failures) = (log.clone(), AtomicU32::new(2));
    let scheduler = world
        .start(world.builder().handler("log", move |job: Job<String>| {
            written.add(format!("{} #{}", job.payload, job.attempt));
            let fails = job.payload == "first"
                && failures
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok();
            async move { if fails { Err(Failure::retry("not yet")) } else { Ok(()) } }
        }))
        .await;
    let at = world.now() + secs(10);
    let tasks = vec![
        task("third").at(at + secs(1)).lane("ana"),
        task("first").at(at).lane("ana"),
        task("second").at(at).lane("ana"),
    ];
    let ids: Vec<_> = scheduler.schedule_many(tasks).await.into_iter().map(|it| it.unwrap().id()).collect();
    scheduler.result(ids[0]).await.unwrap();
    assert_eq!(log.lines(), ["first #1", "first #2", "first #3", "second #1", "third #1"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_task_holds_up_its_lane_but_not_its_neighbours() {
    let (world, log) = (World::of(1), Log::default());
    let builder = world.builder().handler("log", log.handler());
    let scheduler = world.start(builder.handler("fail", refuse)).await;
    let stuck = id_of(&scheduler, punctual::NewTask::new("fail").lane("ana")).await;
    let behind = id_of(&scheduler, task("behind").lane("ana")).await;
    let beside = id_of(&scheduler, task("beside").lane("bob")).await;
    scheduler.result(beside).await.unwrap();
    assert_eq!(scheduler.find(behind).await.unwrap().unwrap().state(), TaskState::Scheduled);
    scheduler.cancel(stuck).await.unwrap();
    scheduler.result(behind).await.unwrap();
    assert_eq!(log.lines(), ["beside", "behind"]);
}

#[tokio::test(start_paused = true)]
async fn a_lane_whose_head_ran_out_of_attempts_waits_for_a_person() {
    let (world, log) = (World::new(), Log::default());
    let (mended, builder) = (std::sync::Arc::new(AtomicU32::new(0)), world.builder());
    let is_mended = mended.clone();
    let scheduler = world
        .start(builder.handler("log", log.handler()).handler("head", move |_: Job<()>| {
            let good = is_mended.load(Ordering::Relaxed) > 0;
            async move { if good { Ok(()) } else { Err(Failure::retry("broken")) } }
        }))
        .await;
    let head = punctual::NewTask::new("head").lane("ana").retry(RetryPolicy::NEVER);
    let head = id_of(&scheduler, head).await;
    let behind = id_of(&scheduler, task("behind").lane("ana")).await;
    super::world::pass(secs(7 * 24 * 3600)).await;
    assert_eq!(scheduler.find(head).await.unwrap().unwrap().state(), TaskState::Blocked);
    assert_eq!(scheduler.find(behind).await.unwrap().unwrap().state(), TaskState::Scheduled);
    mended.store(1, Ordering::Relaxed);
    scheduler.retry(head).await.unwrap();
    assert_eq!(scheduler.result(behind).await.unwrap().state, EndState::Succeeded);
    assert_eq!(scheduler.result(head).await.unwrap().state, EndState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_lane_with_dead_letters_goes_on_without_its_head() {
    let (world, log) = (World::new(), Log::default());
    let builder = world.builder().handler("log", log.handler());
    let scheduler = world.start(builder.handler("fail", refuse)).await;
    let settings = QueueSettings {
        on_exhausted: OnExhausted::DeadLetter,
        retry: RetryPolicy::NEVER,
        ..QueueSettings::default()
    };
    scheduler.set_queue("letters", settings).await.unwrap();
    let head = id_of(&scheduler, punctual::NewTask::new("fail").queue("letters").lane("ana")).await;
    let behind = id_of(&scheduler, task("behind").queue("letters").lane("ana")).await;
    assert_eq!(scheduler.result(behind).await.unwrap().state, EndState::Succeeded);
    assert_eq!(scheduler.result(head).await.unwrap().state, EndState::Dead);
}

#[tokio::test(start_paused = true)]
async fn with_one_slot_the_most_urgent_goes_first() {
    let (world, log) = (World::new(), Log::default());
    let limits = Limits { running_max: 1, ..Limits::default() };
    let scheduler = world.start(world.builder().limits(limits).handler("log", log.handler())).await;
    let at = world.now() + secs(10);
    let tasks = vec![
        task("last").at(at).priority(9),
        task("late deadline").at(at).start_by(at + secs(60)),
        task("near deadline").at(at).start_by(at + secs(5)),
        task("no deadline").at(at),
        task("first").at(at).priority(0),
    ];
    let scheduled = scheduler.schedule_many(tasks).await;
    scheduler.result(scheduled[0].as_ref().unwrap().id()).await.unwrap();
    assert_eq!(log.lines(), ["first", "near deadline", "late deadline", "no deadline", "last"]);
}

async fn refuse(_: Job<()>) -> Result<(), Failure> {
    Err(Failure::retry("no"))
}
