//! Failed attempts: how they are counted, spaced, stopped and given up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual::{EndState, Error, Failure, Found, Job, NewTask, RetryPolicy, TaskState, Timestamp, Waits};

use super::world::{Log, Seen, World, id_of, live, notes, pass, secs, task};

/// When each attempt of a task that always fails began, counted from its time.
async fn attempts_of(policy: RetryPolicy) -> (Vec<Duration>, EndState) {
    let world = World::new();
    let starts: Arc<Mutex<Vec<Timestamp>>> = Arc::default();
    let (seen, hands) = (starts.clone(), world.hands.clone());
    let scheduler = world
        .start(world.builder().handler("fail", move |_: Job<()>| {
            seen.lock().unwrap().push(hands.now().wall);
            async { Err::<(), _>(Failure::retry("always")) }
        }))
        .await;
    let at = world.now() + secs(1);
    let id = id_of(&scheduler, NewTask::new("fail").at(at).retry(policy)).await;
    let state = scheduler.result(id).await.unwrap().state;
    let starts = starts.lock().unwrap();
    (starts.iter().map(|start| start.since(at)).collect(), state)
}

#[tokio::test(start_paused = true)]
async fn the_webhook_preset_keeps_its_published_times() {
    let (starts, state) = attempts_of(RetryPolicy::WEBHOOKS).await;
    let waits: Vec<u64> = starts.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(waits, [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]);
    assert_eq!(state, EndState::Dead);
}

#[tokio::test(start_paused = true)]
async fn every_preset_makes_as_many_attempts_as_it_says() {
    assert_eq!(attempts_of(RetryPolicy::NEVER).await.0.len(), 1);
    assert_eq!(attempts_of(RetryPolicy::DEFAULT).await.0.len(), 25);
    assert_eq!(attempts_of(RetryPolicy::PAGERDUTY).await.0.len(), 101);
    let patient = RetryPolicy { age_max: Some(secs(86_400)), ..RetryPolicy::SCHEDULE };
    let (starts, _) = attempts_of(patient).await;
    let hours: Vec<u64> = starts.iter().map(|start| start.as_secs() / 3600).collect();
    assert_eq!(hours, [0, 0, 1, 5, 9, 13, 17, 21, 25]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_ask_for_a_longer_wait() {
    let world = World::new();
    let scheduler = world
        .start(world.builder().handler("busy", |job: Job<()>| async move {
            if job.attempt == 1 { Err(Failure::retry_after("busy", secs(7200))) } else { Ok(job.attempt) }
        }))
        .await;
    let begun = world.now();
    let id = id_of(&scheduler, NewTask::new("busy")).await;
    assert_eq!(scheduler.result(id).await.unwrap().read::<u32>().unwrap(), 2);
    assert!(world.now().since(begun) >= secs(7200));
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_give_up_at_once_and_the_dead_task_can_be_tried_again() {
    let world = World::new();
    let scheduler = world
        .start(world.builder().handler("picky", |job: Job<()>| async move {
            if job.attempt == 1 { Err(Failure::give_up("never again")) } else { Ok(job.attempt) }
        }))
        .await;
    let id = id_of(&scheduler, NewTask::new("picky")).await;
    let dead = scheduler.result(id).await.unwrap();
    assert_eq!((dead.state, dead.error.as_deref()), (EndState::Dead, Some("never again")));
    assert!(matches!(dead.read::<u32>(), Err(Error::NotSucceeded { state: EndState::Dead, .. })));
    let task = scheduler.retry(id).await.unwrap();
    assert_eq!((task.attempts, task.counted_attempts()), (1, 0));
    assert_eq!(scheduler.result(id).await.unwrap().read::<u32>().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failed_attempt_and_nothing_else() {
    let (world, log) = (World::of(1), Log::default());
    let builder = world.builder().handler("log", log.handler());
    let scheduler = world.start(builder.handler("panic", panicking)).await;
    let id = id_of(&scheduler, NewTask::new("panic").retry(RetryPolicy::NEVER)).await;
    let dead = scheduler.result(id).await.unwrap();
    assert_eq!(dead.state, EndState::Dead);
    assert_eq!(dead.error.as_deref(), Some("the handler panicked: out of cheese"));
    let id = id_of(&scheduler, task("still here")).await;
    assert_eq!(scheduler.result(id).await.unwrap().state, EndState::Succeeded);
}

async fn panicking(_: Job<()>) -> Result<(), Failure> {
    panic!("out of cheese")
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_cannot_be_read_is_not_tried_again() {
    let world = World::new();
    let double = |job: Job<u32>| async move { Ok(job.payload * 2) };
    let scheduler = world.start(world.builder().handler("double", double)).await;
    let id = id_of(&scheduler, NewTask::new("double").payload(&"two").unwrap()).await;
    let dead = scheduler.result(id).await.unwrap();
    assert_eq!(dead.state, EndState::Dead);
    assert!(dead.error.unwrap().starts_with("the payload cannot be read: "));
    let Found::Ended(ended) = scheduler.find(id).await.unwrap().unwrap().found else {
        panic!("it has ended")
    };
    assert_eq!(ended.task.attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn results_come_back_as_the_type_they_were() {
    let world = World::new();
    let double = |job: Job<u32>| async move { Ok(job.payload * 2) };
    let nothing = |_: Job<()>| async { Ok(()) };
    let scheduler = world.start(world.builder().handler("double", double).handler("nothing", nothing)).await;
    let id = id_of(&scheduler, NewTask::new("double").payload(&21).unwrap()).await;
    let result = scheduler.result(id).await.unwrap();
    assert_eq!(result.read::<u32>().unwrap(), 42);
    assert!(matches!(result.read::<String>(), Err(Error::Payload(_))));
    let id = id_of(&scheduler, NewTask::new("nothing")).await;
    scheduler.result(id).await.unwrap().read::<()>().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_result_too_large_to_keep_is_said_to_be_so() {
    let world = World::new();
    let chatty = |_: Job<()>| async { Ok("x".repeat(300 * 1024)) };
    let ranting = |_: Job<()>| async { Err::<(), _>(Failure::give_up("é".repeat(100_000))) };
    let scheduler = world.start(world.builder().handler("chatty", chatty).handler("ranting", ranting)).await;
    let id = id_of(&scheduler, NewTask::new("chatty")).await;
    let dead = scheduler.result(id).await.unwrap();
    assert_eq!(
        dead.error.as_deref(),
        Some("it ran, but its result has 307202 bytes, and 262144 is the most")
    );
    let id = id_of(&scheduler, NewTask::new("ranting")).await;
    assert_eq!(scheduler.result(id).await.unwrap().error.unwrap().len(), 64 * 1024);
    let Found::Ended(ended) = scheduler.find(id).await.unwrap().unwrap().found else {
        panic!("it has ended")
    };
    assert_eq!(ended.task.last_error.unwrap().len(), 4096, "what waits keeps less of it");
}

/// Says when it is dropped.
struct Alarm(Arc<AtomicBool>);

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_handler_is_stopped_when_its_time_is_up() {
    let world = World::new();
    let stopped = Arc::new(AtomicBool::new(false));
    let alarm = stopped.clone();
    let scheduler = world
        .start(world.builder().handler("hang", move |job: Job<()>| {
            let alarm = Alarm(alarm.clone());
            async move {
                if job.attempt == 1 {
                    std::future::pending::<()>().await;
                }
                drop(alarm);
                Ok(job.attempt)
            }
        }))
        .await;
    let begun = world.now();
    let id = id_of(&scheduler, NewTask::new("hang").timeout(secs(3))).await;
    pass(Duration::from_millis(3_100)).await;
    assert!(stopped.load(Ordering::Relaxed));
    assert_eq!(scheduler.find(id).await.unwrap().unwrap().state(), TaskState::Retrying);
    assert_eq!(live(&scheduler, id).await.last_error.as_deref(), Some("the attempt took too long"));
    assert_eq!(scheduler.result(id).await.unwrap().read::<u32>().unwrap(), 2);
    assert!(world.now().since(begun) < secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_waits_for_ever_harms_nobody() {
    // Its next time overflowed in the engine, which took its partition down again and again.
    let (world, log) = (World::of(1), Log::default());
    let (observer, mut notes) = notes();
    let fails = |_: Job<()>| async { Err::<(), _>(Failure::retry("no")) };
    let builder = world.builder().observer(observer).handler("fails", fails).handler("log", log.handler());
    let scheduler = world.start(builder).await;
    let (min, max) = (Duration::MAX, Duration::MAX);
    let waits = Waits::Growing { min, max, factor_percent: 200, jitter_percent: 100 };
    let patient = NewTask::new("fails").retry(RetryPolicy { waits, ..RetryPolicy::DEFAULT });
    let id = id_of(&scheduler, patient).await;
    pass(secs(60)).await;
    assert_eq!(live(&scheduler, id).await.wake_at, Timestamp::MAX);
    let innocent = id_of(&scheduler, task("innocent")).await;
    assert_eq!(scheduler.result(innocent).await.unwrap().state, EndState::Succeeded);
    assert!(!notes.so_far().iter().any(|seen| matches!(seen, Seen::Reloaded(_))));
}
