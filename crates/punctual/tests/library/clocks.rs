//! Wall clocks that are set while work waits.

use std::time::Duration;

use punctual::clock::ClockStep;
use punctual::{EndState, Job, NewTask};

use super::world::{Log, Seen, World, id_of, notes, pass, secs, task};

const HOUR: i64 = 3_600_000_000;

#[tokio::test(start_paused = true)]
async fn a_step_back_neither_runs_again_nor_freezes() {
    let (world, log) = (World::new(), Log::default());
    let (observer, mut notes) = notes();
    let scheduler = world.start(world.builder().observer(observer).handler("log", log.handler())).await;
    let done = id_of(&scheduler, task("done").after(secs(1))).await;
    let waiting = id_of(&scheduler, task("waiting").after(secs(10))).await;
    scheduler.result(done).await.unwrap();
    world.hands.step_wall(-HOUR);
    notes.until(|seen| *seen == Seen::Stepped(ClockStep { micros: -HOUR, believed: true })).await;
    let (stepped, due) = (world.now(), world.now() + secs(5));
    let new = id_of(&scheduler, task("new").at(due)).await;
    scheduler.result(new).await.unwrap();
    let took = world.now().since(stepped);
    assert!((secs(5)..secs(6)).contains(&took), "neither early nor an hour late: {took:?}");
    scheduler.result(waiting).await.unwrap();
    assert!((secs(3_600)..secs(3_700)).contains(&world.now().since(stepped)), "at the time it was promised");
    assert_eq!(log.lines(), ["done", "new", "waiting"]);
}

#[tokio::test(start_paused = true)]
async fn a_small_step_forward_is_followed_within_a_second() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let id = id_of(&scheduler, task("soon").after(secs(300))).await;
    world.hands.step_wall(299_500_000);
    let begun = world.hands.true_now();
    scheduler.result(id).await.unwrap();
    assert!(world.hands.true_now().wall.since(begun.wall) <= secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_large_jump_forward_fires_nothing_unless_it_stays() {
    let (world, log) = (World::new(), Log::default());
    let (observer, mut notes) = notes();
    let scheduler = world.start(world.builder().observer(observer).handler("log", log.handler())).await;
    let next_year = id_of(&scheduler, task("next year").after(secs(365 * 86_400))).await;
    let soon = id_of(&scheduler, task("soon").after(secs(20))).await;
    world.hands.step_wall(400 * 24 * HOUR);
    notes.until(|seen| matches!(seen, Seen::Stepped(ClockStep { believed: false, .. }))).await;
    // What is asked for meanwhile is meant in the time that is believed.
    let meanwhile = id_of(&scheduler, task("meanwhile").after(secs(5))).await;
    scheduler.result(meanwhile).await.unwrap();
    scheduler.result(soon).await.unwrap();
    assert_eq!(log.lines(), ["meanwhile", "soon"]);
    world.hands.step_wall(-400 * 24 * HOUR);
    pass(secs(3_600)).await;
    assert_eq!(log.lines().len(), 2, "it was a mistake, and nobody was harmed");
    world.hands.step_wall(400 * 24 * HOUR);
    let begun = world.hands.true_now();
    assert_eq!(scheduler.result(next_year).await.unwrap().state, EndState::Succeeded);
    let took = world.hands.true_now().wall.since(begun.wall);
    assert!((secs(60)..=secs(62)).contains(&took), "it stayed for a minute, so it is believed: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_step_neither_prolongs_nor_ends_an_attempt() {
    for step in [-HOUR, 9 * 60_000_000] {
        let world = World::new();
        let (observer, mut notes) = notes();
        let work = |job: Job<()>| async move {
            if job.attempt == 1 {
                std::future::pending::<()>().await;
            }
            Ok(())
        };
        let scheduler = world.start(world.builder().observer(observer).handler("work", work)).await;
        let id = id_of(&scheduler, NewTask::new("work").timeout(secs(30))).await;
        notes.until_started(id).await;
        let begun = world.hands.true_now();
        world.hands.step_wall(step);
        pass(Duration::from_millis(29_500)).await;
        assert_eq!(scheduler.find(id).await.unwrap().unwrap().running, Some(1), "{step}");
        notes.until(|seen| *seen == Seen::Started(id, 2)).await;
        let took = world.hands.true_now().wall.since(begun.wall);
        assert!((secs(30)..secs(33)).contains(&took), "{step}: {took:?}");
    }
}
