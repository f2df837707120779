//! The same unique key, lane and time again is the same task; and many tasks at once.

use punctual::{EndState, Error, OnConflict, QueueSettings, Refusal, Scheduled};

use super::world::{Log, World, id_of, secs, task};

#[tokio::test(start_paused = true)]
async fn the_same_key_replaces_keeps_or_refuses_as_asked() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let at = world.now() + secs(60);
    let rent = |payload: &str| task(payload).at(at).unique_key("rent");
    let id = id_of(&scheduler, rent("one")).await;
    assert_eq!(scheduler.schedule(rent("two")).await.unwrap(), Scheduled::Replaced(id));
    let keep = rent("three").on_conflict(OnConflict::Keep);
    assert_eq!(scheduler.schedule(keep).await.unwrap(), Scheduled::Kept(id));
    let refuse = rent("four").on_conflict(OnConflict::Error);
    assert!(matches!(scheduler.schedule(refuse).await, Err(Error::Conflict(other)) if other == id));
    assert_eq!(scheduler.result(id).await.unwrap().state, EndState::Succeeded);
    assert_eq!(log.lines(), ["two"]);
}

#[tokio::test(start_paused = true)]
async fn what_has_finished_never_runs_again_under_the_same_key() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let at = world.now();
    let rent = || task("rent").at(at).unique_key("rent");
    let id = id_of(&scheduler, rent()).await;
    scheduler.result(id).await.unwrap();
    // Far in the past by now, and still the same task rather than a refusal.
    tokio::time::advance(secs(3600)).await;
    assert_eq!(scheduler.schedule(rent()).await.unwrap(), Scheduled::Ended(id, EndState::Succeeded));
    assert_eq!(log.lines(), ["rent"]);
}

#[tokio::test(start_paused = true)]
async fn another_lane_or_time_is_another_task() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let at = world.now() + secs(60);
    let tasks = [
        task("").at(at).unique_key("rent"),
        task("").at(at + secs(1)).unique_key("rent"),
        task("").at(at).unique_key("rent").lane("ana"),
        task("").at(at).unique_key("rent").queue("other"),
        task("").at(at).unique_key("rents"),
    ];
    for task in tasks {
        assert!(matches!(scheduler.schedule(task).await.unwrap(), Scheduled::New(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_key_from_many_callers_at_once_is_one_task() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let at = world.now() + secs(60);
    let calls = (0..50).map(|_| scheduler.schedule(task("once").at(at).unique_key("rent")));
    let results: Vec<_> =
        futures_util::future::join_all(calls).await.into_iter().map(Result::unwrap).collect();
    let new = results.iter().filter(|it| matches!(it, Scheduled::New(_))).count();
    assert_eq!(new, 1);
    assert!(results.iter().all(|it| it.id() == results[0].id()));
    scheduler.result(results[0].id()).await.unwrap();
    assert_eq!(log.lines(), ["once"]);
}

#[tokio::test(start_paused = true)]
async fn one_bad_task_does_not_spoil_a_batch() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let at = world.now() + secs(60);
    let tasks = vec![
        task("a").at(at),
        task("b").at(at).lane(""),
        task("c").at(at),
        task("d").at(world.now() - secs(60)),
        task("e").at(at).unique_key("same"),
        task("f").at(at).unique_key("same").on_conflict(OnConflict::Keep),
    ];
    let results = scheduler.schedule_many(tasks).await;
    assert!(matches!(results[0], Ok(Scheduled::New(_))));
    assert!(matches!(results[1], Err(Error::Refused(Refusal::Empty("the lane")))));
    assert!(matches!(results[2], Ok(Scheduled::New(_))));
    assert!(matches!(results[3], Err(Error::DueInPast)));
    let Ok(Scheduled::New(same)) = results[4] else { panic!("{:?}", results[4]) };
    assert!(matches!(results[5], Ok(Scheduled::Kept(id)) if id == same));
    for id in [0, 2, 4].map(|place: usize| results[place].as_ref().unwrap().id()) {
        scheduler.result(id).await.unwrap();
    }
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, ["a", "c", "e"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_key_is_the_same_task_although_somebody_wants_to_pin_its_queue() {
    // Two tasks of one key lay in two partitions.
    let (world, log) = (World::of(8), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let at = world.now() + secs(60);
    let rent = || task("rent").queue("q").at(at).unique_key("rent").on_conflict(OnConflict::Keep);
    let id = id_of(&scheduler, rent()).await;
    let pinned = QueueSettings { pinned: true, ..QueueSettings::default() };
    scheduler.set_queue("q", pinned).await.unwrap_err();
    assert_eq!(scheduler.schedule(rent()).await.unwrap(), Scheduled::Kept(id));
}
