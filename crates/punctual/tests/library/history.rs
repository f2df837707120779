//! What has ended is kept as long as its queue says, and no longer; and a node with nothing to do does nothing.

use std::time::Duration;

use punctual::{EndState, Failure, Job, NewTask, QueueSettings, Scheduled, Scheduler};
use punctual_store::faulty::{Call, Fate};

use super::script::{Counting, Script};
use super::world::{Log, Seen, World, id_of, notes, pass, secs, task};

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// After a start, all history is looked at within this time.
const SPREAD: Duration = Duration::from_secs(600);

async fn is_kept<S: punctual::Store>(scheduler: &Scheduler<S>, id: punctual::TaskId) -> bool {
    scheduler.find(id).await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn the_finished_are_kept_a_day_the_dead_a_week_and_their_keys_two() {
    let (world, log) = (World::new(), Log::default());
    let give_up = |_: Job<()>| async { Err::<(), _>(Failure::give_up("never")) };
    let builder = world.builder().handler("log", log.handler()).handler("give up", give_up);
    let scheduler = world.start(builder).await;
    let at = world.now();
    let rent = || task("rent").at(at).unique_key("rent").queue("mail");
    let done = id_of(&scheduler, rent()).await;
    let dead = id_of(&scheduler, NewTask::new("give up").payload(&()).unwrap().queue("junk")).await;
    assert_eq!(scheduler.result(done).await.unwrap().state, EndState::Succeeded);
    assert_eq!(scheduler.result(dead).await.unwrap().state, EndState::Dead);
    pass(DAY - secs(1)).await;
    assert!(is_kept(&scheduler, done).await, "a day is not over");
    pass(secs(2)).await;
    assert!(!is_kept(&scheduler, done).await, "a day is over");
    pass(6 * DAY - secs(2)).await;
    assert!(is_kept(&scheduler, dead).await, "a week is not over");
    pass(secs(2)).await;
    assert!(!is_kept(&scheduler, dead).await, "a week is over");
    pass(7 * DAY - secs(2)).await;
    let again = scheduler.schedule(rent()).await.unwrap();
    assert_eq!(again, Scheduled::Ended(done, EndState::Succeeded), "its key is remembered");
    pass(HOUR + secs(2)).await;
    assert!(scheduler.schedule(rent()).await.is_err(), "its key is forgotten, and its time is past");
    assert_eq!(log.lines(), ["rent"]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_calls_its_store_only_when_history_falls_due() {
    let (world, log) = (World::new(), Log::default());
    let store = Counting::new(world.store.clone());
    let builder = world.builder().handler("log", log.handler());
    let scheduler = builder.start(store.clone()).await.unwrap();
    let id = id_of(&scheduler, task("once")).await;
    scheduler.result(id).await.unwrap();
    store.calls();
    pass(2 * SPREAD).await;
    assert_eq!(store.calls(), 4, "a new queue is looked at once in each partition");
    pass(DAY - 2 * SPREAD - secs(1)).await;
    assert_eq!(store.calls(), 0);
    pass(secs(2)).await;
    assert_eq!(store.calls(), 1, "the day is over");
    assert!(!is_kept(&scheduler, id).await);
    store.calls();
    pass(30 * DAY).await;
    assert_eq!(store.calls(), 0, "nothing is left to be dropped");
}

#[tokio::test(start_paused = true)]
async fn history_of_an_earlier_process_is_dropped_in_its_time() {
    for down in [HOUR, 2 * DAY] {
        let (world, log) = (World::new(), Log::default());
        let builder = || world.builder().handler("log", log.handler());
        let scheduler = world.start(builder()).await;
        let id = id_of(&scheduler, task("once")).await;
        scheduler.result(id).await.unwrap();
        let ended = world.now();
        scheduler.stop(secs(1)).await.unwrap();
        pass(down).await;
        let scheduler = world.start(builder()).await;
        let due_at = (ended + DAY).max(world.now() + SPREAD);
        pass(due_at.since(world.now()).saturating_sub(secs(1))).await;
        if down < DAY {
            assert!(is_kept(&scheduler, id).await, "down for {down:?}");
        }
        pass(secs(2)).await;
        assert!(!is_kept(&scheduler, id).await, "down for {down:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_to_drop_history_is_asked_again_later() {
    let (world, log, script) = (World::new(), Log::default(), Script::default());
    let (observer, mut notes) = notes();
    let builder = world.builder().observer(observer).handler("log", log.handler());
    let scheduler = builder.start(script.store(world.store.clone())).await.unwrap();
    let id = id_of(&scheduler, task("once")).await;
    scheduler.result(id).await.unwrap();
    pass(SPREAD).await;
    script.then(Call::Write, Fate::RequestLost).then(Call::Write, Fate::AnswerLost);
    pass(DAY - SPREAD).await;
    notes.until(|seen| *seen == Seen::Trouble).await;
    assert!(is_kept(&scheduler, id).await);
    notes.until(|seen| *seen == Seen::Trouble).await;
    assert!(!is_kept(&scheduler, id).await, "it was dropped, and nobody heard of it");
    pass(HOUR).await;
    assert!(notes.so_far().iter().all(|seen| *seen != Seen::Trouble), "twice, and then it was well");
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_to_keep_less_drops_what_it_has_too_much() {
    let (world, log) = (World::new(), Log::default());
    let (observer, mut notes) = notes();
    let scheduler = world.start(world.builder().observer(observer).handler("log", log.handler())).await;
    let id = id_of(&scheduler, task("once").queue("mail")).await;
    scheduler.result(id).await.unwrap();
    pass(2 * HOUR).await;
    assert!(is_kept(&scheduler, id).await);
    let brief = QueueSettings { keep_succeeded: HOUR, ..QueueSettings::default() };
    scheduler.set_queue("mail", brief).await.unwrap();
    notes.until(|seen| *seen == Seen::Dropped(1)).await;
    assert!(!is_kept(&scheduler, id).await);
}

#[tokio::test(start_paused = true)]
async fn a_queue_keeps_as_many_bytes_as_it_may_and_the_newest_of_them() {
    let (world, log) = (World::new(), Log::default());
    let (observer, mut notes) = notes();
    let scheduler = world.start(world.builder().observer(observer).handler("log", log.handler())).await;
    let small = QueueSettings { keep_bytes: Some(20_000), ..QueueSettings::default() };
    scheduler.set_queue("mail", small).await.unwrap();
    let mut ids = Vec::new();
    for number in 0..20 {
        let line = format!("{number}{}", "x".repeat(2_000));
        let id = id_of(&scheduler, task(&line).queue("mail")).await;
        scheduler.result(id).await.unwrap();
        ids.push(id);
        pass(secs(2)).await;
    }
    notes.until(|seen| matches!(seen, Seen::Dropped(_))).await;
    let mut kept = Vec::new();
    for id in &ids {
        kept.push(is_kept(&scheduler, *id).await);
    }
    let count = kept.iter().filter(|is_kept| **is_kept).count();
    assert!((3..=10).contains(&count), "{kept:?}");
    assert!(!kept[0] && kept[19], "the oldest go first: {kept:?}");
}
