//! What a reviewer broke.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use punctual::{
    EndState, Error, Failure, Job, Limits, NewTask, OnConflict, QueueSettings, RetryPolicy, Scheduled, Waits,
};
use punctual_store::faulty::{Call, Fate};

use super::script::Script;
use super::world::{Log, Seen, World, id_of, notes, pass, secs, task};

#[tokio::test(start_paused = true)]
async fn l5_a_retry_that_waits_for_ever_harms_nobody() {
    let world = World::of(1);
    let (observer, mut notes) = notes();
    let log = Log::default();
    let fails = |_: Job<()>| async { Err::<(), _>(Failure::retry("no")) };
    let builder = world.builder().observer(observer).handler("fails", fails).handler("log", log.handler());
    let scheduler = world.start(builder).await;
    let waits =
        Waits::Growing { min: Duration::MAX, max: Duration::MAX, factor_percent: 200, jitter_percent: 100 };
    let policy = RetryPolicy { waits, ..RetryPolicy::DEFAULT };
    let Ok(_) = scheduler.schedule(NewTask::new("fails").retry(policy)).await else { return };
    pass(secs(60)).await;
    let reloads = notes.so_far().iter().filter(|seen| matches!(seen, Seen::Reloaded(_))).count();
    println!("{reloads} reloads");
    let innocent = scheduler.schedule(task("innocent")).await;
    pass(secs(60)).await;
    assert_eq!((reloads, log.lines().len()), (0, 1), "{innocent:?}");
}

#[tokio::test(start_paused = true)]
async fn l1_a_result_is_heard_although_the_answer_of_its_record_was_lost() {
    let (world, log, script) = (World::of(1), Log::default(), Script::default());
    let builder = world.builder().handler("log", log.handler());
    let scheduler = builder.start(script.store(world.store.clone())).await.unwrap();
    let id = id_of(&scheduler, task("x").after(secs(10))).await;
    // That it began is recorded; that it ended is recorded, and not heard of.
    script.then(Call::Record, Fate::Fine).then(Call::Record, Fate::AnswerLost);
    let result = tokio::time::timeout(secs(3600), scheduler.result(id)).await;
    assert_eq!(log.lines(), ["x"]);
    assert_eq!(result.expect("it ended an hour ago").unwrap().state, EndState::Succeeded);
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test(start_paused = true)]
#[ignore = "it measures the process: run it alone"]
async fn l4_those_who_stopped_waiting_for_one_task_are_forgotten() {
    let world = World::of(1);
    let scheduler = world.start(world.builder()).await;
    let id = id_of(&scheduler, NewTask::new("x").after(secs(3600))).await;
    let mut before = 0;
    for round in 0..400_000 {
        if round == 20_000 {
            before = resident();
        }
        tokio::time::timeout(Duration::from_millis(1), scheduler.result(id)).await.ok();
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 20_000_000, "{grown} bytes more");
}

#[tokio::test(start_paused = true)]
async fn l2_a_lane_runs_one_at_a_time_although_its_queue_is_pinned_later() {
    let world = World::of(8);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let count = (running.clone(), most.clone());
    let slow = move |_: Job<()>| {
        let (running, most) = count.clone();
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            pass(secs(5)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    };
    let scheduler = world.start(world.builder().handler("slow", slow)).await;
    let at = world.now() + secs(10);
    let first = id_of(&scheduler, NewTask::new("slow").queue("q").lane("l").at(at)).await;
    let pinned = scheduler.set_queue("q", QueueSettings { pinned: true, ..QueueSettings::default() }).await;
    let second = id_of(&scheduler, NewTask::new("slow").queue("q").lane("l").at(at)).await;
    scheduler.result(first).await.unwrap();
    scheduler.result(second).await.unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 1, "{pinned:?}");
}

#[tokio::test(start_paused = true)]
async fn l2b_a_unique_key_is_unique_although_its_queue_is_pinned_later() {
    let world = World::of(8);
    let scheduler = world.start(world.builder()).await;
    let at = world.now() + secs(10);
    let new = || NewTask::new("x").queue("q").unique_key("k").at(at).on_conflict(OnConflict::Keep);
    let first = id_of(&scheduler, new()).await;
    scheduler.set_queue("q", QueueSettings { pinned: true, ..QueueSettings::default() }).await.ok();
    assert_eq!(scheduler.schedule(new()).await.unwrap(), Scheduled::Kept(first));
}

#[tokio::test(start_paused = true)]
async fn l3_a_pause_is_not_undone_by_whoever_made_the_queue() {
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
async fn l6_a_move_past_the_expiry_is_refused_as_a_new_task_would_be() {
    let (world, log) = (World::of(1), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let now = world.now();
    let id = id_of(&scheduler, task("x").at(now + secs(10)).expires_at(now + secs(20))).await;
    let moved = scheduler.move_to(id, now + secs(30)).await;
    assert!(matches!(moved, Err(Error::Refused(_))), "{moved:?}");
}

#[tokio::test(start_paused = true)]
#[ignore = "open: the time grows with the square"]
async fn l7_the_same_key_ten_thousand_times_at_once() {
    let world = World::of(1);
    let scheduler =
        world.start(world.builder().limits(Limits { asked_max: 20_000, ..Limits::default() })).await;
    let at = world.now() + secs(60);
    for many in [1_000, 4_000, 8_000] {
        let begun = std::time::Instant::now();
        let key = format!("k{many}");
        let all = (0..many).map(|_| scheduler.schedule(NewTask::new("x").at(at).unique_key(&key)));
        let all = futures_util::future::join_all(all).await;
        let ids: std::collections::BTreeSet<_> = all.iter().map(|it| it.as_ref().unwrap().id()).collect();
        println!("{many}: {:?}", begun.elapsed());
        assert_eq!(ids.len(), 1);
    }
}
