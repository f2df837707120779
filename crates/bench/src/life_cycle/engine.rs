//! The engine and the gate alone: a node on one thread, in a world where everything happens at once.

use std::collections::VecDeque;
use std::fmt;
use std::hint::black_box;
use std::time::Duration;

use punctual_bench::allocations::Count;
use punctual_bench::echo::{Echo, Lanes, Maker, OPEN, Recorder, World};
use punctual_core::{Seq, Task, TaskId, Timestamp};

use super::Round;
use crate::stopwatch::{Stopwatch, cpu_time};

/// What tasks, and how many of them at a time.
#[derive(Clone, Copy)]
pub struct Load {
    pub partitions: u16,
    pub batch: usize,
    pub due: Due,
    pub lanes: Lanes,
}

#[derive(Clone, Copy)]
pub enum Due {
    /// As soon as they are recorded.
    Now,
    /// After 1 to 100 ms on the wheel: a batch each millisecond.
    Soon,
}

const TICK: Duration = Duration::from_millis(1);
const SOON_TICKS: u64 = 100;

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} partition{}", self.partitions, if self.partitions == 1 { "" } else { "s" })?;
        write!(f, ", batches of {}", self.batch)?;
        match self.due {
            Due::Now => write!(f, ", due now")?,
            Due::Soon => write!(f, ", due in 1–100 ms")?,
        }
        match self.lanes {
            Lanes::None => Ok(()),
            Lanes::Own => write!(f, ", a lane each"),
            Lanes::Shared(lanes) => write!(f, ", {lanes} lanes"),
        }
    }
}

pub fn alone(load: Load, tasks: usize) -> Round {
    measure(load, tasks, Echo)
}

/// Making the drafts is their creator's work, and not measured.
pub fn measure(load: Load, tasks: usize, recorder: impl Recorder) -> Round {
    let mut world = World::new(load.partitions, recorder);
    let mut maker = Maker::new(load.partitions, OPEN, load.lanes);
    let batches = tasks.div_ceil(load.batch);
    let mut meter = Meter::default();
    for _ in 0..batches {
        let now = world.now().wall;
        let drafts = maker.make(load.batch, |number| due_at(load.due, now, number));
        meter.measure(|| {
            world.ask(drafts);
            world.settle();
            if let Due::Soon = load.due {
                world.pass(TICK);
            }
        });
    }
    meter.measure(|| (0..SOON_TICKS).for_each(|_| world.pass(TICK)));
    let tally = world.tally();
    assert_eq!(tally.ended, (batches * load.batch) as u64, "every task lives and ends: {tally:?}");
    meter.round(batches * load.batch)
}

fn due_at(due: Due, now: Timestamp, number: u64) -> Timestamp {
    match due {
        Due::Now => now,
        // 61 has no divisor in common with 100, so that every wait comes up equally often.
        Due::Soon => now + TICK * (1 + (number * 61 % SOON_TICKS) as u32),
    }
}

/// The limit: the same tasks are made, queued once, and dropped.
pub fn through_a_queue(tasks: usize) -> Round {
    const BATCH: usize = 256;
    let mut maker = Maker::new(1, OPEN, Lanes::None);
    let mut queue: VecDeque<Task> = VecDeque::new();
    let mut meter = Meter::default();
    let batches = tasks.div_ceil(BATCH);
    for batch in 0..batches {
        let drafts = maker.make(BATCH, |_| Timestamp::from_secs(1_000_000_000));
        meter.measure(|| {
            for (place, draft) in drafts.into_iter().flat_map(|(_, drafts)| drafts).enumerate() {
                let (route, queue_id, priority) = (draft.route, draft.queue, draft.priority);
                let (birth, seq) = (draft.spec.at, Seq((batch * BATCH + place) as u64));
                let id = TaskId { route, queue: queue_id, priority, birth, seq };
                queue.push_back(Task::born(id, draft.spec));
            }
            while let Some(task) = queue.pop_front() {
                drop(black_box(task));
            }
        });
    }
    meter.round(batches * BATCH)
}

/// Adds up time and allocations of what is measured, and leaves out what is not.
#[derive(Default)]
pub struct Meter {
    time: Duration,
    cpu_time: Duration,
    allocations: u64,
    bytes: u64,
}

impl Meter {
    pub fn measure(&mut self, work: impl FnOnce()) {
        let before = Count::of_this_thread();
        let (stopwatch, cpu_before) = (Stopwatch::start(), cpu_time());
        work();
        self.cpu_time += cpu_time() - cpu_before;
        self.time += stopwatch.elapsed();
        let count = Count::of_this_thread() - before;
        self.allocations += count.allocations;
        self.bytes += count.bytes;
    }

    pub fn round(&self, tasks: usize) -> Round {
        let (seconds, cpu_seconds) = (self.time.as_secs_f64(), self.cpu_time.as_secs_f64());
        Round { tasks, seconds, cpu_seconds, allocations: self.allocations, bytes: self.bytes }
    }
}
