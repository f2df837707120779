//! Tables are synced while they grow. One of many megabytes that is synced only when it is whole fills the disk's queue, and
//! every frame of the journal that is to be durable meanwhile waits behind it, 10 to 45 ms.
//!
//! It is for speed alone: who writes a table syncs it in the end. So nothing here fails; what cannot be looked at is not
//! synced early. Nor does it hide anything: Linux tells of a failed write to everybody who had the file open, so its writer
//! hears of it however often it was told here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two looks: a table grows by some hundred kilobytes, which the disk takes as fast as nothing.
const REST: Duration = Duration::from_millis(5);
/// After so many looks in vain nothing is being written, merged tables included.
const LOOKS_IN_VAIN: u32 = 200;

/// A thread that syncs tables while they grow. It ends with this.
pub struct Follower {
    /// `None` when it is to end.
    begins: Option<SyncSender<Growing>>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    pub fn start() -> io::Result<Follower> {
        let (begins, told) = sync_channel(1);
        let thread = std::thread::Builder::new().name("punctual-tables".into());
        let thread = thread.spawn(move || follow(&told))?;
        Ok(Follower { begins: Some(begins), thread: Some(thread) })
    }

    /// Tables are about to be written.
    pub fn begins(&self, growing: Growing) {
        // If one waits to be seen, the thread is about to look.
        self.begins.as_ref().and_then(|begins| begins.try_send(growing).ok());
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.begins = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn follow(told: &Receiver<Growing>) {
    while let Ok(mut growing) = told.recv() {
        let mut in_vain = 0;
        while in_vain < LOOKS_IN_VAIN {
            match told.recv_timeout(REST) {
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if growing.sync() == 0 => in_vain += 1,
                // The next table: it is seen as well.
                Ok(_) | Err(RecvTimeoutError::Timeout) => in_vain = 0,
            }
        }
    }
}

/// The tables that are being written into a folder.
pub struct Growing {
    folder: PathBuf,
    /// How long each was when it was seen last.
    lengths: BTreeMap<OsString, u64>,
}

impl Growing {
    /// What changes from now on grows.
    pub fn new(folder: PathBuf) -> Growing {
        let lengths = tables(&folder).collect();
        Growing { folder, lengths }
    }

    /// Syncs tables that have grown. Says how many these are.
    pub fn sync(&mut self) -> usize {
        let lengths: BTreeMap<_, _> = tables(&self.folder).collect();
        let mut grown = 0;
        for (name, length) in &lengths {
            if self.lengths.get(name) != Some(length) {
                // One that was merged away in this moment is gone.
                File::open(self.folder.join(name)).and_then(|table| table.sync_data()).ok();
                grown += 1;
            }
        }
        self.lengths = lengths;
        grown
    }
}

/// The names and lengths of tables.
fn tables(folder: &Path) -> impl Iterator<Item = (OsString, u64)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name(), entry.metadata().ok()?.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_synced() {
        let folder = std::env::temp_dir().join(format!("punctual-growing-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        fs::write(folder.join("1"), "whole").expect("written");
        let mut growing = Growing::new(folder.clone());
        assert_eq!(growing.sync(), 0, "none has begun");
        fs::write(folder.join("2"), "grows").expect("written");
        assert_eq!(growing.sync(), 1);
        assert_eq!(growing.sync(), 0, "it has not grown since");
        fs::write(folder.join("2"), "grows on").expect("written");
        fs::write(folder.join("3"), "").expect("written");
        assert_eq!(growing.sync(), 2);
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(growing.sync(), 0);
    }
}
