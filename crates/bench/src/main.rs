//! Punctual side by side with its peers: every figure in a table comes from one run on one machine.

mod count;
#[cfg(feature = "http")]
mod http;
mod journal;
mod life_cycle;
mod memory;
mod random;
mod report;
mod stopwatch;
mod store;
mod wheel;

use clap::{Parser, Subcommand};

/// Measures parts of Punctual beside what else could be used in their place.
#[derive(Parser)]
#[command(name = "punctual-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The timing wheel beside heaps, trees, tokio's queue and the other wheel designs.
    Wheel(wheel::Options),
    /// Whole lives of tasks: through the engine alone, with the memory store, and through the library.
    LifeCycle(life_cycle::Options),
    /// What a node holds for tasks that wait: far ahead, behind a stuck lane, in a paused queue, in blocked lanes.
    Memory(memory::Options),
    /// The journal of the embedded store beside bare files, on the disk of a folder.
    Journal(journal::Options),
    /// The library on the embedded store: enqueue, execute, lateness, pending mass, restart, isolation, idle.
    Store(store::Options),
    /// The other process of `store`.
    #[command(hide = true)]
    StoreChild(store::restart::ChildOptions),
    /// The server, in a process of its own, under a load over loopback.
    #[cfg(feature = "http")]
    Http(http::Options),
    /// Other processes of `http`.
    #[cfg(feature = "http")]
    #[command(hide = true)]
    BareServer(http::ServerOptions),
    /// Other processes of `http`.
    #[cfg(feature = "http")]
    #[command(hide = true)]
    BareCaller(http::CallerOptions),
    /// Nothing but life cycles, for a tool that counts instructions: see `scripts/count-instructions`.
    CountLifeCycles(count::Options),
}

fn main() {
    match Arguments::parse().command {
        Command::Wheel(options) => wheel::run(&options),
        Command::LifeCycle(options) => life_cycle::run(&options),
        Command::Memory(options) => memory::run(&options),
        Command::Journal(options) => journal::run(&options),
        Command::Store(options) => store::run(&options),
        Command::StoreChild(options) => store::restart::child(&options),
        #[cfg(feature = "http")]
        Command::Http(options) => http::run(&options),
        #[cfg(feature = "http")]
        Command::BareServer(options) => http::serve(&options),
        #[cfg(feature = "http")]
        Command::BareCaller(options) => http::call(&options),
        Command::CountLifeCycles(options) => count::run(&options),
    }
}
