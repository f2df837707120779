//! What a process holds in memory is bounded by its limits, not by what is pending.

use super::Log;
use crate::history::Happening;
use crate::world::{PARTITIONS, limits};

pub fn check(log: &Log) -> Vec<String> {
    let limits = limits();
    // Twice what a partition may load, what each of its few busy windows may read on top, and what runs.
    let most = usize::from(PARTITIONS) * (2 * limits.loaded_max + 4 * limits.window_max)
        + limits.running_max as usize;
    let too_many = |(_, happening): &(_, Happening)| match happening {
        Happening::Measured { process, loaded } if *loaded > most => {
            Some(format!("{process:?} held {loaded} tasks in memory, and {most} is the most"))
        }
        _ => None,
    };
    log.iter().filter_map(too_many).collect()
}
