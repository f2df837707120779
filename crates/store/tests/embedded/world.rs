//! Stores to test with: on a simulated disk with everything inline, or in a folder with threads.

use punctual_store::embedded::cold::{FjallTier, MemoryTier};
use punctual_store::embedded::disk::{FolderDisk, SimulatedDisk};
use punctual_store::embedded::journal::Options;
use punctual_store::embedded::{Bounds, Hands, JournaledStore};

pub const PARTITIONS: u16 = 4;

pub type Simulated = JournaledStore<SimulatedDisk, MemoryTier>;
pub type Real = JournaledStore<FolderDisk, FjallTier>;

/// Small, so that segments are changed and layers go down all the time.
pub fn small() -> (Options, Bounds) {
    let journal = Options { segment_bytes: 16 << 20, keep_free_bytes: 0, ..Options::default() };
    (journal, Bounds { layer_bytes: 6 << 10, journal_bytes: 64 << 10 })
}

/// What outlives a process.
#[derive(Clone)]
pub struct Machine {
    pub disk: SimulatedDisk,
    pub cold: MemoryTier,
}

impl Machine {
    pub fn new(seed: u64) -> Machine {
        Machine { disk: SimulatedDisk::new(seed), cold: MemoryTier::default() }
    }

    pub async fn open(&self) -> Simulated {
        let opened =
            JournaledStore::open(self.disk.clone(), self.cold.clone(), PARTITIONS, small(), Hands::Inline);
        opened.await.expect("it opens")
    }
}

/// Opens the store in a folder.
pub async fn open(folder: &std::path::Path) -> Real {
    let disk = FolderDisk::open(folder.join("journal")).expect("the folder can be made");
    let cold = FjallTier::open(&folder.join("tables")).expect("the tables open");
    JournaledStore::open(disk, cold, PARTITIONS, small(), Hands::Threads).await.expect("it opens")
}
