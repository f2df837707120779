//! A clock whose wall time stands still until it is set forward: for the tests of those who use Punctual.
//!
//! Only wall time is virtual. Boot time passes as on the machine, so that long polls, call timeouts and a stop take what
//! they take; and it moves along when wall time is set forward, so that leases, rates and breakers see it pass too.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use punctual_core::{BootTime, Now, Timestamp};

/// Wall time that somebody sets. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    begun: Timestamp,
    /// A store that was used before may know a later time than the one it began with: then that counts.
    may_go_on: bool,
    wall_micros: Arc<AtomicI64>,
}

impl VirtualClock {
    /// A clock that shows this time.
    pub fn at(wall: Timestamp) -> VirtualClock {
        let wall_micros = Arc::new(AtomicI64::new(wall.as_micros()));
        VirtualClock { begun: wall, may_go_on: false, wall_micros }
    }

    /// A clock that shows this time, or the time that was last seen on the store it is used with, if that is later.
    pub fn at_or_later(wall: Timestamp) -> VirtualClock {
        VirtualClock { may_go_on: true, ..VirtualClock::at(wall) }
    }

    /// What it shows.
    pub fn wall(&self) -> Timestamp {
        Timestamp::from_micros(self.wall_micros.load(Ordering::SeqCst))
    }

    /// Sets it forward. A time that is past changes nothing. Whoever waits for the time must be woken besides:
    /// [`Scheduler::quiet`](crate::Scheduler::quiet) does that.
    pub fn advance_to(&self, wall: Timestamp) {
        self.wall_micros.fetch_max(wall.as_micros(), Ordering::SeqCst);
    }

    pub(super) fn begin_after(&self, trusted: Timestamp) {
        if self.may_go_on {
            self.advance_to(trusted);
        }
    }

    /// What is read when the machine's own boot-time clock reads this.
    pub(super) fn read(&self, boot: BootTime) -> Now {
        let wall = self.wall();
        let advanced: Duration = wall.since(self.begun);
        Now { wall, boot: boot + advanced }
    }
}
