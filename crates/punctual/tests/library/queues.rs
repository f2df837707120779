//! Queues: paused, limited, rated, and tasks that come too late.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use punctual::{EndState, Error, Job, Limits, NewTask, Priority, QueueSettings, Rate, TaskId};
use punctual_store::faulty::Call;

use super::script::Script;
use super::world::{Log, MemoryScheduler, World, id_of, notes, pass, secs, task};

async fn wait_for_all(scheduler: &MemoryScheduler, ids: &[TaskId]) {
    for id in ids {
        assert_eq!(scheduler.result(*id).await.unwrap().state, EndState::Succeeded);
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_queue_with_ten_thousand_due_holds_nobody_up_and_forgets_nothing() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    scheduler.pause("mail").await.unwrap();
    let tasks = (0..10_000).map(|_| task("mail").queue("mail").after(secs(1))).collect();
    let scheduled = scheduler.schedule_many(tasks).await;
    let ids: Vec<TaskId> = scheduled.into_iter().map(|scheduled| scheduled.unwrap().id()).collect();
    let beside = id_of(&scheduler, task("beside").after(secs(60))).await;
    scheduler.result(beside).await.unwrap();
    assert_eq!(log.lines(), ["beside"]);
    assert_eq!(scheduler.load().await.unwrap().in_memory, 0, "what is paused takes no memory");
    scheduler.resume("mail").await.unwrap();
    wait_for_all(&scheduler, &ids).await;
    assert_eq!(log.lines().len(), 10_001);
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_memory_when_its_queue_is_paused_waits_on() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let id = id_of(&scheduler, task("mail").queue("mail").after(secs(5))).await;
    scheduler.pause("mail").await.unwrap();
    assert!(scheduler.queue("mail").await.unwrap().paused);
    pass(secs(3600)).await;
    assert_eq!(log.lines(), Vec::<String>::new());
    scheduler.resume("mail").await.unwrap();
    wait_for_all(&scheduler, &[id]).await;
}

#[tokio::test(start_paused = true)]
async fn a_lane_keeps_its_order_across_a_pause() {
    let (world, log) = (World::new(), Log::default());
    let written = log.clone();
    let slow = move |job: Job<u32>| {
        let log = written.clone();
        async move {
            pass(secs(5)).await;
            log.add(job.payload.to_string());
            Ok(())
        }
    };
    let scheduler = world.start(world.builder().handler("slow", slow)).await;
    let tasks = (0..30u32).map(|n| NewTask::new("slow").payload(&n).unwrap().queue("mail").lane("ana"));
    let scheduled = scheduler.schedule_many(tasks.collect()).await;
    let ids: Vec<TaskId> = scheduled.into_iter().map(|scheduled| scheduled.unwrap().id()).collect();
    pass(secs(2)).await;
    scheduler.pause("mail").await.unwrap();
    pass(secs(3600)).await;
    assert_eq!(log.lines(), ["0"], "what ran went on, and nothing else began");
    scheduler.resume("mail").await.unwrap();
    wait_for_all(&scheduler, &ids).await;
    let in_order: Vec<String> = (0..30).map(|n: u32| n.to_string()).collect();
    assert_eq!(log.lines(), in_order);
}

/// A handler that takes a second, and the most of them that ran at once.
async fn crowd(queue: QueueSettings, tasks: usize) -> (u32, Duration) {
    let world = World::new();
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (now_running, seen) = (running.clone(), most.clone());
    let work = move |_: Job<()>| {
        let running = now_running.clone();
        seen.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        async move {
            pass(secs(1)).await;
            running.fetch_sub(1, Ordering::Relaxed);
            Ok(())
        }
    };
    let scheduler = world.start(world.builder().handler("work", work)).await;
    scheduler.set_queue("narrow", queue).await.unwrap();
    let begun = world.now();
    let tasks = (0..tasks).map(|_| NewTask::new("work").queue("narrow")).collect();
    let scheduled = scheduler.schedule_many(tasks).await;
    let ids: Vec<TaskId> = scheduled.into_iter().map(|scheduled| scheduled.unwrap().id()).collect();
    wait_for_all(&scheduler, &ids).await;
    (most.load(Ordering::Relaxed), world.now().since(begun))
}

#[tokio::test(start_paused = true)]
async fn a_queue_runs_as_many_at_once_as_it_may() {
    let narrow = QueueSettings { running_max: Some(3), ..QueueSettings::default() };
    let (most, took) = crowd(narrow, 30).await;
    assert_eq!((most, took.as_secs()), (3, 10));
    assert_eq!(crowd(QueueSettings::default(), 30).await.0, 30);
}

#[tokio::test(start_paused = true)]
async fn a_queue_starts_no_faster_than_its_rate() {
    let rate = Some(Rate { starts: 10, per: secs(1), burst: 5 });
    let (most, took) = crowd(QueueSettings { rate, ..QueueSettings::default() }, 105).await;
    // Five at once, then one each tenth of a second; the last takes a second.
    assert_eq!(took.as_secs(), 11);
    assert!((10..=16).contains(&most), "{most} at once");
}

#[tokio::test(start_paused = true)]
async fn a_task_not_started_in_time_expires() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    scheduler.pause("mail").await.unwrap();
    let at = world.now() + secs(10);
    let late = id_of(&scheduler, task("late").queue("mail").at(at).expires_at(at + secs(60))).await;
    let in_time = id_of(&scheduler, task("in time").at(at).expires_at(at + secs(60))).await;
    pass(secs(100)).await;
    scheduler.resume("mail").await.unwrap();
    assert_eq!(scheduler.result(late).await.unwrap().state, EndState::Expired);
    assert_eq!(scheduler.result(in_time).await.unwrap().state, EndState::Succeeded);
    assert_eq!(log.lines(), ["in time"]);
}

#[tokio::test(start_paused = true)]
async fn settings_and_tasks_outlive_the_scheduler() {
    let (world, log) = (World::new(), Log::default());
    let first = world.start(world.builder().handler("log", log.handler())).await;
    first.pause("mail").await.unwrap();
    let id = id_of(&first, task("mail").queue("mail")).await;
    first.stop(secs(1)).await.unwrap();
    let (observer, mut notes) = notes();
    let second = world.start(world.builder().observer(observer).handler("log", log.handler())).await;
    pass(secs(3600)).await;
    assert!(!notes.so_far().iter().any(|seen| matches!(seen, super::world::Seen::Started(..))));
    second.resume("mail").await.unwrap();
    wait_for_all(&second, &[id]).await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_pinned_when_it_is_made_or_never() {
    // Tasks of one lane lay in two partitions, and ran at once.
    let world = World::of(8);
    let scheduler = world.start(world.builder()).await;
    let new = || NewTask::new("x").queue("mail").lane("ana").after(secs(10));
    let first = id_of(&scheduler, new()).await;
    let pinned = QueueSettings { pinned: true, ..QueueSettings::default() };
    let refused = scheduler.set_queue("mail", pinned.clone()).await.unwrap_err();
    assert_eq!(refused.code(), "setting_invalid");
    assert_eq!(id_of(&scheduler, new()).await.partition(8), first.partition(8));
    scheduler.set_queue("other", pinned.clone()).await.unwrap();
    scheduler.set_queue("other", QueueSettings { running_max: Some(1), ..pinned }).await.unwrap();
    assert!(scheduler.set_queue("other", QueueSettings::default()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_queue_keeps_the_priority_it_was_made_with() {
    // A lane lay in two windows, and whoever came after the change overtook those that waited.
    let (world, log) = (World::of(1), Log::default());
    let limits = Limits { running_max: 1, window_max: 16, loaded_max: 16, ..Limits::default() };
    let scheduler = world.start(world.builder().limits(limits).handler("log", log.handler())).await;
    let at = world.now() + secs(10);
    let filler = (0..100).map(|_| task("filler").queue("mail").at(at)).collect();
    assert!(scheduler.schedule_many(filler).await.iter().all(Result::is_ok));
    id_of(&scheduler, task("first").queue("mail").lane("ana").at(at + secs(1))).await;
    let urgent = QueueSettings { priority: Priority::new(1).unwrap(), ..QueueSettings::default() };
    let refused = scheduler.set_queue("mail", urgent.clone()).await.unwrap_err();
    assert_eq!(refused.code(), "setting_invalid");
    assert!(refused.to_string().contains("make another queue"), "{refused}");
    assert_eq!(scheduler.queue("mail").await.unwrap().priority, Priority::default());
    let second = id_of(&scheduler, task("second").queue("mail").lane("ana").at(at + secs(2))).await;
    scheduler.result(second).await.unwrap();
    assert_eq!(log.lines()[100..], ["first", "second"]);
    scheduler.set_queue("urgent", urgent.clone()).await.unwrap();
    scheduler.set_queue("urgent", QueueSettings { paused: true, ..urgent }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_not_undone_by_whoever_made_the_queue() {
    // Settings counted in the order in which they were heard of.
    let (world, log, script) = (World::of(1), Log::default(), Script::default());
    let builder = world.builder().handler("log", log.handler());
    let scheduler = builder.start(script.store(world.store.clone())).await.unwrap();
    // The queue's number is given at once; that the queue was made is heard of late.
    script.then_answer_late(Call::Write, Duration::ZERO).then_answer_late(Call::Write, secs(5));
    let another = scheduler.clone();
    let create = tokio::spawn(async move { another.schedule(task("x").queue("q").after(secs(60))).await });
    pass(secs(1)).await;
    scheduler.pause("q").await.unwrap();
    create.await.unwrap().unwrap();
    assert!(scheduler.queue("q").await.unwrap().paused, "it says that it is paused");
    pass(secs(600)).await;
    assert!(log.lines().is_empty(), "and it is");
}

#[tokio::test(start_paused = true)]
async fn fifty_first_tasks_at_once_make_their_queue_once() {
    // Each made it, and all but one began again: fifty clients of a new queue waited for a hundred syncs and more.
    let (world, script) = (World::of(1), Script::default());
    let scheduler = world.builder().start(script.store(world.store.clone())).await.unwrap();
    let first = scheduler.schedule(task("x").queue("alone").after(secs(60))).await.unwrap().id();
    (0..100).for_each(|_| _ = script.then_answer_late(Call::Write, secs(1)));
    let calls = (0..50).map(|_| scheduler.schedule(task("x").queue("many").after(secs(60))));
    for scheduled in futures_util::future::join_all(calls).await {
        assert_eq!(scheduled.unwrap().id().queue.0, first.queue.0 + 1);
    }
    let version = async |queue| scheduler.find_queue(queue).await.unwrap().unwrap().version;
    let writes = version("many").await - version("alone").await;
    assert_eq!(writes, 2, "its number, and the queue");
}

#[tokio::test(start_paused = true)]
async fn queues_of_the_same_name_in_two_namespaces_are_two_queues() {
    let (world, log) = (World::new(), Log::default());
    let start = async |namespace: &str| {
        world.start(world.builder().namespace(namespace).handler("log", log.handler())).await
    };
    let ours = start("ours").await;
    ours.pause("mail").await.unwrap();
    let waiting = id_of(&ours, task("ours").queue("mail")).await;
    ours.stop(secs(0)).await.unwrap();
    let theirs = start("theirs").await;
    let id = id_of(&theirs, task("theirs").queue("mail")).await;
    theirs.result(id).await.unwrap();
    assert_ne!(id.queue, waiting.queue);
    assert!(!theirs.queue("mail").await.unwrap().paused);
    pass(secs(60)).await;
    assert_eq!(log.lines(), ["theirs"], "a queue that is paused in another namespace is paused here too");
    for bad in ["", "a/b", "a b", &"x".repeat(101)] {
        let started = world.builder().namespace(bad).start(world.store.clone()).await;
        assert!(matches!(started.err(), Some(Error::Refused(_))), "{bad}");
    }
}
