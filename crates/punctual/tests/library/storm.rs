//! Many users at once, on many threads: nothing may panic, be lost, or run beside its own lane.
//!
//! Threads cannot be repeated from a seed and have no paused clock, so those storms are on a real one. They are over
//! when everything has ended, and wait for what is recorded; time is looked at only to say that nothing moves any more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual::{
    Builder, EndState, Failure, Filter, Found, Job, Limits, MemoryStore, NewTask, Note, OnConflict,
    OnExhausted, QueueSettings, RetryPolicy, Scheduler, Spec, Store, TaskId, Timestamp, WaitState, Waits,
};
use punctual_store::kv::{KvStore, MemoryKv};
use tokio::sync::Notify;

use super::everything::{Dice, InLane, Running};
use super::world::{World, pass};

const STORMS: u64 = 3;
const USERS: u64 = 8;
const STEPS: usize = 400;
/// When nothing was recorded for so long, something is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What happened in a storm, as seen from outside.
#[derive(Default)]
struct Seen {
    reloads: AtomicUsize,
    recorded: Notify,
}

impl Seen {
    fn note(&self, note: &Note<'_>) {
        match note {
            Note::Recorded(..) => self.recorded.notify_one(),
            Note::PartitionReloaded(_) => _ = self.reloads.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
    }
}

/// Bounds so narrow that each is met.
fn narrow() -> Limits {
    Limits {
        running_max: 6,
        window_max: 16,
        loaded_max: 32,
        behind_max: 2,
        parked_page: 2,
        look_ahead: ms(100),
        left_per_mark: 10,
        past_grace: PATIENCE,
        ..Limits::default()
    }
}

/// Fails, panics, gives up, takes a while or succeeds, as its payload says.
async fn work(job: Job<u64>, running: Running) -> Result<Vec<u8>, Failure> {
    let _here = job.lane.map(|lane| InLane::enter(&running, lane));
    match (job.payload + u64::from(job.attempt)) % 7 {
        0 => Err(Failure::retry("later")),
        // A panic without a message on the terminal.
        1 => std::panic::resume_unwind(Box::new("planned")),
        2 => {
            pass(ms(job.payload % 5)).await;
            Ok(vec![0; 10])
        }
        3 if job.payload.is_multiple_of(3) => Err(Failure::give_up("never")),
        _ => Ok(Vec::new()),
    }
}

/// A scheduler, and the tasks that its users have met.
struct Storm<S> {
    scheduler: Scheduler<S>,
    met: Mutex<Vec<TaskId>>,
}

impl<S: Store> Storm<S> {
    async fn begin(scheduler: Scheduler<S>) -> Storm<S> {
        let waits = Waits::Growing { min: ms(2), max: ms(10), factor_percent: 150, jitter_percent: 50 };
        let retry = RetryPolicy { waits, attempts_max: 3, age_max: None };
        for (name, on_exhausted) in [("a", OnExhausted::Block), ("b", OnExhausted::DeadLetter)] {
            let settings = QueueSettings { retry: retry.clone(), on_exhausted, ..QueueSettings::default() };
            scheduler.set_queue(name, settings).await.unwrap();
        }
        Storm { scheduler, met: Mutex::default() }
    }

    /// One user's day. What is refused is refused: others may have been quicker.
    async fn use_it(&self, dice: &mut Dice) {
        for _ in 0..STEPS {
            let queue = if dice.below(2) == 0 { "a" } else { "b" };
            let at = self.scheduler.now() + ms(dice.below(150));
            match (dice.below(20), self.any(dice)) {
                (0..=8, _) | (_, None) => self.create(dice, queue, at).await,
                (16, _) => _ = self.scheduler.pause(queue).await,
                (17, _) => _ = self.scheduler.resume(queue).await,
                (what, Some(id)) => self.meddle(dice, what, id, at).await,
            }
            if dice.below(4) == 0 {
                pass(ms(1)).await;
            }
        }
    }

    fn any(&self, dice: &mut Dice) -> Option<TaskId> {
        let met = self.met.lock().unwrap();
        (!met.is_empty()).then(|| met[dice.below(met.len() as u64) as usize])
    }

    async fn create(&self, dice: &mut Dice, queue: &str, at: Timestamp) {
        let mut new = NewTask::new("work").payload(&dice.below(1_000)).unwrap().queue(queue).at(at);
        if dice.below(3) > 0 {
            new = new.lane(&format!("{queue}{}", dice.below(4)));
        }
        if dice.below(4) == 0 {
            // Times are shared too, so that keys meet.
            let at = Timestamp::from_micros(at.as_micros() / 50_000 * 50_000);
            let on_conflict = [OnConflict::Keep, OnConflict::Replace, OnConflict::Error];
            let on_conflict = on_conflict[dice.below(3) as usize];
            new = new.unique_key(&format!("k{}", dice.below(3))).at(at).on_conflict(on_conflict);
        }
        if dice.below(10) == 0 {
            new = new.expires_at(at + ms(1 + dice.below(100)));
        }
        if let Ok(scheduled) = self.scheduler.schedule(new).await {
            self.met.lock().unwrap().push(scheduled.id());
        }
    }

    async fn meddle(&self, dice: &mut Dice, what: u64, id: TaskId, at: Timestamp) {
        let scheduler = &self.scheduler;
        match what {
            9..=10 => _ = scheduler.cancel(id).await,
            11..=12 => _ = scheduler.move_to(id, at).await,
            13 => _ = scheduler.change_payload(id, &dice.below(1_000)).await,
            14 => _ = scheduler.run_now(id).await,
            15 => _ = scheduler.retry(id).await,
            19 => self.change_and_move(dice, id, at).await,
            18 => {
                _ = tokio::time::timeout(ms(dice.below(3)), scheduler.result(id)).await;
                // Asked, and gone before the answer came.
                _ = tokio::time::timeout(Duration::ZERO, scheduler.move_to(id, at)).await;
                _ = tokio::time::timeout(Duration::ZERO, scheduler.cancel(id)).await;
            }
            _ => tokio::task::yield_now().await,
        }
    }

    async fn change_and_move(&self, dice: &mut Dice, id: TaskId, at: Timestamp) {
        let Ok(Some(view)) = self.scheduler.find(id).await else { return };
        if let Found::Live(task) = view.found {
            let payload = dice.below(1_000).to_string().into();
            let spec = Spec { payload, ..Spec::clone(&task.spec) };
            _ = self.scheduler.change_and_move(id, spec, at, task.revision).await;
        }
    }

    /// Lets everything end; blocked heads are cancelled, or their lanes would wait for ever.
    async fn calm_down(&self, seed: u64, seen: &Seen) {
        for queue in ["a", "b"] {
            self.scheduler.resume(queue).await.unwrap();
        }
        loop {
            let left = self.scheduler.list(&Filter::live(), None, 1_000).await.unwrap().tasks;
            let load = self.scheduler.load().await.unwrap();
            if left.is_empty() && (load.in_memory, load.running) == (0, 0) {
                return;
            }
            for found in &left {
                if matches!(found, Found::Live(task) if task.state == WaitState::Blocked) {
                    _ = self.scheduler.cancel(found.id()).await;
                }
            }
            let moves = tokio::time::timeout(PATIENCE, seen.recorded.notified()).await;
            assert!(moves.is_ok(), "seed {seed}: {load:?} and {} are stuck: {:?}", left.len(), left.first());
        }
    }
}

async fn storm<S: Store>(builder: Builder, store: S, seed: u64) {
    let (running, seen) = (Running::default(), Arc::new(Seen::default()));
    let (lanes, noted) = (running.clone(), seen.clone());
    let builder = builder
        .limits(narrow())
        .observer(move |note: Note<'_>| noted.note(&note))
        .handler("work", move |job: Job<u64>| work(job, lanes.clone()));
    let storm = Arc::new(Storm::begin(builder.start(store).await.unwrap()).await);
    let users = (1..=USERS).map(|user| {
        let (storm, mut dice) = (storm.clone(), Dice(seed * 100 + user));
        tokio::spawn(async move { storm.use_it(&mut dice).await })
    });
    for user in users.collect::<Vec<_>>() {
        user.await.unwrap();
    }
    storm.calm_down(seed, &seen).await;
    assert_eq!(seen.reloads.load(Ordering::Relaxed), 0, "seed {seed}: an engine panicked");
    assert_eq!(running.lock().unwrap().broken, [], "seed {seed}: these lanes ran two at once");
    let met = storm.met.lock().unwrap().clone();
    for id in met {
        let end = storm.scheduler.result(id).await.unwrap();
        assert!(end.state != EndState::Dead || end.error.is_some(), "seed {seed}: {id} is dead of nothing");
    }
    storm.scheduler.stop(PATIENCE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_storm_on_many_threads() {
    for seed in 1..=STORMS {
        storm(Scheduler::builder(), MemoryStore::new(2), seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_storm_on_one_thread_with_a_paused_clock() {
    for seed in 1..=STORMS {
        let world = World::of(1);
        storm(world.builder(), world.store.clone(), seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_storm_on_a_key_value_store() {
    for seed in 1..=STORMS {
        storm(Scheduler::builder(), KvStore::open(MemoryKv::default(), 2).await.unwrap(), seed).await;
    }
}
