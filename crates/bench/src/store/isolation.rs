//! Others' throughput beside a stuck lane, a paused queue and blocked lanes, in pairs with a folder without them.

use std::time::Duration;

use punctual::NewTask;

use super::world::{self, Make, World};
use super::{Bench, clean, idle, life};
use crate::report::{Row, Unit, median};

const PAIRS: usize = 7;
const TASKS: usize = 50_000;

/// What stands in the way, and how tasks get behind it.
const OBSTACLES: [(&str, Make); 3] = [
    ("a stuck lane", |_| NewTask::new("fail").lane("stuck").queue("other")),
    ("a paused queue", |_| world::task().queue("paused")),
    ("blocked lanes", |number| NewTask::new("fail").lane(&(number / 2).to_string()).queue("other")),
];

pub fn run(bench: &mut Bench<'_>) {
    for (name, make) in OBSTACLES {
        let paths = [bench.path("without"), bench.path("with")];
        let [without, with] = [World::open(&paths[0]), World::open(&paths[1])];
        bench.tell(&format!("{} tasks behind {name}", bench.options.behind));
        with.runtime.block_on(with.scheduler.pause("paused")).expect("paused");
        with.schedule_all(bench.options.behind, 4, make);
        settle(&with);
        let mut ratios = Vec::new();
        for pair in 1..=PAIRS {
            bench.tell(&format!("beside {name}, pair {pair}"));
            // The one who goes first is not always the same.
            let mut measured = [0.0; 2];
            let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
            for which in order {
                measured[which] = life::steady([&without, &with][which], TASKS);
            }
            ratios.push(measured[1] / measured[0]);
        }
        let work = format!("throughput beside {} behind {name}", bench.options.behind);
        bench.note(Row::new(work, median(ratios.into_iter()), Unit::Ratio, "≥ 0.9"));
        without.close();
        // What is stuck does not end by itself.
        with.runtime.shutdown_timeout(Duration::from_secs(10));
        drop((with.scheduler, with.store));
        paths.iter().for_each(|path| clean(path));
    }
}

/// Until everything has found its place behind the obstacle, and nothing more is written.
fn settle(world: &World) {
    loop {
        let before = world.store.journal_written().frames;
        idle::wait(world, Duration::from_millis(500));
        if world.store.journal_written().frames == before {
            return;
        }
    }
}
