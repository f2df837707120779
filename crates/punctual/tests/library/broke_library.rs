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
    let waits = Waits::Growing {
        min: Duration::MAX,
        max: Duration::MAX,
        factor_percent: 200,
        jitter_percent: 100,
    };
    let policy = RetryPolicy { waits, ..RetryPolicy::DEFAULT };
    let Ok(_) = scheduler.schedule(NewTask::new("fails").retry(policy)).await else { return };
    pass(secs(60)).await;
    let reloads = notes.so_far().iter().filter(|seen| matches!(seen, Seen::Reloaded(_))).count();
    println!("{reloads} reloads");
    let innocent = scheduler.schedule(task("innocent")).await;
    pass(secs(60)).await;
    assert_eq!((reloads, log.lines().len()), (0, 1), "{innocent:?}");
}
