//! Workers reserve tasks, hold them for a while, and say how they went.

use std::sync::Arc;
use std::time::Duration;

use punctual::clock::{Clock, VirtualClock};
use punctual::shell::{Command, Entries, Parts, Reserve, Shell};
use punctual::{
    EndState, Error, Handlers, NewTask, OnConflict, OnExhausted, QueueSettings, Report, Reserved,
    RetryPolicy, Scheduler, Store, TaskId, TaskState, Timestamp,
};
use punctual_core::{Answer, Ask, BootTime, Draft, Priority, QueueId, Route, Settings, Spec, Target};
use punctual_store::faulty::{Call, Fate};
use tokio::sync::oneshot;

use super::script::Script;
use super::world::{MemoryScheduler, Seen, World, id_of, notes, pass, secs};

fn job() -> NewTask {
    NewTask::for_worker().queue("work")
}

async fn reserve(scheduler: &MemoryScheduler, max: usize) -> Vec<Reserved> {
    scheduler.reserve("work", max, Duration::ZERO, None).await.unwrap()
}

fn ids(reserved: &[Reserved]) -> Vec<TaskId> {
    reserved.iter().map(|reserved| reserved.token.id).collect()
}

fn failed() -> Report {
    Report::Failed { error: "no luck".into(), delay: None }
}

async fn state(scheduler: &MemoryScheduler, id: TaskId) -> TaskState {
    scheduler.find(id).await.unwrap().unwrap().state()
}

#[tokio::test(start_paused = true)]
async fn a_worker_reserves_a_task_and_its_result_can_be_waited_for() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let id = id_of(&scheduler, job().payload_bytes("seven")).await;
    let reserved = reserve(&scheduler, 10).await;
    assert_eq!(ids(&reserved), [id]);
    assert_eq!((&reserved[0].spec.payload[..], reserved[0].time_to_run), (&b"seven"[..], secs(30)));
    assert_eq!(state(&scheduler, id).await, TaskState::Reserved);
    assert_eq!(reserve(&scheduler, 10).await, [], "nobody else gets it");
    let after = scheduler.report(reserved[0].token, Report::Done("49".into())).await.unwrap();
    assert_eq!((after.state, after.next_at), (TaskState::Succeeded, None));
    assert_eq!(scheduler.result(id).await.unwrap().read::<u32>().unwrap(), 49);
}

#[tokio::test(start_paused = true)]
async fn a_reserve_waits_for_the_first_task_and_no_longer() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let id = id_of(&scheduler, job().after(secs(5))).await;
    let begun = world.now();
    let reserved = scheduler.reserve("work", 10, secs(20), None).await.unwrap();
    assert_eq!((ids(&reserved), world.now().since(begun).as_secs()), (vec![id], 5));
    let begun = world.now();
    let reserved = scheduler.reserve("work", 10, secs(20), None).await.unwrap();
    assert_eq!((reserved, world.now().since(begun).as_secs()), (vec![], 20));
}

#[tokio::test(start_paused = true)]
async fn a_reserve_that_waits_for_a_queue_that_is_removed_is_sent_away() {
    // It waited for tasks of the old number, whatever came into the queue that was made anew.
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    scheduler.set_queue("work", punctual::QueueSettings::default()).await.unwrap();
    let remove = async {
        pass(secs(5)).await;
        scheduler.remove_queue("work", |_| true).await.unwrap();
    };
    let begun = world.now();
    let (reserved, ()) = tokio::join!(scheduler.reserve("work", 10, secs(20), None), remove);
    assert_eq!((reserved.unwrap(), world.now().since(begun).as_secs()), (vec![], 5));
    let make = async {
        pass(secs(5)).await;
        id_of(&scheduler, job()).await
    };
    let (reserved, id) = tokio::join!(scheduler.reserve("work", 10, secs(20), None), make);
    assert_eq!(ids(&reserved.unwrap()), [id]);
}

#[tokio::test(start_paused = true)]
async fn a_reserve_waits_for_its_queue_to_be_made_and_makes_none() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let begun = world.now();
    assert_eq!(scheduler.reserve("work", 10, secs(20), None).await.unwrap(), []);
    assert_eq!(world.now().since(begun).as_secs(), 20);
    assert_eq!(scheduler.find_queue("work").await.unwrap(), None);
    let make = async {
        pass(secs(5)).await;
        // Another one that is made does not end the wait.
        id_of(&scheduler, job().queue("other")).await;
        id_of(&scheduler, job().after(secs(10))).await
    };
    let begun = world.now();
    let (reserved, id) = tokio::join!(scheduler.reserve("work", 10, secs(20), None), make);
    assert_eq!((ids(&reserved.unwrap()), world.now().since(begun).as_secs()), (vec![id], 15));
    // What is left of the wait is waited in the queue.
    let make = async {
        pass(secs(5)).await;
        id_of(&scheduler, job().queue("late").after(secs(60))).await;
    };
    let begun = world.now();
    let (reserved, ()) = tokio::join!(scheduler.reserve("late", 10, secs(20), None), make);
    assert_eq!((reserved.unwrap(), world.now().since(begun).as_secs()), (vec![], 20));
}

#[tokio::test(start_paused = true)]
async fn a_stop_sends_those_away_who_wait_for_a_queue() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let begun = world.now();
    let stop = async {
        pass(secs(1)).await;
        scheduler.stop(secs(0)).await
    };
    let (reserved, stopped) = tokio::join!(scheduler.reserve("work", 1, secs(30), None), stop);
    assert!(matches!(reserved, Err(Error::Stopped)), "{reserved:?}");
    stopped.unwrap();
    assert_eq!(world.now().since(begun).as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_report_that_comes_too_late_changes_nothing_and_the_task_goes_to_another() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let id = id_of(&scheduler, job().timeout(secs(10))).await;
    let first = reserve(&scheduler, 1).await.remove(0);
    let second = scheduler.reserve("work", 1, secs(30), None).await.unwrap().remove(0);
    assert_eq!((second.token.id, second.token.attempt), (id, 2));
    for report in [Report::Done("1".into()), failed(), Report::Released, Report::Buried("x".into())] {
        let late = scheduler.report(first.token, report).await;
        assert!(matches!(late, Err(Error::Late)), "{late:?}");
    }
    assert!(matches!(scheduler.touch(first.token, secs(5)).await, Err(Error::Late)));
    scheduler.report(second.token, Report::Done("2".into())).await.unwrap();
    let again = scheduler.report(second.token, Report::Done("3".into())).await;
    assert!(matches!(again, Err(Error::Late)), "{again:?}");
    assert_eq!(scheduler.result(id).await.unwrap().read::<u32>().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn touching_gives_more_time_and_a_worker_may_ask_for_its_own() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let id = id_of(&scheduler, job()).await;
    let reserved = scheduler.reserve("work", 1, secs(0), Some(secs(100))).await.unwrap().remove(0);
    assert_eq!(reserved.time_to_run, secs(100));
    for _ in 0..5 {
        pass(secs(90)).await;
        scheduler.touch(reserved.token, secs(100)).await.unwrap();
    }
    scheduler.report(reserved.token, Report::Done("1".into())).await.unwrap();
    assert_eq!(state(&scheduler, id).await, TaskState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_retried_what_is_released_is_not_counted_and_what_is_buried_is_dead() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let retry = RetryPolicy { attempts_max: 2, ..RetryPolicy::DEFAULT };
    let id = id_of(&scheduler, job().retry(retry)).await;
    let reserved = reserve(&scheduler, 1).await.remove(0);
    let after = scheduler.report(reserved.token, Report::Released).await.unwrap();
    assert_eq!(after.state, TaskState::Scheduled);
    let reserved = reserve(&scheduler, 1).await.remove(0);
    let delayed = Report::Failed { error: "busy".into(), delay: Some(secs(20)) };
    let after = scheduler.report(reserved.token, delayed).await.unwrap();
    assert_eq!((after.state, after.next_at), (TaskState::Retrying, Some(world.now() + secs(20))));
    let reserved = scheduler.reserve("work", 1, secs(30), None).await.unwrap().remove(0);
    assert_eq!(scheduler.report(reserved.token, failed()).await.unwrap().state, TaskState::Dead);
    scheduler.retry(id).await.unwrap();
    let reserved = reserve(&scheduler, 1).await.remove(0);
    scheduler.report(reserved.token, Report::Buried("broken".into())).await.unwrap();
    let result = scheduler.result(id).await.unwrap();
    assert_eq!((result.state, result.error.as_deref()), (EndState::Dead, Some("broken")));
}

#[tokio::test(start_paused = true)]
async fn batches_are_answered_for_each_and_lanes_are_reserved_one_at_a_time() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let settings = QueueSettings { on_exhausted: OnExhausted::DeadLetter, ..QueueSettings::default() };
    scheduler.set_queue("work", settings).await.unwrap();
    let (first, _) = (id_of(&scheduler, job().lane("x")).await, id_of(&scheduler, job().lane("x")).await);
    let free = id_of(&scheduler, job()).await;
    let reserved = reserve(&scheduler, 10).await;
    let mut got = ids(&reserved);
    got.sort_unstable();
    let mut expected = vec![first, free];
    expected.sort_unstable();
    assert_eq!(got, expected, "the second of the lane waits for the first");
    let mut reports: Vec<_> =
        reserved.iter().map(|reserved| (reserved.token, Report::Done("1".into()))).collect();
    reports.push((reserved[0].token, failed()));
    let answers = scheduler.report_many(reports).await;
    assert!(matches!(answers[..], [Ok(_), Ok(_), Err(Error::Late)]), "{answers:?}");
    assert_eq!(reserve(&scheduler, 10).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_away_while_waiting_gets_nothing_and_the_next_does() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let gone = tokio::time::timeout(secs(1), scheduler.reserve("work", 1, secs(20), None)).await;
    assert!(gone.is_err(), "it waited until it was dropped");
    let id = id_of(&scheduler, job()).await;
    assert_eq!(ids(&reserve(&scheduler, 1).await), [id]);
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_holds_survives_a_graceful_stop() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let id = id_of(&scheduler, job().timeout(secs(60))).await;
    let reserved = reserve(&scheduler, 1).await.remove(0);
    let waiting = scheduler.reserve("work", 1, secs(30), None);
    let begun = world.now();
    let (waiting, stopped) = tokio::join!(waiting, scheduler.stop(secs(10)));
    assert!(matches!(waiting, Err(Error::Stopped)), "{waiting:?}");
    stopped.unwrap();
    assert_eq!(world.now().since(begun).as_secs(), 0, "nobody waits for workers");
    let scheduler = world.start(world.builder()).await;
    assert_eq!(reserve(&scheduler, 1).await, [], "its worker still has it");
    scheduler.report(reserved.token, Report::Done("1".into())).await.unwrap();
    assert_eq!(state(&scheduler, id).await, TaskState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_holds_survives_the_loss_of_its_owner() {
    let (world, (observer, mut notes)) = (World::new(), notes());
    let lost = world.start(world.builder().observer(observer)).await;
    let id = id_of(&lost, job().timeout(secs(60))).await;
    let reserved = reserve(&lost, 1).await.remove(0);
    notes.until(|seen| *seen == Seen::Began(id)).await;
    // As after a crash: the first hears nothing of it.
    let scheduler = world.start(world.builder()).await;
    assert_eq!(reserve(&scheduler, 1).await, [], "its worker still has it");
    scheduler.report(reserved.token, Report::Done("1".into())).await.unwrap();
    assert_eq!(state(&scheduler, id).await, TaskState::Succeeded);
}

#[tokio::test]
async fn what_is_quiet_has_on_record_what_workers_were_given() {
    // A clock that stands still would never come to the moment at which it is noted.
    let world = World::new();
    let clock = Clock::of_tests(VirtualClock::at(Timestamp::from_secs(1_800_000_000)));
    let lost = world.start(Scheduler::builder().clock(clock.clone())).await;
    let id = id_of(&lost, job().timeout(secs(60))).await;
    let reserved = reserve(&lost, 1).await.remove(0);
    lost.quiet().await.unwrap();
    // As after a crash.
    let scheduler = world.start(Scheduler::builder().clock(clock)).await;
    assert_eq!(reserve(&scheduler, 1).await, [], "its worker still has it");
    scheduler.report(reserved.token, Report::Done("1".into())).await.unwrap();
    assert_eq!(state(&scheduler, id).await, TaskState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_never_reports_is_not_blamed_for_the_loss_of_its_owners() {
    let world = World::new();
    let mut scheduler = world.start(world.builder()).await;
    let id = id_of(&scheduler, job().timeout(secs(10))).await;
    for _ in 0..5 {
        let (observer, mut notes) = notes();
        scheduler = world.start(world.builder().observer(observer)).await;
        let reserved = scheduler.reserve("work", 1, secs(30), None).await.unwrap();
        assert_eq!(ids(&reserved), [id], "it is not set aside");
        notes.until(|seen| *seen == Seen::Began(id)).await;
    }
    assert_eq!(state(&scheduler, id).await, TaskState::Reserved);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_a_queue_holds_for_its_workers_too() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let settings = QueueSettings { running_max: Some(2), ..QueueSettings::default() };
    scheduler.set_queue("work", settings).await.unwrap();
    for _ in 0..5 {
        id_of(&scheduler, job()).await;
    }
    let reserved = reserve(&scheduler, 10).await;
    assert_eq!((reserved.len(), reserve(&scheduler, 10).await.len()), (2, 0));
    scheduler.report(reserved[0].token, Report::Done("1".into())).await.unwrap();
    assert_eq!(reserve(&scheduler, 10).await.len(), 1);
    scheduler.pause("work").await.unwrap();
    scheduler.report(reserved[1].token, Report::Done("1".into())).await.unwrap();
    assert_eq!(reserve(&scheduler, 10).await.len(), 0, "the queue is paused");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_others_of_its_batch_has_all_its_time_or_is_not_given() {
    // A task without a lane began at once, and was given away when the start of another was written down: with what was
    // left of its time, or when that was over, or when it had expired (found by `punctual-sim`, seeds 17 and 394).
    let (world, script) = (World::of(1), Script::default());
    let scheduler = world.builder().start(script.store(world.store.clone())).await.unwrap();
    // What was due before the start is written down first.
    pass(secs(1)).await;
    let free = id_of(&scheduler, job().timeout(secs(10))).await;
    id_of(&scheduler, job().timeout(secs(5))).await;
    let expired = id_of(&scheduler, job().expires_at(world.now() + secs(5))).await;
    let laned = id_of(&scheduler, job().lane("x")).await;
    script.then_late(Call::Record, secs(8));
    let reserved = scheduler.reserve("work", 10, secs(0), None).await.unwrap();
    assert_eq!(ids(&reserved), [free, laned]);
    assert_eq!(scheduler.result(expired).await.unwrap().state, EndState::Expired);
    pass(secs(9)).await;
    scheduler.report(reserved[0].token, Report::Done("1".into())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_report_whose_record_was_lost_is_unknown_and_the_next_worker_is_heard() {
    // It was never answered, and the report of the next worker was called late because of it (found by `punctual-sim`,
    // seeds 13 and 47).
    let (world, script) = (World::of(1), Script::default());
    let scheduler = world.builder().start(script.store(world.store.clone())).await.unwrap();
    let id = id_of(&scheduler, job()).await;
    let first = scheduler.reserve("work", 1, secs(0), None).await.unwrap().remove(0);
    pass(secs(1)).await;
    script.then(Call::Record, Fate::AnswerLost);
    let lost = scheduler.report(first.token, failed()).await;
    assert!(matches!(lost, Err(Error::Unknown)), "{lost:?}");
    let second = scheduler.reserve("work", 1, secs(30), None).await.unwrap().remove(0);
    assert_eq!((second.token.id, second.token.attempt), (id, 2));
    scheduler.report(second.token, Report::Done("2".into())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_not_late_because_its_partition_begins_anew() {
    // Whoever asked for more time at that moment was told that its time was over (found by `punctual-sim --seed 19`).
    let (world, script) = (World::of(1), Script::default());
    let scheduler = world.builder().start(script.store(world.store.clone())).await.unwrap();
    id_of(&scheduler, job()).await;
    let reserved = scheduler.reserve("work", 1, secs(0), None).await.unwrap().remove(0);
    pass(secs(1)).await;
    script.then(Call::Record, Fate::AnswerLost).then_late(Call::Write, secs(1));
    assert!(matches!(scheduler.schedule(job()).await, Err(Error::Unknown)));
    let touched = scheduler.touch(reserved.token, secs(60)).await;
    assert!(matches!(touched, Err(Error::NotOwner)), "{touched:?}");
    pass(secs(2)).await;
    scheduler.touch(reserved.token, secs(60)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_workers_hold_does_not_count_where_its_partition_has_gone() {
    // Its place in the queue was taken for ever: the report went to the new owner (found by `punctual-sim --seed 134`).
    let (world, (observer, mut notes)) = (World::of(2), notes());
    let mut settings = Settings::default();
    let queue = QueueId(1);
    settings.queues.set(queue, QueueSettings { running_max: Some(1), ..QueueSettings::default() });
    let parts = Parts {
        store: Arc::new(world.store.clone()),
        executor: Arc::new(Handlers::default()),
        observer: Arc::new(observer),
        clock: Clock::simulated(world.hands.clone()),
        settings,
        name: "node".into(),
        inline: false,
        forward_to: None,
    };
    let (shell, commands) = Shell::new(parts).await.unwrap();
    tokio::spawn(shell.run());
    commands.send(Command::TrustUntil(BootTime::from_micros(u64::MAX))).await.unwrap();
    let fences = world.store.ownerships().await.unwrap().iter().map(|ownership| ownership.fence()).collect();
    commands.send(Command::Claim(fences)).await.unwrap();
    for _ in 0..2 {
        notes.until(|seen| matches!(seen, Seen::Taken(_))).await;
    }
    for route in [0, 1].map(Route::anywhere) {
        let spec = Spec::new(Target::Worker, world.now()).into();
        let (priority, on_conflict) = (Priority::default(), OnConflict::default());
        let ask = Ask::Create(vec![Draft { route, queue, priority, spec, on_conflict }]);
        let (reply, created) = oneshot::channel();
        let (partition, entries) = (route.partition(2), Entries::default());
        commands.send(Command::Ask { partition, ask, reply, entries }).await.unwrap();
        assert!(matches!(created.await.unwrap(), Answer::Created(_)));
    }
    let reserve = async || {
        let (reply, reserved) = oneshot::channel();
        let reserve = Reserve { queue, max: 2, wait: secs(1), time_to_run: None, reply };
        commands.send(Command::Reserve(reserve)).await.unwrap();
        reserved.await.unwrap()
    };
    let first = reserve().await;
    assert_eq!((first.len(), reserve().await.len()), (1, 0));
    commands.send(Command::HandOver(first[0].partition)).await.unwrap();
    notes.until(|seen| matches!(seen, Seen::Released(_))).await;
    assert_eq!(reserve().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_bad_reserve_is_refused() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    for (max, wait, time_to_run) in
        [(0, secs(0), None), (1_001, secs(0), None), (1, secs(31), None), (1, secs(0), Some(secs(0)))]
    {
        let refused = scheduler.reserve("work", max, wait, time_to_run).await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    }
}
