//! A node that has nothing to do but to wait.

use std::time::Duration;

use super::world::{self, World};
use super::{Bench, clean};
use crate::report::{Row, Unit};
use crate::stopwatch::{Stopwatch, cpu_time};

const TIME: Duration = Duration::from_secs(10);

pub fn run(bench: &mut Bench<'_>) {
    let path = bench.path("idle");
    let world = World::open(&path);
    world.schedule_all(10 * world::PER_CALL, 1, world::tomorrow);
    bench.tell("idle");
    wait(&world, Duration::from_secs(2));
    let (cpu, io, reads) = (cpu_time(), Io::read(), world.store.cold_reads());
    let watch = Stopwatch::start();
    wait(&world, TIME);
    let share = (cpu_time() - cpu).as_secs_f64() / watch.elapsed().as_secs_f64();
    let after = Io::read();
    bench.note(Row::new("idle: processor time", share * 100.0, Unit::Percent, "< 0.1 %"));
    bench.note(Row::new("idle: bytes written", (after.written - io.written) as f64, Unit::Count, "0"));
    bench.note(Row::new("idle: bytes read", (after.read - io.read) as f64, Unit::Count, "0"));
    bench.note(Row::new("idle: store reads", (world.store.cold_reads() - reads) as f64, Unit::Count, "0"));
    world.close();
    clean(&path);
}

#[expect(clippy::disallowed_methods, reason = "being idle is to let time pass")]
pub fn wait(world: &World, time: Duration) {
    world.runtime.block_on(async { tokio::time::sleep(time).await });
}

/// What the process asked of the disk.
struct Io {
    read: u64,
    written: u64,
}

impl Io {
    fn read() -> Io {
        let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let value = |name: &str| {
            let line = io.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        Io { read: value("read_bytes:"), written: value("write_bytes:") }
    }
}
