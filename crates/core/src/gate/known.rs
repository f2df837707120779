//! Destinations that answered not long ago: they are trusted with more than strangers are.

use std::time::Duration;

use rustc_hash::FxHashSet;

use crate::time::{BootTime, Now};

/// Those that have answered, and where nobody goes at present. Bounded in number and in time: one that is forgotten is a
/// stranger until it answers again.
#[derive(Default)]
pub struct Known {
    recent: FxHashSet<u64>,
    /// Those of the stretch before, which are forgotten with the next one.
    earlier: FxHashSet<u64>,
    since: BootTime,
}

impl Known {
    /// How long a stretch is, at most,
    const STRETCH: Duration = Duration::from_secs(600);
    /// and how many are remembered in it.
    const MAX: usize = 16_384;

    /// It has answered, and nobody goes there any more.
    pub fn remember(&mut self, now: Now, id: u64) {
        if self.recent.len() >= Self::MAX || self.since + Self::STRETCH <= now.boot {
            self.earlier = std::mem::take(&mut self.recent);
            self.since = now.boot;
        }
        self.recent.insert(id);
    }

    /// It is not what it was.
    pub fn forget(&mut self, id: u64) {
        self.recent.remove(&id);
        self.earlier.remove(&id);
    }

    pub fn contains(&self, id: u64) -> bool {
        self.recent.contains(&id) || self.earlier.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_everybody_is_known_for_ever() {
        let at = |secs: u64| Now { boot: BootTime::from_micros(secs * 1_000_000), ..Now::default() };
        let mut known = Known::default();
        known.remember(at(1), 7);
        known.remember(at(700), 8);
        assert!(known.contains(7) && known.contains(8));
        known.remember(at(1_400), 9);
        assert!(!known.contains(7) && known.contains(8));
        (0..100_000).for_each(|id| known.remember(at(1_401), id));
        assert!(known.recent.len() + known.earlier.len() <= 2 * Known::MAX);
        assert!(known.contains(99_999) && !known.contains(8));
        known.forget(99_999);
        assert!(!known.contains(99_999));
    }
}
