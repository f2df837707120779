//! A scheduler on a data folder, with a handler that notes how late it was called.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual::{Change, EmbeddedStore, Job, Limits, NewTask, Note, Scheduler, Timestamp};
use serde::de::IgnoredAny;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, Semaphore};

use crate::stopwatch::{Stopwatch, wall_now};

/// So many tasks are handed over in one call.
pub const PER_CALL: usize = 1_000;
/// Each carries so much.
const PAYLOAD: &[u8] = &{
    let mut text = [b'x'; 200];
    (text[0], text[199]) = (b'"', b'"');
    text
};

/// How the task of a number is made.
pub type Make = fn(usize) -> NewTask;

/// What has happened so far.
pub struct Seen {
    /// How late each attempt began, in microseconds.
    late: Mutex<Vec<u32>>,
    started: Count,
    ended: Count,
    /// Grows with each end, for whoever keeps so many outstanding.
    pub room: Semaphore,
}

pub struct World {
    pub runtime: Runtime,
    pub scheduler: Scheduler<EmbeddedStore>,
    pub store: EmbeddedStore,
    pub seen: Arc<Seen>,
}

impl World {
    /// Opens the folder, and waits until everything in it is owned.
    pub fn open(path: &Path) -> World {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
        let seen = Arc::new(Seen {
            late: Mutex::default(),
            started: Count::default(),
            ended: Count::default(),
            room: Semaphore::new(0),
        });
        let (store, scheduler) = runtime.block_on(async {
            let store = EmbeddedStore::open(path).await.expect("the folder opens");
            let (noted, observed) = (seen.clone(), seen.clone());
            let builder = Scheduler::builder()
                .limits(Limits { asked_max: 100_000, ..Limits::default() })
                .handler("nothing", move |job: Job<IgnoredAny>| {
                    noted.note_start(job.at);
                    async { Ok(()) }
                })
                .handler("fail", |_: Job<IgnoredAny>| async {
                    Err::<(), _>(punctual::Failure::retry_after("as asked", Duration::from_secs(3_600)))
                })
                .observer(move |note: Note<'_>| observed.observe(&note));
            (store.clone(), builder.start(store).await.expect("nobody else has it"))
        });
        World { runtime, scheduler, store, seen }
    }

    pub fn close(self) {
        self.runtime.block_on(self.scheduler.stop(Duration::from_secs(10))).expect("it stops once");
        self.runtime.shutdown_timeout(Duration::from_secs(10));
    }

    /// Schedules so many tasks, `PER_CALL` in a call, by so many callers at once; answers how many a second.
    pub fn schedule_all(&self, count: usize, callers: usize, make: Make) -> f64 {
        let calls = Arc::new(AtomicUsize::new(count.div_ceil(PER_CALL)));
        let watch = Stopwatch::start();
        let callers: Vec<_> = (0..callers)
            .map(|_| {
                let (scheduler, calls) = (self.scheduler.clone(), calls.clone());
                self.runtime.spawn(async move {
                    let take = |left: usize| left.checked_sub(1);
                    while let Ok(left) = calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
                        schedule_many(&scheduler, left * PER_CALL, make).await;
                    }
                })
            })
            .collect();
        for caller in callers {
            self.runtime.block_on(caller).expect("nothing refuses them");
        }
        (count.div_ceil(PER_CALL) * PER_CALL) as f64 / watch.elapsed().as_secs_f64()
    }
}

/// One call.
pub async fn schedule_many(scheduler: &Scheduler<EmbeddedStore>, from: usize, make: Make) {
    let tasks = (from..from + PER_CALL).map(make).collect();
    for answer in scheduler.schedule_many(tasks).await {
        answer.expect("nothing refuses it");
    }
}

/// A task with a payload, for the handler that does nothing.
pub fn task() -> NewTask {
    NewTask::new("nothing").payload_bytes(PAYLOAD)
}

/// A task of tomorrow: spread over a day, so that none of them lies beside the one before.
pub fn tomorrow(number: usize) -> NewTask {
    let spread = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 86_400_000;
    task().after(Duration::from_secs(86_400) + Duration::from_millis(spread))
}

pub fn due_now(_: usize) -> NewTask {
    task()
}

impl Seen {
    fn note_start(&self, at: Timestamp) {
        let late = wall_now().saturating_sub(at.as_micros());
        self.late.lock().expect("nobody panics").push(u32::try_from(late.max(0)).unwrap_or(u32::MAX));
        self.started.add(1);
    }

    fn observe(&self, note: &Note<'_>) {
        let Note::Recorded(_, changes) = note else { return };
        let ends = changes.iter().filter(|change| matches!(change, Change::Ended { .. })).count();
        if ends > 0 {
            self.room.add_permits(ends);
            self.ended.add(ends);
        }
    }

    /// How many have ended.
    pub fn ended(&self) -> usize {
        self.ended.count.load(Ordering::Relaxed)
    }

    /// Waits until so many have ended.
    pub async fn until_ended(&self, count: usize) {
        self.ended.until(count).await;
    }

    /// How many have begun.
    pub fn started(&self) -> usize {
        self.started.count.load(Ordering::Relaxed)
    }

    /// Waits until so many have begun.
    pub async fn until_started(&self, count: usize) {
        self.started.until(count).await;
    }

    /// Takes what was noted about lateness: sorted, in milliseconds.
    pub fn take_lateness(&self) -> Lateness {
        let mut late = std::mem::take(&mut *self.late.lock().expect("nobody panics"));
        late.sort_unstable();
        Lateness(late)
    }
}

/// Wakes whoever waits when it gets there, and not before: that would be part of what is measured.
#[derive(Default)]
struct Count {
    count: AtomicUsize,
    awaited: AtomicUsize,
    reached: Notify,
}

impl Count {
    fn add(&self, more: usize) {
        let count = self.count.fetch_add(more, Ordering::SeqCst) + more;
        let awaited = self.awaited.load(Ordering::SeqCst);
        if count >= awaited && count - more < awaited {
            self.reached.notify_one();
        }
    }

    async fn until(&self, count: usize) {
        self.awaited.store(count, Ordering::SeqCst);
        while self.count.load(Ordering::SeqCst) < count {
            self.reached.notified().await;
        }
    }
}

/// How late attempts began, sorted.
pub struct Lateness(Vec<u32>);

impl Lateness {
    pub fn of(late: impl Iterator<Item = Duration>) -> Lateness {
        let mut late: Vec<u32> = late.map(|late| late.as_micros() as u32).collect();
        late.sort_unstable();
        Lateness(late)
    }

    /// In milliseconds: so many of a thousand were not later.
    pub fn per_mille(&self, per_mille: usize) -> f64 {
        let at = (self.0.len() * per_mille / 1_000).min(self.0.len().saturating_sub(1));
        self.0.get(at).map_or(f64::NAN, |late| f64::from(*late) / 1e3)
    }

    pub fn worst(&self) -> f64 {
        self.per_mille(1_000)
    }
}

/// How much memory this process takes now, in mebibytes.
pub fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib =
        line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|kib| kib.trim().parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1_024.0)
}
