//! Bad input gets a clear, typed error, and changes nothing.

use std::time::{Duration, SystemTime};

use punctual::{
    Error, Filter, IntoTimestamp, Limits, NewTask, Past, QueueSettings, Rate, Refusal, RetryPolicy, Store,
    Timestamp, Waits,
};

use super::world::{Log, MemoryScheduler, World, id_of, secs, task};

/// Nothing is listed, and no queue was made.
async fn assert_untouched(world: &World, scheduler: &MemoryScheduler, what: &str) {
    for filter in [Filter::live(), Filter::ended()] {
        assert_eq!(scheduler.list(&filter, None, 10).await.unwrap().tasks, [], "{what}");
    }
    let queues = world.store.entries(world.now(), "queue", None, 10).await.unwrap();
    assert!(queues.is_empty(), "{what} made {queues:?}");
}

fn refusals(now: Timestamp) -> Vec<(&'static str, NewTask, &'static str)> {
    let long = "x".repeat(501);
    let waits = |waits| RetryPolicy { waits, ..RetryPolicy::DEFAULT };
    let growing = |min: u64, max: u64, factor_percent, jitter_percent| {
        waits(Waits::Growing { min: secs(min), max: secs(max), factor_percent, jitter_percent })
    };
    let none = RetryPolicy { attempts_max: 0, ..RetryPolicy::DEFAULT };
    vec![
        ("an empty queue", task("x").queue(""), "name_empty"),
        ("a long queue", task("x").queue(&"x".repeat(101)), "name_too_long"),
        ("a strange queue", task("x").queue("no/slash"), "queue_name_invalid"),
        ("an empty lane", task("x").lane(""), "name_empty"),
        ("a long lane", task("x").lane(&long), "name_too_long"),
        ("an empty key", task("x").unique_key(""), "name_empty"),
        ("a long key", task("x").unique_key(&long), "name_too_long"),
        ("an empty name", task("x").name(""), "name_empty"),
        ("a long name", task("x").name(&long), "name_too_long"),
        ("no handler", NewTask::new(""), "name_empty"),
        ("a long handler", NewTask::new(&long), "name_too_long"),
        (
            "a large payload",
            NewTask::new("log").payload_bytes(vec![b'1'; 256 * 1024 + 1]),
            "payload_too_large",
        ),
        ("long ago", task("x").at(now - secs(11)), "task_due_in_past"),
        ("before 1970", task("x").at(Timestamp::from_micros(-1)), "time_out_of_range"),
        (
            "after 9999",
            task("x").at(Timestamp::from_micros(Timestamp::MAX.as_micros() + 1)),
            "time_out_of_range",
        ),
        ("the end of time", task("x").at(Timestamp::from_micros(i64::MAX)), "time_out_of_range"),
        ("after a very long time", task("x").after(Duration::MAX), "time_out_of_range"),
        ("after 8,000 years", task("x").after(secs(8_000 * 366 * 86_400)), "time_out_of_range"),
        ("a start_by after 9999", task("x").start_by(Timestamp::from_micros(i64::MAX)), "time_out_of_range"),
        (
            "an expires_at after 9999",
            task("x").expires_at(Timestamp::from_micros(i64::MAX)),
            "time_out_of_range",
        ),
        ("expired before due", task("x").after(secs(9)).expires_at(now + secs(9)), "expires_before_due"),
        ("a priority of 10", task("x").priority(10), "setting_invalid"),
        ("a priority in a lane", task("x").lane("ana").priority(1), "priority_with_lane"),
        ("no time to run", task("x").timeout(Duration::ZERO), "setting_invalid"),
        ("no attempts", task("x").retry(none), "setting_invalid"),
        ("no waits", task("x").retry(waits(Waits::Listed([].as_slice().into()))), "setting_invalid"),
        ("no first wait", task("x").retry(growing(0, 1, 200, 0)), "setting_invalid"),
        ("waits that shrink", task("x").retry(growing(2, 1, 200, 0)), "setting_invalid"),
        ("a factor below one", task("x").retry(growing(1, 2, 99, 0)), "setting_invalid"),
        ("an absurd factor", task("x").retry(growing(1, 2, 1_000_000, 0)), "setting_invalid"),
        ("an absurd jitter", task("x").retry(growing(1, 2, 200, 101)), "setting_invalid"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_bad_task_is_refused_and_changes_nothing() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    for (what, task, code) in refusals(world.now()) {
        let error = scheduler.schedule(task.clone()).await.expect_err(what);
        assert_eq!(error.code(), code, "{what}: {error}");
        assert!(error.to_string().len() > 20 && !error.to_string().ends_with('.'), "{what}: {error}");
        let together = scheduler.schedule_many(vec![task]).await.pop().unwrap().expect_err(what);
        assert_eq!(together.code(), code, "{what}");
        assert_untouched(&world, &scheduler, what).await;
    }
    let load = scheduler.load().await.unwrap();
    assert_eq!((load.in_memory, load.running), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn bad_settings_of_a_queue_are_refused_and_change_nothing() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let rate = |starts, per, burst| Some(Rate { starts, per, burst });
    let good = QueueSettings::default;
    let bad = [
        ("running_max", QueueSettings { running_max: Some(0), ..good() }),
        ("timeout", QueueSettings { timeout: Duration::ZERO, ..good() }),
        ("rate.starts", QueueSettings { rate: rate(0, secs(1), 1), ..good() }),
        ("rate.per", QueueSettings { rate: rate(1, secs(0), 1), ..good() }),
        ("rate.burst", QueueSettings { rate: rate(1, secs(1), 0), ..good() }),
        (
            "retry.attempts",
            QueueSettings { retry: RetryPolicy { attempts_max: 0, ..RetryPolicy::DEFAULT }, ..good() },
        ),
    ];
    for (what, settings) in bad {
        let error = scheduler.set_queue("mail", settings).await.expect_err(what);
        assert!(
            matches!(error, Error::Refused(Refusal::BadSetting { what: named, .. }) if named == what),
            "{error}"
        );
        assert_untouched(&world, &scheduler, what).await;
    }
    for name in ["", "a b", &"x".repeat(101)] {
        assert!(matches!(scheduler.pause(name).await, Err(Error::Refused(_))));
        assert!(matches!(scheduler.queue(name).await, Err(Error::Refused(_))));
        assert_untouched(&world, &scheduler, name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn bad_limits_are_refused_before_anything_begins() {
    let world = World::new();
    let good = Limits::default;
    let bad = [
        ("running_max", Limits { running_max: 0, ..good() }),
        ("running_max", Limits { running_max: u32::MAX, ..good() }),
        ("window_max", Limits { window_max: 0, ..good() }),
        ("loaded_max", Limits { loaded_max: 1, ..good() }),
        ("look_ahead", Limits { look_ahead: Duration::ZERO, ..good() }),
        ("behind_max", Limits { behind_max: 0, ..good() }),
        ("parked_page", Limits { parked_page: 0, ..good() }),
        ("crashes_max", Limits { crashes_max: 0, ..good() }),
        ("asked_max", Limits { asked_max: 0, ..good() }),
        ("payload_max", Limits { payload_max: 1024 * 1024 + 1, ..good() }),
    ];
    for (what, limits) in bad {
        let error = world.builder().limits(limits).start(world.store.clone()).await.err().expect(what);
        assert!(
            matches!(error, Error::Refused(Refusal::BadSetting { what: named, .. }) if named == what),
            "{error}"
        );
    }
    let owners = world.store.ownerships().await.unwrap();
    assert!(owners.iter().all(|ownership| ownership.owner.is_none()), "nothing was claimed");
    assert!(world.builder().name("").start(world.store.clone()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_edges_of_what_is_allowed_are_allowed() {
    let (world, log) = (World::new(), Log::default());
    let limits = Limits { payload_max: Limits::PAYLOAD_HARD_MAX, ..Limits::default() };
    let scheduler = world.start(world.builder().limits(limits).handler("log", log.handler())).await;
    let (long, now) = ("x".repeat(500), world.now());
    let good = [
        task("x").queue(&"x".repeat(100)).lane(&long).unique_key(&long).name(&long),
        task("x").at(now - secs(10)),
        task("x").at(Timestamp::MAX),
        task("x").at(SystemTime::UNIX_EPOCH + Duration::from_micros(now.as_micros() as u64)),
        task("x").expires_at(now + Duration::from_micros(1)),
        NewTask::new("log").payload_bytes(vec![b'1'; 1024 * 1024]),
    ];
    for task in good {
        scheduler.schedule(task.clone()).await.unwrap_or_else(|error| panic!("{task:?}: {error}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_may_run_at_once_what_is_long_past() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    let settings = QueueSettings { past: Past::RunNow, ..QueueSettings::default() };
    scheduler.set_queue("late", settings).await.unwrap();
    let long_ago = world.now() - secs(365 * 86_400);
    let id = id_of(&scheduler, task("late").queue("late").at(long_ago)).await;
    scheduler.result(id).await.unwrap();
    let id = id_of(&scheduler, task("moved").queue("late").after(secs(3600))).await;
    scheduler.move_to(id, long_ago).await.unwrap();
    scheduler.result(id).await.unwrap();
    assert_eq!(log.lines(), ["late", "moved"]);
    assert_eq!(SystemTime::UNIX_EPOCH.into_timestamp(), Timestamp::MIN);
}
