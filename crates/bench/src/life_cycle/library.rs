//! Through the library: a scheduler on the memory store, a handler that does nothing, two worker threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use punctual::{Change, Job, MemoryStore, NewTask, Note, Scheduler};
use punctual_bench::allocations::Count;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, Semaphore, mpsc};

use super::Round;
use crate::stopwatch::{Stopwatch, cpu_time};

const PARTITIONS: u16 = 64;
const PER_CALL: usize = 1_000;
const OUTSTANDING_MAX: usize = 10_000;
const PRODUCERS: usize = 2;
const CALLERS: usize = 50;
/// As many attempts run at once by default.
const RUNNING_MAX: usize = 1_000;

/// All tasks as fast as they can be scheduled; the window fills, and the rest waits in the store.
pub fn burst(tasks: usize) -> Round {
    run(tasks, |world| {
        world.spread(PRODUCERS, |world, share| async move {
            for _ in 0..share.div_ceil(PER_CALL) {
                world.schedule_many().await;
            }
        });
    })
}

/// Never more than ten thousand that have not ended: nothing need be read from the store.
pub fn steady(tasks: usize) -> Round {
    run(tasks, produce_steadily)
}

/// The same on one thread, for a tool that counts instructions.
pub fn on_one_thread(tasks: usize) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("one thread can be had");
    let round = run_on(&runtime, tasks, produce_steadily);
    println!("{}", round.tasks);
}

fn produce_steadily(world: &World) {
    world.spread(PRODUCERS, |world, share| async move {
        for _ in 0..share.div_ceil(PER_CALL) {
            let room = world.ends.room.acquire_many(PER_CALL as u32).await;
            room.expect("nobody closes it").forget();
            world.schedule_many().await;
        }
    });
}

/// Each caller waits for the answer before it schedules the next.
pub fn one_by_one(tasks: usize) -> Round {
    run(tasks, |world| {
        world.spread(CALLERS, |world, share| async move {
            for _ in 0..share {
                world.scheduler.schedule(NewTask::new("nothing")).await.expect("nothing refuses it");
            }
        });
    })
}

/// The limit: as many tasks that do nothing, spawned and reported back over a channel, a thousand at a time.
pub fn bare_spawns(tasks: usize) -> Round {
    measure(tasks, || async move {
        let (report_to, mut reports) = mpsc::channel::<usize>(2 * RUNNING_MAX);
        let (mut started, mut ended, mut batch) = (0, 0, Vec::new());
        while ended < tasks {
            while started < tasks && started - ended < RUNNING_MAX {
                let (report_to, number) = (report_to.clone(), started);
                tokio::spawn(async move { report_to.send(number).await });
                started += 1;
            }
            ended += reports.recv_many(&mut batch, RUNNING_MAX).await;
            batch.clear();
        }
    })
}

/// Counts ends, and says when all have come.
struct Ends {
    expected: usize,
    ended: AtomicUsize,
    all: Notify,
    room: Semaphore,
}

impl Ends {
    fn observe(&self, note: &Note<'_>) {
        let Note::Recorded(_, changes) = note else { return };
        let ends = changes.iter().filter(|change| matches!(change, Change::Ended { .. })).count();
        self.room.add_permits(ends);
        if ends > 0 && self.ended.fetch_add(ends, Ordering::Relaxed) + ends >= self.expected {
            self.all.notify_one();
        }
    }
}

#[derive(Clone)]
struct World {
    scheduler: Scheduler<MemoryStore>,
    ends: Arc<Ends>,
    tasks: usize,
}

impl World {
    async fn schedule_many(&self) {
        let tasks = (0..PER_CALL).map(|_| NewTask::new("nothing")).collect();
        let scheduled = self.scheduler.schedule_many(tasks).await;
        assert!(scheduled.iter().all(Result::is_ok), "nothing refuses them");
    }

    /// Divides the work among so many callers.
    fn spread<F: Future<Output = ()> + Send + 'static>(
        &self,
        callers: usize,
        work: impl Fn(World, usize) -> F,
    ) {
        for _ in 0..callers {
            tokio::spawn(work(self.clone(), self.tasks / callers));
        }
    }
}

/// `tasks` is rounded down to what divides evenly among callers and calls.
fn run(tasks: usize, produce: fn(&World)) -> Round {
    run_on(&runtime(), tasks, produce)
}

fn run_on(runtime: &Runtime, tasks: usize, produce: fn(&World)) -> Round {
    let whole = (tasks / (PRODUCERS * PER_CALL)).max(1) * PRODUCERS * PER_CALL;
    let ends = Arc::new(Ends {
        expected: whole,
        ended: AtomicUsize::new(0),
        all: Notify::new(),
        room: Semaphore::new(OUTSTANDING_MAX),
    });
    let scheduler = runtime.block_on(start(ends.clone()));
    let world = World { scheduler, ends, tasks: whole };
    let stopping = world.scheduler.clone();
    let round = measure_on(runtime, whole, async move {
        produce(&world);
        world.ends.all.notified().await;
    });
    runtime.block_on(stopping.stop(Duration::from_secs(5))).expect("it stops once");
    round
}

async fn start(ends: Arc<Ends>) -> Scheduler<MemoryStore> {
    Scheduler::builder()
        .handler("nothing", |_: Job<()>| async { Ok(()) })
        .observer(move |note: Note<'_>| ends.observe(&note))
        .start(MemoryStore::new(PARTITIONS))
        .await
        .expect("a new store is nobody's")
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("two threads can be had")
}

fn measure<F: Future<Output = ()> + Send + 'static>(tasks: usize, work: impl FnOnce() -> F) -> Round {
    measure_on(&runtime(), tasks, work())
}

fn measure_on(runtime: &Runtime, tasks: usize, work: impl Future<Output = ()> + Send + 'static) -> Round {
    let before = Count::of_all_threads();
    let (stopwatch, cpu_before) = (Stopwatch::start(), cpu_time());
    // On a worker thread, not on this one, which would make a third.
    runtime.block_on(runtime.spawn(work)).expect("it does not panic");
    let seconds = stopwatch.elapsed().as_secs_f64();
    let cpu_seconds = (cpu_time() - cpu_before).as_secs_f64();
    let count = Count::of_all_threads() - before;
    Round { tasks, seconds, cpu_seconds, allocations: count.allocations, bytes: count.bytes }
}
