//! Which files a folder holds: as it is seen, and as a crash would leave it.

use std::collections::BTreeMap;
use std::io;

use crate::dice::Dice;

#[derive(Default)]
pub(super) struct Names {
    seen: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    unsynced: Vec<Change>,
}

/// Each happens wholly or not at all, and independently of the others.
enum Change {
    Added { name: String, file: usize },
    Renamed { from: String, to: String, file: usize },
    Removed { name: String },
}

impl Names {
    pub fn find(&self, name: &str) -> Option<usize> {
        self.seen.get(name).copied()
    }

    pub fn list(&self) -> Vec<String> {
        self.seen.keys().cloned().collect()
    }

    pub fn files(&self) -> impl Iterator<Item = usize> + '_ {
        self.seen.values().copied()
    }

    pub fn create(&mut self, name: &str, file: usize) -> io::Result<()> {
        if self.seen.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(Change::Added { name: name.to_string(), file });
        Ok(())
    }

    pub fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let file = self.find(from).ok_or(io::ErrorKind::NotFound)?;
        self.change(Change::Renamed { from: from.to_string(), to: to.to_string(), file });
        Ok(())
    }

    pub fn remove(&mut self, name: &str) -> io::Result<()> {
        self.find(name).ok_or(io::ErrorKind::NotFound)?;
        self.change(Change::Removed { name: name.to_string() });
        Ok(())
    }

    pub fn sync(&mut self) {
        self.unsynced.clear();
        self.durable.clone_from(&self.seen);
    }

    /// Some changes are written, the others forgotten.
    pub fn fail_to_sync(&mut self, dice: &mut Dice) {
        for change in std::mem::take(&mut self.unsynced) {
            if dice.chance(500) {
                change.apply(&mut self.durable);
            }
        }
    }

    pub fn crash(&mut self, dice: &mut Dice) {
        self.fail_to_sync(dice);
        self.seen.clone_from(&self.durable);
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.unsynced.push(change);
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Change::Added { name, file } => {
                names.insert(name.clone(), *file);
            }
            Change::Renamed { from, to, file } => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
            Change::Removed { name } => {
                names.remove(name);
            }
        }
    }
}
