//! The same lateness while very many tasks wait for tomorrow, and what they take.

use super::world::{self, World};
use super::{Bench, clean, lateness, restart};
use crate::report::{Row, Unit};

pub fn run(bench: &mut Bench<'_>) {
    for pending in bench.options.pending.clone() {
        let path = bench.path("pending");
        let world = World::open(&path);
        bench.tell(&format!("scheduling {pending} tasks of tomorrow"));
        world.schedule_all(pending, 4, world::tomorrow);
        world.close();
        // What was allocated to make them is not what is needed while they wait.
        restart::clean_start(bench, &path, pending);
        let world = World::open(&path);
        let what = format!(", {pending} pending");
        lateness::steady(bench, &world, 5_000, &what);
        bench.note(Row::new(
            format!("memory at 5000/s{what}"),
            world::memory(),
            Unit::Mebibytes,
            "< 256 MiB",
        ));
        lateness::spike(bench, &world, &what);
        world.close();
        clean(&path);
    }
}
