//! What outlives a process: a disk and tables.

use bytes::Bytes;

use crate::embedded::cold::MemoryTier;
use crate::embedded::disk::SimulatedDisk;
use crate::embedded::journal::Options;
use crate::embedded::{Bounds, Hands, JournaledStore};
use crate::{StoreError, Wrapper};

pub const PARTITIONS: u16 = 4;
/// Room for the largest frame of a scenario, and for few of them.
pub const SEGMENT_BYTES: u64 = 32 << 10;

pub type Simulated = JournaledStore<SimulatedDisk, MemoryTier>;
/// Every row of a store, as it is stored.
pub type Rows = Vec<(Bytes, Bytes)>;

#[derive(Clone)]
pub struct Machine {
    pub disk: SimulatedDisk,
    pub cold: MemoryTier,
}

impl Machine {
    pub fn new(seed: u64) -> Machine {
        Machine { disk: SimulatedDisk::new(seed), cold: MemoryTier::default() }
    }

    pub async fn open(&self) -> Result<Simulated, StoreError> {
        self.open_with(Hands::Inline).await
    }

    pub async fn open_with(&self, hands: Hands) -> Result<Simulated, StoreError> {
        let journal = Options { segment_bytes: SEGMENT_BYTES, keep_free_bytes: 0, ..Options::default() };
        let bounds = Bounds { layer_bytes: 4 << 10, journal_bytes: 32 << 10 };
        JournaledStore::open(self.disk.clone(), self.cold.clone(), PARTITIONS, (journal, bounds), hands).await
    }

    /// The process dies; three times out of four the power goes as well.
    pub fn die(&self, seed: u64) {
        if seed.is_multiple_of(4) {
            self.disk.kill();
        } else {
            self.disk.crash();
        }
    }
}

/// All rows, which are as they must be beside each other.
pub async fn rows_of(store: &Simulated) -> Rows {
    let report = store.inner().verify().await.expect("every row can be read");
    assert_eq!(report.described, Vec::<String>::new());
    store
        .shared()
        .scan(&Bytes::new(), &Bytes::from_static(&[255]), usize::MAX)
        .await
        .expect("every row can be read")
}
