//! A scheduler on a full disk: what is new is refused, what runs ends and is recorded, and it goes on when space returns.

use punctual::{EndState, Error, Failure, Job, NewTask, Scheduler, TaskId};
use punctual_store::embedded::cold::MemoryTier;
use punctual_store::embedded::disk::SimulatedDisk;
use punctual_store::embedded::journal::Options;
use punctual_store::embedded::{Bounds, Hands, JournaledStore};
use tokio::sync::watch;

use super::world::{Log, World, id_of, secs, task};

type Simulated = JournaledStore<SimulatedDisk, MemoryTier>;

const SEGMENT_BYTES: u64 = 64 << 10;

/// A disk and tables of which one can be full.
struct Machine {
    disk: SimulatedDisk,
    cold: MemoryTier,
    bounds: Bounds,
}

impl Machine {
    fn new(layer_bytes: usize) -> Machine {
        let bounds = Bounds { layer_bytes, journal_bytes: usize::MAX };
        Machine { disk: SimulatedDisk::new(1), cold: MemoryTier::default(), bounds }
    }

    async fn open(&self) -> Simulated {
        let journal = Options { segment_bytes: SEGMENT_BYTES, keep_free_bytes: 0, ..Options::default() };
        let (disk, cold) = (self.disk.clone(), self.cold.clone());
        JournaledStore::open(disk, cold, 4, (journal, self.bounds), Hands::Inline).await.expect("it opens")
    }
}

/// Schedules tasks for later until one is refused.
async fn fill(scheduler: &Scheduler<Simulated>) -> Vec<TaskId> {
    let mut accepted = Vec::new();
    loop {
        // One after the other, because what begins or ends at once must fit into a segment.
        let after = secs(60 + accepted.len() as u64);
        match scheduler.schedule(task(&"x".repeat(500)).after(after)).await {
            Ok(scheduled) => accepted.push(scheduled.id()),
            Err(error) => {
                assert_eq!(error.code(), "store_full");
                assert!(error.to_string().contains("the disk is full, so nothing was changed"), "{error}");
                return accepted;
            }
        }
    }
}

/// From the first refusal on, until there is room again.
async fn full_and_not(machine: Machine, set_full: impl Fn(&Machine, bool)) {
    let (world, log) = (World::of(4), Log::default());
    let (finish, finished) = watch::channel(false);
    let slow = move |_: Job<()>| {
        let mut finished = finished.clone();
        async move {
            finished.wait_for(|finished| *finished).await.ok();
            Ok("done at last")
        }
    };
    let builder = world.builder().handler("log", log.handler()).handler("slow", slow);
    let builder = builder.handler("bad", |_: Job<()>| async { Err::<(), _>(Failure::give_up("no")) });
    let scheduler = builder.start(machine.open().await).await.expect("it starts");
    let running = id_of(&scheduler, NewTask::new("slow").timeout(secs(3_600))).await;
    let dead = id_of(&scheduler, NewTask::new("bad")).await;
    assert_eq!(scheduler.result(dead).await.expect("it ends").state, EndState::Dead);

    set_full(&machine, true);
    let accepted = fill(&scheduler).await;
    assert!(accepted.len() > 10, "{} tasks", accepted.len());
    let many = scheduler.schedule_many((0..10).map(|_| task("x")).collect()).await;
    assert!(many.iter().all(|answer| matches!(answer, Err(Error::Full))), "{many:?}");

    // What was there goes on: somebody cancels, a dead task is tried again, what runs ends. The second of these was
    // refused as if it were new, which no engine can take back: ends of its partition waited behind it for ever.
    scheduler.cancel(accepted[0]).await.expect("cancelled");
    scheduler.retry(dead).await.expect("it is tried again");
    finish.send(true).expect("it waits for this");
    let result = scheduler.result(running).await.expect("its end is recorded");
    assert_eq!(result.read::<String>().expect("its result too"), "done at last");
    assert_eq!(scheduler.result(dead).await.expect("it ends again").state, EndState::Dead);

    set_full(&machine, false);
    let next = id_of(&scheduler, task("next")).await;
    assert_eq!(scheduler.result(next).await.expect("it runs").state, EndState::Succeeded);
    for id in &accepted[1..] {
        assert_eq!(scheduler.result(*id).await.expect("it runs").state, EndState::Succeeded);
    }
    assert_eq!(log.lines().len(), accepted.len(), "all but the cancelled one, and the next");
}

#[tokio::test(start_paused = true)]
async fn the_disk_has_no_room_for_the_journal() {
    full_and_not(Machine::new(usize::MAX), |machine, is_full| {
        machine.disk.set_capacity(if is_full { 4 * SEGMENT_BYTES } else { u64::MAX });
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_disk_has_no_room_for_the_tables() {
    full_and_not(Machine::new(32 << 10), |machine, is_full| machine.cold.set_full(is_full)).await;
}
