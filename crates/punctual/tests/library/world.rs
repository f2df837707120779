//! What each test makes for itself: a store, a clock with hands to turn, a log, and notes to wait for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual::clock::{Clock, ClockStep, OddStart, SimulatedClock};
use punctual::{
    Builder, Change, Failure, Found, Job, MemoryStore, NewTask, Note, Observer, Scheduler, Task, TaskId,
    Timestamp,
};
use punctual_core::PartitionId;
use tokio::sync::mpsc;

/// A scheduler as most tests use it.
pub type MemoryScheduler = Scheduler<MemoryStore>;

/// A world of its own for one test.
pub struct World {
    pub store: MemoryStore,
    pub hands: SimulatedClock,
}

impl World {
    pub fn new() -> World {
        World::of(4)
    }

    pub fn of(partitions: u16) -> World {
        World {
            store: MemoryStore::new(partitions),
            hands: SimulatedClock::new(Timestamp::from_secs(1_800_000_000)),
        }
    }

    /// A builder on this world's clock.
    pub fn builder(&self) -> Builder {
        Scheduler::builder().clock(Clock::simulated(self.hands.clone()))
    }

    pub async fn start(&self, builder: Builder) -> MemoryScheduler {
        builder.start(self.store.clone()).await.expect("a store in memory lets everybody start")
    }

    pub fn now(&self) -> Timestamp {
        self.hands.now().wall
    }
}

/// What happened, in the order in which it did.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// A handler that logs its payload and is done.
    pub fn handler(
        &self,
    ) -> impl Fn(Job<String>) -> std::future::Ready<Result<(), Failure>> + Send + Sync + use<> {
        let log = self.clone();
        move |job| {
            log.add(job.payload);
            std::future::ready(Ok(()))
        }
    }
}

/// Something the shell said, as a test can keep it.
#[derive(Clone, PartialEq, Debug)]
pub enum Seen {
    Began(TaskId),
    Ended(TaskId),
    Started(TaskId, u32),
    Reported(TaskId),
    Taken(PartitionId),
    Lost(PartitionId),
    Reloaded(PartitionId),
    Released(PartitionId),
    Stepped(ClockStep),
    Dropped(usize),
    Odd(OddStart),
    Trouble,
}

/// What the shell said, to be waited for.
pub struct Notes(mpsc::Receiver<Seen>);

/// An observer, and where its notes come out.
pub fn notes() -> (impl Observer, Notes) {
    let (to, from) = mpsc::channel(100_000);
    let observer = move |note: Note<'_>| {
        let say = |seen: Seen| to.try_send(seen).expect("no test has so many notes");
        match note {
            Note::Recorded(_, changes) => changes.iter().filter_map(recorded).for_each(say),
            Note::Started(attempt) => say(Seen::Started(attempt.token.id, attempt.token.attempt)),
            Note::Reported(token, _) => say(Seen::Reported(token.id)),
            Note::PartitionTaken(fence) => say(Seen::Taken(fence.partition)),
            Note::PartitionLost(partition) => say(Seen::Lost(partition)),
            Note::PartitionReloaded(partition) => say(Seen::Reloaded(partition)),
            Note::PartitionReleased(partition) => say(Seen::Released(partition)),
            Note::ClockStepped(step) => say(Seen::Stepped(step)),
            Note::HistoryDropped(_, _, buckets) => say(Seen::Dropped(buckets)),
            Note::OddStart(odd) => say(Seen::Odd(odd)),
            Note::StoreTrouble(_) => say(Seen::Trouble),
        }
    };
    (observer, Notes(from))
}

fn recorded(change: &Change) -> Option<Seen> {
    match change {
        Change::Began { id, .. } => Some(Seen::Began(*id)),
        Change::Ended { task, .. } => Some(Seen::Ended(task.id)),
        _ => None,
    }
}

impl Notes {
    /// Waits for a note, and returns all that came before it.
    pub async fn until(&mut self, wanted: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        let mut before = Vec::new();
        loop {
            let seen = self.0.recv().await.expect("the scheduler runs");
            if wanted(&seen) {
                return before;
            }
            before.push(seen);
        }
    }

    /// Waits until an attempt of a task starts.
    pub async fn until_started(&mut self, id: TaskId) {
        self.until(|seen| matches!(seen, Seen::Started(started, _) if *started == id)).await;
    }

    /// What came so far.
    pub fn so_far(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }

    /// The next note.
    pub async fn next(&mut self) -> Option<Seen> {
        self.0.recv().await
    }
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A task for the handler `log`.
pub fn task(payload: &str) -> NewTask {
    NewTask::new("log").payload(&payload).expect("text is JSON")
}

pub async fn id_of<S: punctual::Store>(scheduler: &Scheduler<S>, task: NewTask) -> TaskId {
    scheduler.schedule(task).await.expect("the task is sound").id()
}

/// A task that is known not to have ended.
pub async fn live(scheduler: &MemoryScheduler, id: TaskId) -> Task {
    match scheduler.find(id).await.unwrap().expect("it is there").found {
        Found::Live(task) => task,
        found => panic!("it has ended: {found:?}"),
    }
}

/// Lets so much time pass, as the scheduler sees it: each of its waits in turn.
pub async fn pass(duration: Duration) {
    tokio::time::timeout(duration, std::future::pending::<()>()).await.ok();
}
