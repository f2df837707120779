//! Stores that fail or lie, partitions that are reloaded, and tasks that bring their process down.

use std::sync::Arc;

use punctual::clock::Clock;
use punctual::shell::{Command, Parts, Shell};
use punctual::{EndState, Error, Executor, Job, NewTask, Running, Scheduled, TaskId};
use punctual_core::{Attempt, BootTime, Limits, Obstacle, Outcome, PartitionId, Settings};
use punctual_store::faulty::{Call, Fate};
use punctual_store::{Ownership, Store};

use super::script::{Liar, Script};
use super::world::{Log, Notes, Seen, World, id_of, notes, pass, secs, task};

#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_was_lost_is_unknown_and_there() {
    let (world, log, script) = (World::of(1), Log::default(), Script::default());
    let builder = world.builder().handler("log", log.handler());
    let scheduler = builder.start(script.store(world.store.clone())).await.unwrap();
    let at = world.now() + secs(60);
    let rent = || task("rent").at(at).unique_key("rent");
    script.then(Call::Record, Fate::AnswerLost);
    assert!(matches!(scheduler.schedule(rent()).await, Err(Error::Unknown)));
    // Asked again, it is the same task.
    let again = ask_until_owned(|| scheduler.schedule(rent())).await.unwrap();
    assert!(matches!(again, Scheduled::Replaced(_)));
    assert_eq!(scheduler.result(again.id()).await.unwrap().state, EndState::Succeeded);
    assert_eq!(log.lines(), ["rent"]);
}

/// A partition that is being reloaded answers a moment later.
async fn ask_until_owned<T, F: Future<Output = Result<T, Error>>>(
    mut ask: impl FnMut() -> F,
) -> Result<T, Error> {
    loop {
        match ask().await {
            Err(Error::NotOwner) => pass(std::time::Duration::from_millis(1)).await,
            answer => return answer,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_the_store_loses_every_task_runs_to_its_end() {
    for fate in [Fate::AnswerLost, Fate::RequestLost] {
        let (world, log, script) = (World::of(2), Log::default(), Script::default());
        let (observer, mut notes) = notes();
        let builder = world.builder().observer(observer).handler("log", log.handler());
        let scheduler = builder.start(script.store(world.store.clone())).await.unwrap();
        let at = world.now() + secs(10);
        let tasks = (0..20).map(|n| task("x").at(at + secs(n)).lane(&format!("lane {}", n % 4))).collect();
        let scheduled = scheduler.schedule_many(tasks).await;
        for _ in 0..10 {
            script.then(Call::Record, fate).then(Call::Read, fate).then(Call::Write, fate);
        }
        for scheduled in scheduled {
            let result = scheduler.result(scheduled.unwrap().id()).await.unwrap();
            assert_eq!(result.state, EndState::Succeeded);
        }
        assert!(notes.so_far().iter().any(|seen| matches!(seen, Seen::Reloaded(_))), "{fate:?} happened");
        assert!(log.lines().len() >= 20);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_ends_while_its_partition_is_reloaded_is_not_run_again() {
    let (world, script) = (World::of(1), Script::default());
    let (observer, mut notes) = notes();
    let (finish, finished) = tokio::sync::watch::channel(false);
    let slow = move |job: Job<()>| {
        let mut finished = finished.clone();
        async move {
            finished.wait_for(|finished| *finished).await.ok();
            Ok(job.attempt)
        }
    };
    let builder = world.builder().observer(observer).handler("slow", slow);
    let scheduler = builder.start(script.store(world.store.clone())).await.unwrap();
    let id = id_of(&scheduler, NewTask::new("slow").timeout(secs(3600))).await;
    notes.until(|seen| *seen == Seen::Began(id)).await;
    // The reload takes five seconds, and the attempt ends in the midst of it.
    script.then(Call::Record, Fate::AnswerLost).then_late(Call::Write, secs(5));
    assert!(matches!(scheduler.schedule(task("x")).await, Err(Error::Unknown)));
    notes.until(|seen| matches!(seen, Seen::Reloaded(_))).await;
    finish.send(true).unwrap();
    let begun = world.now();
    assert_eq!(scheduler.result(id).await.unwrap().read::<u32>().unwrap(), 1);
    assert!(world.now().since(begun) < secs(6), "its report was kept");
}

#[tokio::test(start_paused = true)]
async fn an_end_is_heard_of_although_the_answer_of_its_record_was_lost() {
    // Whoever waited was told only of ends that this process knew to be recorded.
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

#[tokio::test(start_paused = true)]
async fn an_impossible_fact_reloads_its_partition_and_no_other() {
    let (world, log) = (World::of(4), Log::default());
    let (observer, mut notes) = notes();
    let liar = Liar::new(world.store.clone(), PartitionId(2), 1);
    let scheduler =
        world.builder().observer(observer).handler("log", log.handler()).start(liar).await.unwrap();
    // Too far away to be kept in memory: they are read later, and one of the pages lies.
    let tasks = (0..40).map(|n| task("x").after(secs(3600)).lane(&format!("lane {n}"))).collect();
    let scheduled = scheduler.schedule_many(tasks).await;
    for scheduled in scheduled {
        assert_eq!(scheduler.result(scheduled.unwrap().id()).await.unwrap().state, EndState::Succeeded);
    }
    assert_eq!(log.lines().len(), 40, "nothing ran twice");
    let seen = notes.so_far();
    let reloaded: Vec<&Seen> = seen.iter().filter(|seen| matches!(seen, Seen::Reloaded(_))).collect();
    assert_eq!(reloaded, [&Seen::Reloaded(PartitionId(2))]);
}

#[tokio::test(start_paused = true)]
async fn a_task_at_which_its_partition_fails_three_times_is_set_aside() {
    // Each reload began to count anew, because no failure left a trace in the store.
    for (lies, expected) in [(2, EndState::Succeeded), (3, EndState::Dead)] {
        let (world, log) = (World::of(1), Log::default());
        let (observer, mut notes) = notes();
        let liar = Liar::new(world.store.clone(), PartitionId(0), lies);
        let builder = world.builder().observer(observer).handler("log", log.handler());
        let scheduler = builder.start(liar).await.unwrap();
        let suspect = id_of(&scheduler, task("suspect").after(secs(3600))).await;
        let innocent = id_of(&scheduler, task("innocent").after(secs(7200))).await;
        assert_eq!(scheduler.result(suspect).await.unwrap().state, expected);
        assert_eq!(scheduler.result(innocent).await.unwrap().state, EndState::Succeeded);
        let reloads = notes.so_far().into_iter().filter(|seen| matches!(seen, Seen::Reloaded(_))).count();
        assert_eq!(reloads, lies);
    }
}

#[tokio::test(start_paused = true)]
async fn a_partition_beyond_help_does_not_keep_the_loop_busy() {
    let (world, log) = (World::of(4), Log::default());
    let (observer, mut notes) = notes();
    let liar = Liar::new(world.store.clone(), PartitionId(2), usize::MAX);
    let scheduler =
        world.builder().observer(observer).handler("log", log.handler()).start(liar).await.unwrap();
    let lanes: Vec<String> = (0..40).map(|n| format!("lane {n}")).collect();
    let tasks = lanes.iter().map(|lane| task(lane).after(secs(3600)).lane(lane)).collect();
    let ids = scheduler.schedule_many(tasks).await.into_iter().map(|scheduled| scheduled.unwrap().id());
    let (broken, sound): (Vec<TaskId>, Vec<TaskId>) = ids.partition(|id| id.partition(4) == PartitionId(2));
    assert!(!broken.is_empty());
    for id in &sound {
        assert_eq!(scheduler.result(*id).await.unwrap().state, EndState::Succeeded);
    }
    notes.so_far();
    pass(secs(60)).await;
    let reloads = notes.so_far().iter().filter(|seen| matches!(seen, Seen::Reloaded(_))).count();
    assert!((1..=70).contains(&reloads), "{reloads} reloads in a minute");
    assert_eq!(log.lines().len(), sound.len());
}

/// Runs nothing to its end: the process always dies first.
struct Bomb;

impl Executor for Bomb {
    fn run(&self, _attempt: Attempt) -> Running {
        Box::pin(std::future::pending::<Outcome>())
    }

    fn receivers(&self) -> Vec<Box<str>> {
        vec!["bomb".into()]
    }
}

/// A process that begins, starts what is due, and dies when the task is on record as begun.
async fn die_while_running(world: &World, id: TaskId) {
    let (observer, mut notes): (_, Notes) = notes();
    let parts = Parts {
        store: Arc::new(world.store.clone()),
        executor: Arc::new(Bomb),
        observer: Arc::new(observer),
        clock: Clock::simulated(world.hands.clone()),
        settings: Settings {
            receivers: [Obstacle::handler("bomb")].into_iter().collect(),
            nodes: 1,
            ..Settings::default()
        },
        name: "doomed".into(),
        inline: true,
        forward_to: None,
    };
    let (shell, commands) = Shell::new(parts).await.unwrap();
    commands.send(Command::TrustUntil(BootTime::from_micros(u64::MAX))).await.ok();
    let present = world.store.ownerships().await.unwrap();
    commands.send(Command::Claim(present.iter().map(Ownership::fence).collect())).await.ok();
    let (mut began, mut started) = (false, false);
    let watch = async {
        while !(began && started) {
            match notes.next().await.expect("the loop runs") {
                Seen::Began(begun) if begun == id => began = true,
                Seen::Started(start, _) if start == id => started = true,
                _ => {}
            }
        }
    };
    tokio::select! {
        () = shell.run() => panic!("nobody told it to stop"),
        () = watch => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_running_at_three_crashes_in_a_row_is_set_aside() {
    let (world, log) = (World::of(4), Log::default());
    let scheduler = world.start(world.builder()).await;
    let bomb = id_of(&scheduler, NewTask::new("bomb").after(secs(1))).await;
    let innocent = id_of(&scheduler, task("innocent").after(secs(1))).await;
    scheduler.stop(secs(1)).await.unwrap();
    for _ in 0..3 {
        die_while_running(&world, bomb).await;
    }
    let builder = world.builder().handler("log", log.handler());
    let scheduler = world.start(builder.handler("bomb", |_: Job<()>| async { Ok("defused") })).await;
    let dead = scheduler.result(bomb).await.unwrap();
    assert_eq!(dead.state, EndState::Dead);
    assert_eq!(dead.error.as_deref(), Some("set aside: it was running at 3 failures in a row"));
    assert_eq!(scheduler.result(innocent).await.unwrap().state, EndState::Succeeded);
    scheduler.retry(bomb).await.unwrap();
    assert_eq!(scheduler.result(bomb).await.unwrap().read::<String>().unwrap(), "defused");
}

#[tokio::test(start_paused = true)]
async fn how_many_crashes_are_too_many_can_be_set() {
    for (crashes_max, expected) in [(1, EndState::Dead), (2, EndState::Succeeded)] {
        let world = World::of(4);
        let scheduler = world.start(world.builder()).await;
        let bomb = id_of(&scheduler, NewTask::new("bomb").after(secs(1))).await;
        scheduler.stop(secs(1)).await.unwrap();
        die_while_running(&world, bomb).await;
        let limits = Limits { crashes_max, ..Limits::default() };
        let builder = world.builder().limits(limits).handler("bomb", |_: Job<()>| async { Ok(()) });
        let scheduler = world.start(builder).await;
        assert_eq!(scheduler.result(bomb).await.unwrap().state, expected);
    }
}
