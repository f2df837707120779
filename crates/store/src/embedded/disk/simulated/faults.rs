//! Which calls were made, and how those to come will end.

use std::collections::BTreeMap;
use std::io;

/// The kinds of calls, to be counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "named after the calls")]
pub enum Call {
    Create,
    Open,
    Rename,
    Remove,
    List,
    SyncFolder,
    FreeBytes,
    Lock,
    Len,
    Read,
    Write,
    Sync,
}

const KINDS: usize = Call::Sync as usize + 1;

/// How a call ends when it does not succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The power goes: the call may have had its effect, and no later call is answered before the crash.
    Crash,
    /// The device says that it could not. Some of a write or of a sync may have happened.
    Io,
    /// There is no room. Some of a write may have happened.
    NoSpace,
}

impl Fault {
    pub(super) fn error(self) -> io::Error {
        match self {
            Fault::Crash => io::Error::other("the power is off"),
            Fault::Io => rustix::io::Errno::IO.into(),
            Fault::NoSpace => io::ErrorKind::StorageFull.into(),
        }
    }
}

#[derive(Default)]
pub(super) struct Plan {
    counts: [u64; KINDS],
    faults: BTreeMap<u64, Fault>,
    is_off: bool,
    pub bytes_written: u64,
}

impl Plan {
    pub fn add(&mut self, nth: u64, fault: Fault) {
        self.faults.insert(self.count_in_all() + nth, fault);
    }

    pub fn forget(&mut self) {
        self.faults.clear();
        self.is_off = false;
    }

    pub fn count(&self, call: Call) -> u64 {
        self.counts[call as usize]
    }

    pub fn count_in_all(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub fn begin(&mut self, call: Call) -> io::Result<Option<Fault>> {
        if self.is_off {
            return Err(Fault::Crash.error());
        }
        self.counts[call as usize] += 1;
        let fault = self.faults.remove(&self.count_in_all());
        self.is_off = fault == Some(Fault::Crash);
        Ok(fault)
    }
}
