//! Threads whose work can wait give way to those that answer somebody.

use std::panic::resume_unwind;
use std::thread;

/// How far they step back: a thread that answers gets about ten times as much of a processor that both want.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// This thread, and every thread that it starts from now on, gives way. Whoever fills a layer faster than it can be taken
/// down waits for that, and so hands the processor on: nothing is starved by this.
pub fn give_way() {
    // Elsewhere it would be the whole process that gives way. If it is refused, all are equal, as before.
    #[cfg(target_os = "linux")]
    rustix::process::nice(NICE).ok();
}

/// Does something in a thread that gives way, so that the threads it starts do too.
pub fn giving_way<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let worked = thread::scope(|scope| {
        let work = || {
            give_way();
            work()
        };
        scope.spawn(work).join()
    });
    worked.unwrap_or_else(|panic| resume_unwind(panic))
}
