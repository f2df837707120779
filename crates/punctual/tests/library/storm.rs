//! Everything at once, on a real clock: nothing may panic, be lost, or run beside its own lane.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual::{
    Builder, EndState, Failure, Filter, Found, Job, Limits, MemoryStore, NewTask, Note, OnConflict,
    OnExhausted, QueueSettings, RetryPolicy, Scheduler, Store, TaskId, Waits,
};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

async fn storm<S: Store>(store: S, seed: u64) {
    let lanes: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let clashes = Arc::new(AtomicUsize::new(0));
    let reloads = Arc::new(AtomicUsize::new(0));
    let (seen, counted) = (reloads.clone(), clashes.clone());
    let work = move |job: Job<u64>| {
        let (lanes, clashes) = (lanes.clone(), counted.clone());
        async move {
            let lane = job.lane.as_deref().unwrap_or_default().to_owned();
            if !lane.is_empty() {
                let mut lanes = lanes.lock().unwrap();
                let running = lanes.entry(lane.clone()).or_default();
                *running += 1;
                clashes.fetch_add(usize::from(*running > 1), Ordering::SeqCst);
            }
            let _guard = Leave(lanes.clone(), lane);
            match (job.payload + u64::from(job.attempt)) % 7 {
                0 => Err(Failure::retry("later")),
                1 => panic!("planned"),
                2 => {
                    tokio::time::timeout(ms(job.payload % 5), std::future::pending::<()>()).await.ok();
                    Ok(vec![0u8; 10])
                }
                3 if job.payload % 3 == 0 => Err(Failure::give_up("never")),
                _ => Ok(Vec::new()),
            }
        }
    };
    let limits = Limits {
        running_max: 6,
        window_max: 16,
        loaded_max: 32,
        behind_max: 2,
        parked_page: 2,
        look_ahead: ms(100),
        left_per_mark: 10,
        past_grace: Duration::from_secs(60),
        ..Limits::default()
    };
    let builder: Builder = Scheduler::builder()
        .limits(limits)
        .observer(move |note: Note<'_>| {
            if let Note::PartitionReloaded(_) = note {
                seen.fetch_add(1, Ordering::SeqCst);
            }
        })
        .handler("work", work);
    let scheduler = builder.start(store).await.unwrap();
    let waits = Waits::Growing { min: ms(2), max: ms(10), factor_percent: 150, jitter_percent: 50 };
    let retry = RetryPolicy { waits, attempts_max: 3, age_max: None };
    for (name, on_exhausted) in [("a", OnExhausted::Block), ("b", OnExhausted::DeadLetter)] {
        let settings = QueueSettings { retry: retry.clone(), on_exhausted, ..QueueSettings::default() };
        scheduler.set_queue(name, settings).await.unwrap();
    }
    let ids: Arc<Mutex<Vec<TaskId>>> = Arc::default();
    let mut users = Vec::new();
    for user in 0..8 {
        let (scheduler, ids) = (scheduler.clone(), ids.clone());
        users.push(tokio::spawn(async move {
            let mut dice = Dice(seed * 100 + user);
            for _ in 0..400 {
                let queue = if dice.roll(2) == 0 { "a" } else { "b" };
                let any = |dice: &mut Dice| {
                    let ids = ids.lock().unwrap();
                    (!ids.is_empty()).then(|| ids[dice.roll(ids.len() as u64) as usize])
                };
                let what = dice.roll(20);
                let known = any(&mut dice);
                let at = scheduler.now() + ms(dice.roll(150));
                match (what, known) {
                    (0..=8, _) | (_, None) => {
                        let mut new =
                            NewTask::new("work").payload(&dice.roll(1000)).unwrap().queue(queue).at(at);
                        if dice.roll(3) > 0 {
                            new = new.lane(&format!("{queue}{}", dice.roll(4)));
                        }
                        if dice.roll(4) == 0 {
                            let at = punctual::Timestamp::from_micros(at.as_micros() / 50_000 * 50_000);
                            let on = [OnConflict::Keep, OnConflict::Replace, OnConflict::Error]
                                [dice.roll(3) as usize];
                            new = new.unique_key(&format!("k{}", dice.roll(3))).at(at).on_conflict(on);
                        }
                        if dice.roll(10) == 0 {
                            new = new.expires_at(at + ms(1 + dice.roll(100)));
                        }
                        if let Ok(scheduled) = scheduler.schedule(new).await {
                            ids.lock().unwrap().push(scheduled.id());
                        }
                    }
                    (9..=10, Some(id)) => _ = scheduler.cancel(id).await,
                    (11..=12, Some(id)) => _ = scheduler.move_to(id, at).await,
                    (13, Some(id)) => _ = scheduler.change_payload(id, &dice.roll(1000)).await,
                    (14, Some(id)) => _ = scheduler.run_now(id).await,
                    (15, Some(id)) => _ = scheduler.retry(id).await,
                    (16, Some(_)) => _ = scheduler.pause(queue).await,
                    (17, Some(_)) => _ = scheduler.resume(queue).await,
                    (18, Some(id)) => {
                        _ = tokio::time::timeout(ms(dice.roll(3)), scheduler.result(id)).await;
                        // Half-way dropped.
                        _ = tokio::time::timeout(Duration::ZERO, scheduler.move_to(id, at)).await;
                        _ = tokio::time::timeout(Duration::ZERO, scheduler.cancel(id)).await;
                    }
                    _ => tokio::task::yield_now().await,
                }
                if dice.roll(4) == 0 {
                    tokio::time::timeout(ms(1), std::future::pending::<()>()).await.ok();
                }
            }
        }));
    }
    for user in users {
        user.await.unwrap();
    }
    scheduler.resume("a").await.unwrap();
    scheduler.resume("b").await.unwrap();
    // Blocked heads are cancelled until nothing is left.
    let mut left = Vec::new();
    for _ in 0..400 {
        tokio::time::timeout(ms(25), std::future::pending::<()>()).await.ok();
        left = scheduler.list(&Filter::live(), None, 1000).await.unwrap().tasks;
        if left.is_empty() {
            break;
        }
        for found in &left {
            if let Found::Live(task) = found {
                if task.state == punctual::WaitState::Blocked {
                    scheduler.cancel(task.id).await.ok();
                }
            }
        }
    }
    assert_eq!(reloads.load(Ordering::SeqCst), 0, "an engine panicked (seed {seed})");
    assert_eq!(clashes.load(Ordering::SeqCst), 0, "two of one lane ran at once (seed {seed})");
    assert!(left.is_empty(), "seed {seed}: {} tasks are stuck, the first is {:?}", left.len(), left[0]);
    let load = scheduler.load().await.unwrap();
    assert_eq!((load.in_memory, load.running), (0, 0), "seed {seed}");
    for id in ids.lock().unwrap().clone() {
        let state = scheduler.result(id).await.unwrap().state;
        assert!(matches!(
            state,
            EndState::Succeeded | EndState::Dead | EndState::Cancelled | EndState::Expired
        ));
    }
    scheduler.stop(Duration::from_secs(1)).await.unwrap();
}

struct Leave(Arc<Mutex<HashMap<String, usize>>>, String);

impl Drop for Leave {
    fn drop(&mut self) {
        if !self.1.is_empty() {
            *self.0.lock().unwrap().get_mut(&self.1).unwrap() -= 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn s1_a_storm_on_many_threads() {
    let seeds = std::env::var("STORMS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    for seed in 0..seeds {
        storm(MemoryStore::new(2), seed).await;
    }
}

#[tokio::test]
async fn s2_a_storm_on_one_thread() {
    let seeds = std::env::var("STORMS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    for seed in 0..seeds {
        storm(MemoryStore::new(1), 1000 + seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn s3_a_storm_on_a_key_value_store() {
    use punctual_store::kv::{KvStore, MemoryKv};
    let seeds = std::env::var("STORMS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    for seed in 0..seeds {
        storm(KvStore::open(MemoryKv::default(), 2).await.unwrap(), 2000 + seed).await;
    }
}
