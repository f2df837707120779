//! The machine that the embedded store runs on: it loses power in the middle of a write, and starts again.

use futures_util::FutureExt;
use punctual_store::embedded::cold::MemoryTier;
use punctual_store::embedded::disk::SimulatedDisk;
use punctual_store::embedded::disk::simulated::Fault;
use punctual_store::embedded::journal::Options;
use punctual_store::embedded::{Bounds, Hands, JournaledStore};
use punctual_store::{Either, MemoryStore, Replaceable};

use crate::dice::Dice;
use crate::world::PARTITIONS;

/// The embedded store on a disk that crashes by seed.
pub type Embedded = JournaledStore<SimulatedDisk, MemoryTier>;
/// What a run is made on.
pub type SimStore = Either<MemoryStore, Replaceable<Embedded>>;

/// One seed of so many runs on the embedded store.
const EMBEDDED_SEEDS: u64 = 4;

/// What outlives a power cut, and the store on it.
pub struct Machine {
    disk: SimulatedDisk,
    tables: MemoryTier,
    store: Replaceable<Embedded>,
}

impl Machine {
    /// The store of a seed, and the machine below it if there is one.
    pub fn new(seed: u64) -> (SimStore, Option<Machine>) {
        if seed % EMBEDDED_SEEDS != EMBEDDED_SEEDS - 1 {
            return (Either::One(MemoryStore::new(PARTITIONS)), None);
        }
        let (disk, tables) = (SimulatedDisk::new(seed), MemoryTier::default());
        let store = Replaceable::new(open(&disk, &tables));
        (Either::Other(store.clone()), Some(Machine { disk, tables, store }))
    }

    /// The power goes at one of the next calls to the disk.
    pub fn cut_power_soon(&self, dice: &mut Dice) {
        self.disk.fail_at(1 + dice.below(12), Fault::Crash);
    }

    /// Whether the store has said that it cannot go on.
    pub fn is_down(&self) -> bool {
        self.store.present().has_failed()
    }

    /// Power on: what was not synced is there, or not, or half.
    pub fn start_again(&self) {
        self.disk.crash();
        self.store.replace(open(&self.disk, &self.tables));
    }
}

/// Small, so that segments are changed and layers go down all the time.
fn open(disk: &SimulatedDisk, tables: &MemoryTier) -> Embedded {
    let journal = Options { segment_bytes: 1 << 20, keep_free_bytes: 0, ..Options::default() };
    let bounds = Bounds { layer_bytes: 12 << 10, journal_bytes: 48 << 10 };
    let opened = Embedded::open(disk.clone(), tables.clone(), PARTITIONS, (journal, bounds), Hands::Inline);
    opened.now_or_never().expect("nothing is waited for").expect("what a crash leaves can be opened")
}
