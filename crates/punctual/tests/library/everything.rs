//! Everything at once, from a seed: whatever is done to tasks, each of them ends, and no lane runs two at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use punctual::{Builder, Error, Failure, Job, NewTask, TaskId};

use super::world::{MemoryScheduler, World, pass, secs};

/// Numbers from a seed (xorshift).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// How many attempts each lane has running.
pub type Running = Arc<Mutex<Lanes>>;

#[derive(Default)]
pub struct Lanes {
    running: BTreeMap<Box<str>, u32>,
    /// Lanes that ran two at once. A handler cannot complain itself: its panic would be a failed attempt.
    pub broken: Vec<Box<str>>,
}

/// Leaves its lane when the attempt ends, or is interrupted.
pub struct InLane(Running, Box<str>);

impl InLane {
    pub fn enter(running: &Running, lane: Box<str>) -> InLane {
        let mut lanes = running.lock().unwrap();
        let count = lanes.running.entry(lane.clone()).or_default();
        *count += 1;
        if *count > 1 {
            lanes.broken.push(lane.clone());
        }
        drop(lanes);
        InLane(running.clone(), lane)
    }
}

impl Drop for InLane {
    fn drop(&mut self) {
        let mut lanes = self.0.lock().unwrap();
        let count = lanes.running.get_mut(&self.1).expect("it was entered");
        *count -= 1;
    }
}

fn builder(world: &World, running: &Running) -> Builder {
    let running = running.clone();
    world.builder().handler("work", move |job: Job<u64>| {
        let running = running.clone();
        async move {
            let _here = InLane::enter(&running, job.lane.unwrap_or_default());
            pass(secs(job.payload % 3)).await;
            if job.payload.is_multiple_of(5) && job.attempt < 3 {
                Err(Failure::retry("not yet"))
            } else {
                Ok(())
            }
        }
    })
}

/// Does something to a task. It may be too late, or too early: then the answer says so, and nothing else happens.
async fn meddle(scheduler: &MemoryScheduler, dice: &mut Dice, id: TaskId) {
    let done = match dice.below(4) {
        0 => scheduler.cancel(id).await,
        1 => scheduler.move_to(id, scheduler.now() + secs(dice.below(600))).await.map(drop),
        2 => scheduler.run_now(id).await.map(drop),
        _ => scheduler.change_payload(id, &dice.below(1_000)).await.map(drop),
    };
    assert!(matches!(done, Ok(()) | Err(Error::Ended(_) | Error::Running { .. })), "{done:?}");
}

async fn play(seed: u64) {
    let (world, running, mut dice) = (World::of(2), Running::default(), Dice(seed));
    let mut scheduler = world.start(builder(&world, &running)).await;
    let mut ids = Vec::new();
    for _ in 0..60 {
        let task = |dice: &mut Dice| {
            let task = NewTask::new("work").payload(&dice.below(1_000)).expect("a number is JSON");
            task.after(secs(dice.below(900))).lane(&format!("lane {}", dice.below(20)))
        };
        let tasks = (0..10).map(|_| task(&mut dice)).collect();
        ids.extend(scheduler.schedule_many(tasks).await.into_iter().map(|scheduled| scheduled.unwrap().id()));
        for _ in 0..5 {
            let id = ids[dice.below(ids.len() as u64) as usize];
            meddle(&scheduler, &mut dice, id).await;
        }
        match dice.below(10) {
            0 => {
                scheduler.pause("default").await.unwrap();
                pass(secs(dice.below(100))).await;
                scheduler.resume("default").await.unwrap();
            }
            1 => {
                scheduler.stop(secs(dice.below(3))).await.unwrap();
                scheduler = world.start(builder(&world, &running)).await;
            }
            _ => pass(secs(dice.below(60))).await,
        }
    }
    for id in ids {
        scheduler.result(id).await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    assert_eq!(running.lock().unwrap().broken, [], "seed {seed}: these lanes ran two at once");
}

#[tokio::test(start_paused = true)]
async fn whatever_is_done_to_tasks_each_of_them_ends() {
    for seed in 1..=10 {
        play(seed).await;
    }
}
