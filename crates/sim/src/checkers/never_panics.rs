//! A partition may fail and be taken over anew, but no fault of the world is a reason to.

use super::Log;
use crate::history::Happening;

pub fn check(log: &Log) -> Vec<String> {
    let panicked = |(_, happening): &(_, Happening)| match happening {
        Happening::Panicked(text) => Some(text.clone()),
        _ => None,
    };
    log.iter().filter_map(panicked).collect()
}
