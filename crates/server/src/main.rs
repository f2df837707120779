//! The binary `punctual`.

mod cli;

use std::process::ExitCode;

/// Tasks are made on one thread and freed on another, where the system's allocator waits for its own locks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
