//! From the start of a process until its first task has begun: after a clean stop, and after `kill -9`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Args;

use super::world::{self, World};
use super::{Bench, clean};
use crate::report::{Row, Unit};
use crate::stopwatch::Stopwatch;

/// What the other process is to do.
#[derive(Args)]
pub struct ChildOptions {
    /// The data folder.
    folder: PathBuf,
    /// Schedule tasks that are due at once, until killed.
    #[arg(long)]
    forever: bool,
}

/// Another process: opens the folder, and says when the first task has begun.
pub fn child(options: &ChildOptions) {
    let world = World::open(&options.folder);
    println!("opened");
    if options.forever {
        loop {
            world.schedule_all(10 * world::PER_CALL, 2, |_| world::task().after(Duration::from_millis(200)));
            println!("scheduled");
        }
    }
    world.runtime.block_on(world.seen.until_started(1));
    println!("begun");
    world.close();
}

fn start(path: &Path, forever: bool) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut command = Command::new(std::env::current_exe().expect("this program has a name"));
    command.arg("store-child").arg(path).stdout(Stdio::piped());
    if forever {
        command.arg("--forever");
    }
    let mut child = command.spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    (child, lines.map_while(Result::ok))
}

/// How long until it is open, and until the first task has begun, in milliseconds.
fn first_firing(path: &Path) -> (f64, f64) {
    let watch = Stopwatch::start();
    let (mut child, mut lines) = start(path, false);
    let milliseconds = || watch.elapsed().as_secs_f64() * 1e3;
    assert_eq!(lines.next().as_deref(), Some("opened"));
    let opened = milliseconds();
    assert_eq!(lines.next().as_deref(), Some("begun"));
    let begun = milliseconds();
    child.wait().expect("it ends");
    (opened, begun)
}

pub fn run(bench: &mut Bench<'_>) {
    let largest = bench.options.pending.iter().copied().max().unwrap_or(0);
    let path = bench.path("restart");
    let world = World::open(&path);
    bench.tell(&format!("scheduling {largest} tasks of tomorrow"));
    world.schedule_all(largest, 4, world::tomorrow);
    world.close();
    let (mut opened, mut begun) = (Vec::new(), Vec::new());
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("restart after kill -9, round {round}"));
        let (mut child, mut lines) = start(&path, true);
        // Another moment of its work in each round.
        for _ in 0..20 + 7 * round {
            lines.next().expect("it is at work");
        }
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
        let (open, begin) = first_firing(&path);
        opened.push(open);
        begun.push(begin);
    }
    let what = format!("after kill -9 in full work, {largest} pending");
    let note = |figures: Vec<f64>| crate::report::median(figures.into_iter());
    bench.note(Row::new(format!("restart: open {what}"), note(opened), Unit::Milliseconds, ""));
    bench.note(Row::new(
        format!("restart: first firing {what}"),
        note(begun),
        Unit::Milliseconds,
        "< 1000 ms",
    ));
    clean(&path);
}

/// The same after a clean stop. One task is due.
pub fn clean_start(bench: &mut Bench<'_>, path: &Path, pending: usize) {
    let mut begun = Vec::new();
    for round in 1..=bench.options.rounds {
        bench.tell(&format!("restart after a clean stop, round {round}"));
        let world = World::open(path);
        let due = world::task().after(Duration::from_millis(50)).queue("restart");
        world.runtime.block_on(async {
            world.scheduler.pause("restart").await.expect("paused");
            world.scheduler.schedule(due).await.expect("scheduled");
            world.scheduler.resume("restart").await.expect("resumed");
        });
        world.close();
        begun.push(first_firing(path).1);
    }
    let what = format!("restart: first firing after a clean stop, {pending} pending");
    bench.note(Row::new(what, crate::report::median(begun.into_iter()), Unit::Milliseconds, "< 1000 ms"));
}
