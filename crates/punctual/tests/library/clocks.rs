//! Wall clocks that are set while work waits.

use std::time::Duration;

use punctual::clock::{Clock, ClockStep, OddStart, VirtualClock};
use punctual::{EndState, Job, Limits, NewTask, Scheduler, Timestamp};

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

const DAY: Duration = Duration::from_secs(86_400);

/// A store with a task that has run and one that waits for two years; its scheduler has stopped.
async fn used_world(log: &Log) -> (World, punctual::TaskId) {
    let world = World::new();
    let limits = Limits { left_per_mark: 1, ..Limits::default() };
    let scheduler = world.start(world.builder().limits(limits).handler("log", log.handler())).await;
    let done = id_of(&scheduler, task("done")).await;
    scheduler.result(done).await.unwrap();
    let waiting = id_of(&scheduler, task("waiting").after(2 * 365 * DAY)).await;
    scheduler.stop(Duration::ZERO).await.unwrap();
    (world, waiting)
}

#[tokio::test(start_paused = true)]
async fn a_first_start_trusts_whatever_the_clock_says() {
    let (world, log) = (World::new(), Log::default());
    let (observer, mut notes) = notes();
    world.hands.step_wall(50 * 365 * 24 * HOUR);
    let scheduler = world.start(world.builder().observer(observer).handler("log", log.handler())).await;
    assert_eq!(scheduler.now(), world.now());
    assert!(!notes.so_far().iter().any(|seen| matches!(seen, Seen::Odd(_))));
}

#[tokio::test(start_paused = true)]
async fn a_start_with_a_date_years_ahead_fires_nothing_unless_it_stays() {
    let log = Log::default();
    let (world, waiting) = used_world(&log).await;
    world.hands.step_wall(10 * 365 * 24 * HOUR);
    let (observer, mut notes) = notes();
    let scheduler = world.start(world.builder().observer(observer).handler("log", log.handler())).await;
    notes.until(|seen| matches!(seen, Seen::Odd(OddStart::Ahead { .. }))).await;
    let soon = id_of(&scheduler, task("soon").after(secs(5))).await;
    scheduler.result(soon).await.unwrap();
    world.hands.step_wall(-10 * 365 * 24 * HOUR);
    pass(secs(3_600)).await;
    assert_eq!(log.lines(), ["done", "soon"], "it was put right in time, and nobody was harmed");
    scheduler.stop(Duration::ZERO).await.unwrap();
    world.hands.step_wall(10 * 365 * 24 * HOUR);
    let begun = world.hands.true_now();
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    assert_eq!(scheduler.result(waiting).await.unwrap().state, EndState::Succeeded);
    let took = world.hands.true_now().wall.since(begun.wall);
    assert!((secs(60)..=secs(62)).contains(&took), "it stayed for a minute, so it is believed: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_start_after_a_long_holiday_runs_what_has_become_due_at_once() {
    let log = Log::default();
    let (world, _) = used_world(&log).await;
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let soon = id_of(&scheduler, task("soon").after(30 * DAY)).await;
    scheduler.stop(Duration::ZERO).await.unwrap();
    pass(90 * DAY).await;
    let (observer, mut notes) = notes();
    let begun = world.now();
    let scheduler = world.start(world.builder().observer(observer).handler("log", log.handler())).await;
    scheduler.result(soon).await.unwrap();
    assert!(world.now().since(begun) < secs(1));
    assert!(!notes.so_far().iter().any(|seen| matches!(seen, Seen::Odd(_))));
}

#[tokio::test(start_paused = true)]
async fn how_far_ahead_a_start_may_be_can_be_set() {
    let log = Log::default();
    let (world, _) = used_world(&log).await;
    pass(3 * DAY).await;
    let clock = || punctual::clock::Clock::simulated(world.hands.clone());
    for (away_max, odd) in [(2 * DAY, true), (Duration::MAX, false)] {
        let (observer, mut notes) = notes();
        let builder = world.builder().clock(clock().guard_start(away_max)).observer(observer);
        let scheduler = world.start(builder).await;
        assert_eq!(notes.so_far().iter().any(|seen| matches!(seen, Seen::Odd(_))), odd, "{away_max:?}");
        scheduler.stop(Duration::ZERO).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_in_1970_repeats_nothing_freezes_nothing_and_can_be_put_right() {
    let log = Log::default();
    let (world, waiting) = used_world(&log).await;
    let right = world.now().as_micros();
    world.hands.step_wall(-right);
    let (observer, mut notes) = notes();
    let scheduler = world.start(world.builder().observer(observer).handler("log", log.handler())).await;
    notes.until(|seen| matches!(seen, Seen::Odd(OddStart::Behind { .. }))).await;
    let begun = world.now();
    for _ in 0..2 {
        let new = id_of(&scheduler, task("new").after(secs(5))).await;
        scheduler.result(new).await.unwrap();
    }
    let took = world.now().since(begun);
    assert!((secs(10)..secs(12)).contains(&took), "on time, by the clock as it is: {took:?}");
    // The date is put right, and the machine was off for two years: no reason to wait for a minute.
    world.hands.step_wall(right);
    pass(secs(2)).await;
    assert_eq!(scheduler.now(), world.now());
    world.hands.step_wall(2 * 365 * 24 * HOUR);
    scheduler.result(waiting).await.unwrap();
    assert_eq!(log.lines(), ["done", "new", "new", "waiting"]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_scheduler_writes_no_time() {
    let log = Log::default();
    let (world, _) = used_world(&log).await;
    let on_record = async || {
        let page = punctual::Store::entries(&world.store, world.now(), "trusted", None, 10).await.unwrap();
        let value = page.first().expect("it was written at the first start").1.value.clone();
        Timestamp::from_micros(i64::from_be_bytes(value[..].try_into().unwrap()))
    };
    pass(DAY).await;
    let begun = world.now();
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    pass(secs(1)).await;
    assert_eq!(on_record().await, begun, "written when it took over");
    pass(secs(3_600)).await;
    assert_eq!(on_record().await, begun, "nothing was written while nothing happened");
    let busy = world.now();
    for _ in 0..20 {
        let id = id_of(&scheduler, task("x")).await;
        scheduler.result(id).await.unwrap();
        pass(secs(1)).await;
    }
    assert_eq!(on_record().await, busy, "once while much was written");
    scheduler.stop(Duration::ZERO).await.unwrap();
    assert_eq!(on_record().await, world.now(), "and at the end");
}

#[tokio::test]
async fn a_virtual_clock_stands_still_until_it_is_set_forward() {
    let (world, log) = (World::new(), Log::default());
    let clock = VirtualClock::at(Timestamp::from_secs(1_800_000_000));
    let builder = Scheduler::builder().clock(Clock::of_tests(clock.clone())).handler("log", log.handler());
    let scheduler = world.start(builder).await;
    let id = id_of(&scheduler, task("tomorrow").after(secs(86_400))).await;
    let quiet = scheduler.quiet().await.unwrap();
    assert_eq!((quiet.now, log.lines().len()), (clock.wall(), 0));
    while let Some(at) = scheduler.quiet().await.unwrap().next_at.filter(|_| log.lines().is_empty()) {
        assert!(at > clock.wall(), "what is quiet has nothing to do now");
        clock.advance_to(at);
    }
    assert_eq!(log.lines(), ["tomorrow"]);
    let waited = clock.wall().since(Timestamp::from_secs(1_800_000_000));
    assert!((secs(86_400)..secs(86_401)).contains(&waited), "{waited:?}");
    assert_eq!(scheduler.result(id).await.unwrap().state, EndState::Succeeded);
    scheduler.stop(secs(1)).await.unwrap();
}

#[tokio::test]
async fn a_virtual_clock_goes_on_from_where_its_store_has_come_to() {
    let world = World::new();
    let (early, late) = (Timestamp::from_secs(1_800_000_000), Timestamp::from_secs(1_900_000_000));
    let clock = VirtualClock::at(early);
    let scheduler = world.start(Scheduler::builder().clock(Clock::of_tests(clock.clone()))).await;
    clock.advance_to(late);
    scheduler.quiet().await.unwrap();
    scheduler.stop(secs(1)).await.unwrap();
    let again = VirtualClock::at_or_later(early);
    world.start(Scheduler::builder().clock(Clock::of_tests(again.clone()))).await;
    assert_eq!(again.wall(), late);
}
