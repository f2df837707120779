//! Looking at tasks: one by one, and page by page.

use std::collections::BTreeSet;

use punctual::{EndState, Error, Failure, Filter, Job, NewTask, Page, TaskId, TaskState};

use super::world::{Log, MemoryScheduler, World, id_of, notes, secs, task};

#[tokio::test(start_paused = true)]
async fn a_list_misses_and_repeats_nothing_while_new_tasks_arrive() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let at = world.now() + secs(3600);
    let many = |count: u64, offset: u64| (0..count).map(move |n| task("x").at(at + secs(n * 2 + offset)));
    let there: BTreeSet<TaskId> = schedule_all(&scheduler, many(2_500, 0).collect()).await;
    let (mut seen, mut next) = (Vec::new(), None);
    loop {
        let page = scheduler.list(&Filter::live(), next, 100).await.unwrap();
        seen.extend(page.tasks.iter().map(|found| found.id()));
        schedule_all(&scheduler, many(10, 1).collect()).await;
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    let distinct: BTreeSet<TaskId> = seen.iter().copied().collect();
    assert_eq!(distinct.len(), seen.len(), "nothing is listed twice");
    assert!(distinct.is_superset(&there), "nothing is missed");
}

async fn schedule_all(scheduler: &MemoryScheduler, tasks: Vec<NewTask>) -> BTreeSet<TaskId> {
    scheduler.schedule_many(tasks).await.into_iter().map(|scheduled| scheduled.unwrap().id()).collect()
}

#[tokio::test(start_paused = true)]
async fn tasks_are_listed_by_queue_lane_name_time_and_state() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let at = world.now() + secs(60);
    let mail = id_of(&scheduler, task("mail").queue("mail").at(at)).await;
    let lane = id_of(&scheduler, task("lane").lane("ana").at(at + secs(1))).await;
    let name = id_of(&scheduler, task("name").name("rent").at(at + secs(2))).await;
    let done = id_of(&scheduler, task("done")).await;
    scheduler.result(done).await.unwrap();
    let ids = async |filter: Filter| -> Vec<TaskId> {
        let page = scheduler.list(&filter, None, 10).await.unwrap();
        page.tasks.iter().map(|found| found.id()).collect()
    };
    assert_eq!(ids(Filter::live()).await, [mail, lane, name]);
    assert_eq!(ids(Filter::live().queue("mail")).await, [mail]);
    assert_eq!(ids(Filter::live().lane("ana")).await, [lane]);
    assert_eq!(ids(Filter::live().name("rent")).await, [name]);
    assert_eq!(ids(Filter::live().from(at + secs(1)).until(at + secs(2))).await, [lane]);
    assert_eq!(ids(Filter::ended()).await, [done]);
    assert_eq!(ids(Filter::ended().state(EndState::Dead)).await, []);
    assert_eq!(ids(Filter::live().queue("nowhere")).await, []);
    assert_eq!(scheduler.queue("nowhere").await.unwrap(), punctual::QueueSettings::default());
}

#[tokio::test(start_paused = true)]
async fn a_page_has_a_sensible_size() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    for limit in [0, 1_001, usize::MAX] {
        let refused = scheduler.list(&Filter::live(), None, limit).await;
        assert_eq!(refused.unwrap_err().to_string(), "limit must be 1 to 1,000");
    }
    assert_eq!(scheduler.list(&Filter::live(), None, 1_000).await.unwrap(), Page::default());
}

#[tokio::test(start_paused = true)]
async fn a_look_shows_the_attempt_that_runs() {
    let world = World::new();
    let (observer, mut notes) = notes();
    let work = |job: Job<()>| async move {
        if job.attempt == 1 {
            return Err(Failure::retry("once more"));
        }
        std::future::pending().await
    };
    let builder = world.builder().observer(observer).handler::<(), (), _, _>("work", work);
    let scheduler = world.start(builder).await;
    let id = id_of(&scheduler, NewTask::new("work").after(secs(5))).await;
    assert_eq!(scheduler.find(id).await.unwrap().unwrap().state(), TaskState::Scheduled);
    notes.until_started(id).await;
    notes.until_started(id).await;
    let view = scheduler.find(id).await.unwrap().unwrap();
    assert_eq!((view.state(), view.running), (TaskState::Running, Some(2)));
    assert_eq!(scheduler.load().await.unwrap().running, 1);
}

#[tokio::test(start_paused = true)]
async fn waiters_that_gave_up_cost_nothing_and_the_others_are_told() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let ids = schedule_all(&scheduler, (0..3_000).map(|_| task("x").after(secs(3600))).collect()).await;
    for id in &ids {
        let waiting = tokio::time::timeout(secs(0), scheduler.result(*id));
        assert!(waiting.await.is_err());
    }
    assert!(scheduler.load().await.unwrap().waiters <= 1_100, "most have been forgotten");
    let last = ids.last().copied().unwrap();
    assert!(matches!(scheduler.result(last).await, Ok(result) if result.state == EndState::Succeeded));
    let stopped = scheduler.stop(secs(1)).await;
    assert!(stopped.is_ok());
    assert!(matches!(scheduler.result(last).await, Err(Error::Stopped)));
}

#[tokio::test(start_paused = true)]
async fn waiters_that_gave_up_on_one_task_are_forgotten() {
    // They were forgotten by task only, and one task kept all that had ever waited for it.
    let world = World::of(1);
    let scheduler = world.start(world.builder()).await;
    let id = id_of(&scheduler, NewTask::new("x").after(secs(3600))).await;
    for _ in 0..10_000 {
        tokio::time::timeout(secs(0), scheduler.result(id)).await.expect_err("it is not due");
    }
    let waiters = scheduler.load().await.unwrap().waiters;
    assert!(waiters <= 8, "{waiters} of ten thousand");
}
