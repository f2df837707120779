//! That an attempt has begun is put on record when it has run for a moment. Most are over before that, and their end says
//! all there is to say: a row that is written only to be written again costs as much as the end itself.
//! Decision record: `docs/decisions/0022-starts-that-last-are-noted.md`.

use std::time::Duration;

use super::Engine;
use super::entry::Slot;
use crate::change::Change;
use crate::message::Token;
use crate::time::{BootTime, Now};

/// An attempt that began a moment ago.
pub struct JustBegun {
    slot: Slot,
    token: Token,
    /// From then on it is noted.
    until: BootTime,
}

impl Engine {
    /// An attempt begins whose start need not be on record for it.
    pub(super) fn has_begun(&mut self, now: Now, slot: Slot, token: Token) {
        match self.settings.limits.unnoted_max {
            moment if moment.is_zero() => self.began.push(slot),
            moment => {
                let until = next_beat(now.boot + moment, moment / 2);
                self.just_begun.push_back(JustBegun { slot, token, until });
            }
        }
    }

    /// Those that have run for a moment are noted with the next batch, and those that are over are forgotten.
    pub(super) fn note_what_lasts(&mut self, now: Now) {
        while let Some(first) = self.just_begun.front() {
            let runs = self.runs(first);
            if runs && now.boot < first.until {
                return;
            }
            self.began.extend(runs.then_some(first.slot));
            self.just_begun.pop_front();
        }
    }

    /// All that run are noted with the next batch: somebody relies on it that what happened is on record.
    pub fn note_all_begun(&mut self) {
        for begun in std::mem::take(&mut self.just_begun) {
            let runs = self.runs(&begun);
            self.began.extend(runs.then_some(begun.slot));
        }
    }

    /// Somebody is about to be promised something about this attempt: what is on record must tell of it.
    pub(super) fn note_now(&mut self, token: Token) {
        let place = self.just_begun.iter().position(|begun| begun.token == token);
        let begun = place.and_then(|place| self.just_begun.remove(place));
        self.began.extend(begun.map(|begun| begun.slot));
    }

    /// When the next of them has run for a moment.
    pub(super) fn next_to_note(&self) -> Option<BootTime> {
        self.just_begun.front().map(|first| first.until)
    }

    /// Attempts to be noted that still run are noted in this batch. Nobody waits for it.
    pub(super) fn note_begun_attempts(&mut self) {
        let mut began = std::mem::take(&mut self.began);
        for slot in began.drain(..) {
            if self.entries.get(slot).is_some_and(|entry| entry.token().is_some()) {
                let change = self.begun_change(slot);
                self.changes.push(change);
            }
        }
        self.began = began;
    }

    pub(super) fn begun_change(&self, slot: Slot) -> Change {
        let task = &self.entries[slot].task;
        let begun = task.begun.expect("a running task has begun");
        Change::Began {
            id: task.id,
            place: task.place(),
            attempts: task.attempts,
            crashes: task.crashes,
            begun,
        }
    }

    /// Its slot may be another's by now.
    fn runs(&self, begun: &JustBegun) -> bool {
        self.entries.get(begun.slot).is_some_and(|entry| entry.token() == Some(begun.token))
    }
}

/// Many that last are noted together, and those of other partitions with them: the node is woken once for all of them.
fn next_beat(at: BootTime, every: Duration) -> BootTime {
    let micros = u64::try_from(every.as_micros()).unwrap_or(u64::MAX).max(1);
    BootTime::from_micros(at.as_micros().checked_next_multiple_of(micros).unwrap_or(u64::MAX))
}
