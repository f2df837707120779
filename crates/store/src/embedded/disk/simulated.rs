//! A disk in memory that can lose power, tear writes, fail and fill up, all repeatable from a seed.
//!
//! It is as unkind as a real one may be, and a little more. What was written and not synced is kept or lost sector
//! by sector, whatever the order of the writes; files and names that were not synced with their folder may vanish.
//! A sync that fails forgets what it could not write, so that the next one succeeds without having written it.
//! One kindness: of a sector written twice between two syncs only the last version can be kept.

mod faults;
mod file;
mod names;

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

pub use faults::{Call, Fault};

use self::faults::Plan;
use self::file::Contents;
use self::names::Names;
use super::{Disk, DiskFile, SECTOR, is_no_space};
use crate::dice::Dice;

/// A disk in memory. Clones share it.
#[derive(Clone)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

struct State {
    dice: Dice,
    files: Vec<Contents>,
    names: Names,
    locked: BTreeSet<String>,
    /// Grows with each crash: what was opened before it is of no use after it.
    boot: u64,
    capacity: u64,
    /// Some disks write and sync at once.
    writes_through: bool,
    plan: Plan,
}

impl SimulatedDisk {
    /// An empty disk without a limit. The same seed and the same calls end the same way.
    pub fn new(seed: u64) -> SimulatedDisk {
        let state = State {
            dice: Dice::new(seed),
            files: Vec::new(),
            names: Names::default(),
            locked: BTreeSet::new(),
            boot: 0,
            capacity: u64::MAX,
            writes_through: seed.is_multiple_of(3),
            plan: Plan::default(),
        };
        SimulatedDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// Limits the sum of all files. Writes that would pass it find no space.
    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = bytes;
    }

    /// The sum of all files.
    pub fn used_bytes(&self) -> u64 {
        self.state().used_bytes()
    }

    /// Lets the nth call from now (the next one is the first) end this way.
    pub fn fail_at(&self, nth: u64, fault: Fault) {
        self.state().plan.add(nth, fault);
    }

    /// How often a kind of call was made.
    pub fn calls(&self, call: Call) -> u64 {
        self.state().plan.count(call)
    }

    /// How many calls of any kind were made.
    pub fn calls_in_all(&self) -> u64 {
        self.state().plan.count_in_all()
    }

    /// How many bytes were handed to writes.
    pub fn bytes_written(&self) -> u64 {
        self.state().plan.bytes_written
    }

    /// Power off and on again: what is not synced is kept or lost by chance. Planned faults are forgotten.
    pub fn crash(&self) {
        let state = &mut *self.state();
        // Some crashes lose everything, some nothing, most something.
        let kept_per_mille = [0, 250, 500, 750, 1_000][state.dice.below(5) as usize];
        let dice = &mut state.dice.clone();
        state.power_off(|_| dice.chance(kept_per_mille));
        state.dice = dice.clone();
    }

    /// Like [`SimulatedDisk::crash`], but keeps the nth sector that is not synced (from 0, in order of files and
    /// offsets) if told so. Names are kept or lost by chance.
    pub fn crash_keeping(&self, keep: impl FnMut(usize) -> bool) {
        self.state().power_off(keep);
    }

    /// The process dies, the power stays on: everything that was written can be read, and what was not synced still
    /// is not. Planned faults are forgotten.
    pub fn kill(&self) {
        self.state().restart();
    }

    /// How many sectors are written and not synced.
    pub fn unsynced_sectors(&self) -> usize {
        self.state().files.iter().map(Contents::unsynced_sectors).sum()
    }

    /// Spoils a byte of a file, where it is seen and where it is durable. No such byte, no effect.
    pub fn flip(&self, name: &str, offset: usize, mask: u8) {
        let state = &mut *self.state();
        if let Some(file) = state.names.find(name) {
            state.files[file].flip(offset, mask);
        }
    }

    /// What is in a file, without a call being counted.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.find(name).map(|file| state.files[file].seen().to_vec())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the disk")
    }

    fn handle(&self, file: usize, boot: u64) -> SimulatedFile {
        SimulatedFile { disk: self.clone(), file, boot }
    }
}

impl State {
    fn used_bytes(&self) -> u64 {
        self.names.files().map(|file| self.files[file].seen().len() as u64).sum()
    }

    fn power_off(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut sectors = 0;
        for file in &mut self.files {
            file.crash(|| {
                sectors += 1;
                keep(sectors - 1)
            });
        }
        self.names.crash(&mut self.dice);
        self.restart();
    }

    fn restart(&mut self) {
        self.locked.clear();
        self.boot += 1;
        self.plan.forget();
    }

    /// Counts a call, and says how it is to end.
    fn begin(&mut self, call: Call) -> io::Result<Option<Fault>> {
        self.plan.begin(call)
    }

    fn begin_read(&mut self, call: Call) -> io::Result<()> {
        self.begin(call)?.map_or(Ok(()), |fault| Err(fault.error()))
    }

    fn file(&mut self, file: usize, boot: u64) -> io::Result<&mut Contents> {
        if boot != self.boot {
            return Err(io::Error::other("the file was opened before a crash"));
        }
        Ok(&mut self.files[file])
    }

    /// A change of names happens before a crash, and not before another fault.
    fn change_names(
        &mut self,
        call: Call,
        change: impl FnOnce(&mut State) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.begin(call)? {
            None => change(self),
            Some(Fault::Crash) => {
                // Whether it is kept is decided when the power comes back.
                let _ = change(self);
                Err(Fault::Crash.error())
            }
            Some(fault) => Err(fault.error()),
        }
    }
}

impl Disk for SimulatedDisk {
    type File = SimulatedFile;
    type Lock = SimulatedLock;

    fn create(&self, name: &str) -> io::Result<SimulatedFile> {
        let state = &mut *self.state();
        state.change_names(Call::Create, |state| {
            state.names.create(name, state.files.len())?;
            state.files.push(Contents::default());
            Ok(())
        })?;
        Ok(self.handle(state.files.len() - 1, state.boot))
    }

    fn open(&self, name: &str) -> io::Result<SimulatedFile> {
        let state = &mut *self.state();
        state.begin_read(Call::Open)?;
        let file = state.names.find(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(file, state.boot))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.state().change_names(Call::Rename, |state| state.names.rename(from, to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.state().change_names(Call::Remove, |state| state.names.remove(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let state = &mut *self.state();
        state.begin_read(Call::List)?;
        Ok(state.names.list())
    }

    fn sync_folder(&self) -> io::Result<()> {
        let state = &mut *self.state();
        match state.begin(Call::SyncFolder)? {
            None => state.names.sync(),
            Some(Fault::Crash) => return Err(Fault::Crash.error()),
            Some(fault) => {
                state.names.fail_to_sync(&mut state.dice);
                return Err(fault.error());
            }
        }
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = &mut *self.state();
        state.begin_read(Call::FreeBytes)?;
        Ok(state.capacity.saturating_sub(state.used_bytes()))
    }

    fn lock(&self, name: &str) -> io::Result<Option<SimulatedLock>> {
        let state = &mut *self.state();
        state.begin_read(Call::Lock)?;
        let is_free = state.locked.insert(name.to_string());
        let (disk, boot) = (self.clone(), state.boot);
        Ok(is_free.then(|| SimulatedLock { disk, name: name.to_string(), boot }))
    }
}

/// A file of a [`SimulatedDisk`].
pub struct SimulatedFile {
    disk: SimulatedDisk,
    file: usize,
    boot: u64,
}

impl DiskFile for SimulatedFile {
    fn len(&self) -> io::Result<u64> {
        let state = &mut *self.disk.state();
        state.begin_read(Call::Len)?;
        Ok(state.file(self.file, self.boot)?.seen().len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let state = &mut *self.disk.state();
        state.begin_read(Call::Read)?;
        state.file(self.file, self.boot)?.read(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let state = &mut *self.disk.state();
        let fault = state.begin(Call::Write)?;
        state.plan.bytes_written += bytes.len() as u64;
        let (used, capacity) = (state.used_bytes(), state.capacity);
        let some = state.dice.below(bytes.len() as u64 + 1) as usize;
        let file = state.file(self.file, self.boot)?;
        let growth = (offset + bytes.len() as u64).saturating_sub(file.seen().len() as u64);
        match fault {
            None if used.saturating_add(growth) > capacity => Err(Fault::NoSpace.error()),
            None => {
                file.write(offset, bytes);
                Ok(())
            }
            Some(Fault::Crash) => {
                file.write(offset, bytes);
                Err(Fault::Crash.error())
            }
            Some(fault) => {
                file.write(offset, &bytes[..some]);
                Err(fault.error())
            }
        }
    }

    fn write_through(&self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        self.write_at(offset, bytes)?;
        if !self.disk.state().writes_through {
            return Ok(false);
        }
        // No more than what was written, as real ones: what else waits to be synced goes on waiting.
        let from = usize::try_from(offset).expect("a simulated file is small");
        match self.sync_some(&(from / SECTOR..(from + bytes.len()).div_ceil(SECTOR))) {
            // Whether it was the write or the sync that found none is not known: it is written again, as usual.
            Err(error) if is_no_space(&error) => self.write_at(offset, bytes).map(|()| false),
            synced => synced.map(|()| true),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_some(&file::ALL)
    }
}

impl SimulatedFile {
    fn sync_some(&self, sectors: &Range<usize>) -> io::Result<()> {
        let state = &mut *self.disk.state();
        match state.begin(Call::Sync)? {
            None => state.file(self.file, self.boot)?.sync(sectors),
            Some(Fault::Crash) => return Err(Fault::Crash.error()),
            Some(fault) => {
                let mut dice = state.dice.clone();
                state.file(self.file, self.boot)?.fail_to_sync(sectors, || dice.chance(500));
                state.dice = dice;
                return Err(fault.error());
            }
        }
        Ok(())
    }
}

/// The lock of a [`SimulatedDisk`].
pub struct SimulatedLock {
    disk: SimulatedDisk,
    name: String,
    boot: u64,
}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let state = &mut *self.disk.state();
        // After a crash it may be somebody else's.
        if self.boot == state.boot {
            state.locked.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests;
