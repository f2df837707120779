//! How many connections the machine has room for: each is an open file, and so is much of what the store works with.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::Limits;

/// Files that are not connections: tables, journals, calls that are being made.
const OTHER_FILES: u64 = 1_024;

/// Raises the number of open files as far as it may be, and takes no more connections than that is room for.
pub fn within_the_machine(mut limits: Limits) -> Limits {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // If it must not be raised, there is less room, and that is said below.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let Some(files) = (if raised { maximum } else { current }) else { return limits };
    let room = files.saturating_sub(OTHER_FILES).max(files / 2);
    let room = u32::try_from(room).unwrap_or(u32::MAX).max(1);
    if room < limits.connections_max {
        eprintln!(
            "punctual: {room} connections at most, not {}: a process may open only {files} files here (ulimit -n)",
            limits.connections_max
        );
        limits.connections_max = room;
    }
    limits
}
