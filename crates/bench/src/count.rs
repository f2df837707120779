//! `count-life-cycles`: nothing but life cycles, for a tool that counts instructions.

use clap::{Args, ValueEnum};
use punctual_bench::echo::{Echo, Lanes, Maker, OPEN, Recorder, World};

use crate::life_cycle::library;
use crate::life_cycle::store::Recording;

/// Few enough that a batch stays in the cache, many enough that a round costs little.
const BATCH: usize = 256;

#[derive(Args)]
pub struct Options {
    /// How many tasks live.
    #[arg(long, default_value_t = 10_000)]
    tasks: usize,
    /// Through what.
    #[arg(long, value_enum, default_value_t = Path::Engine)]
    path: Path,
}

#[derive(Clone, Copy, ValueEnum)]
enum Path {
    /// The engine and the gate alone.
    Engine,
    /// The same, each task in a lane of its own.
    Lanes,
    /// Engine, gate and memory store.
    Store,
    /// The library, on one thread.
    Library,
}

pub fn run(options: &Options) {
    match options.path {
        Path::Engine => live(options.tasks, Lanes::None, Echo),
        Path::Lanes => live(options.tasks, Lanes::Own, Echo),
        Path::Store => live(options.tasks, Lanes::None, Recording::new(1)),
        Path::Library => library::on_one_thread(options.tasks),
    }
}

fn live(tasks: usize, lanes: Lanes, recorder: impl Recorder) {
    let mut world = World::new(1, recorder);
    let mut maker = Maker::new(1, OPEN, lanes);
    for _ in 0..tasks.div_ceil(BATCH) {
        let now = world.now().wall;
        world.ask(maker.make(BATCH, |_| now));
        world.settle();
    }
    let tally = world.tally();
    assert_eq!((tally.ended, tally.reads), (tally.created, 0), "every task lives and ends: {tally:?}");
    println!("{}", tally.ended);
}
