//! Whether a queue may be entered: nobody removes it while a task is on its way in, and nobody enters while it is removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Nobody enters any more.
const SHUT: usize = usize::MAX;

/// The door of a queue. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Door {
    /// How many are on their way in, or [`SHUT`].
    entering: Arc<AtomicUsize>,
}

/// Somebody is on their way in until this is dropped.
#[derive(Debug)]
pub(crate) struct Entry(Door);

/// The ways in that a request holds, each once.
#[derive(Clone, Default, Debug)]
pub struct Entries(Vec<Entry>);

/// The door is shut: it opens again when this is dropped, unless it is [left shut](Shut::for_good).
pub(crate) struct Shut<'a>(&'a Door);

impl Door {
    /// A door that stays shut.
    pub fn of_what_is_gone() -> Door {
        Door { entering: Arc::new(AtomicUsize::new(SHUT)) }
    }

    /// Enters, if it is not shut.
    pub fn enter(&self) -> Option<Entry> {
        let more = |entering: usize| entering.checked_add(1).filter(|more| *more != SHUT);
        let entered = self.entering.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        entered.is_ok().then(|| Entry(self.clone()))
    }

    /// Shuts it, if nobody is on their way in.
    pub fn shut(&self) -> Option<Shut<'_>> {
        let shut = self.entering.compare_exchange(0, SHUT, Ordering::AcqRel, Ordering::Acquire);
        // Not made at all when it is not shut: its end would open the door.
        shut.is_ok().then(|| Shut(self))
    }
}

impl Entries {
    /// Holds another one, unless the last was through the same door.
    pub(crate) fn add(&mut self, entry: Entry) {
        let is_same = |last: &Entry| Arc::ptr_eq(&last.0.entering, &entry.0.entering);
        if !self.0.last().is_some_and(is_same) {
            self.0.push(entry);
        }
    }
}

impl From<Entry> for Entries {
    fn from(entry: Entry) -> Entries {
        Entries(vec![entry])
    }
}

impl Clone for Entry {
    /// Nobody has shut the door meanwhile: this one is on the way in.
    fn clone(&self) -> Entry {
        self.0.entering.fetch_add(1, Ordering::AcqRel);
        Entry(self.0.clone())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.entering.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Shut<'_> {
    /// The queue is gone.
    pub fn for_good(self) {
        std::mem::forget(self);
    }
}

impl Drop for Shut<'_> {
    fn drop(&mut self) {
        self.0.entering.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_enters_through_a_shut_door_and_none_shuts_that_somebody_enters_through() {
        let door = Door::default();
        let mut entries = Entries::from(door.enter().unwrap());
        entries.add(door.clone().enter().unwrap());
        entries.add(Door::default().enter().unwrap());
        assert_eq!(entries.0.len(), 2, "one for each door");
        assert!(door.shut().is_none());
        let others = entries.clone();
        drop(entries);
        assert!(door.shut().is_none());
        drop(others);
        let shut = door.shut().expect("nobody enters");
        assert!(door.enter().is_none() && door.shut().is_none());
        drop(shut);
        drop(door.enter().expect("it is open again"));
        door.shut().unwrap().for_good();
        assert!(door.enter().is_none());
    }
}
