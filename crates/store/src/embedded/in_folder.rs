//! The store in a data folder: opened, copied while it runs, and put back.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::author::Bounds;
use super::checkpoint::{self, ROWS_END};
use super::cold::{ColdTier, FjallTier};
use super::disk::{DiskRoom, FolderDisk};
use super::folder::{About, DataFolder, FolderError, FolderTrouble, NewFolder, check_beside, draw_identity};
use super::journal::Options;
use super::merge;
use super::shared::Shared;
use super::store::{Hands, JournaledStore};
use crate::{StoreError, Wrapper};

/// How a data folder is laid out, and how much memory the store in it takes.
#[derive(Clone, Debug)]
pub struct FolderOptions {
    /// How many partitions a new folder gets. One that exists keeps its own number.
    pub partitions: u16,
    /// The journal's layout.
    pub journal: Options,
    /// When rows go from memory to the tables.
    pub bounds: Bounds,
    /// How much room the disk has: it says so itself, except in tests.
    pub room: DiskRoom,
}

impl Default for FolderOptions {
    fn default() -> FolderOptions {
        let (journal, bounds, room) = Default::default();
        FolderOptions { partitions: 64, journal, bounds, room }
    }
}

/// The default store: a data folder of this machine. Durable before it answers. Clones share it; the folder is
/// free for others when the last one is dropped.
#[derive(Clone)]
pub struct EmbeddedStore {
    store: JournaledStore<FolderDisk, FjallTier>,
    /// Last, so that the folder stays locked until everything in it is closed.
    folder: Arc<DataFolder>,
}

/// What was copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Copied {
    /// Rows of all kinds.
    pub rows: u64,
    /// Their size.
    pub bytes: u64,
}

impl EmbeddedStore {
    /// Opens a data folder, or makes one.
    ///
    /// # Errors
    ///
    /// When another process has it open, when it holds something else, when a newer version wrote it, or when it is
    /// damaged: the text says which, and what to do.
    pub async fn open(path: impl AsRef<Path>) -> Result<EmbeddedStore, FolderError> {
        EmbeddedStore::open_with(path, FolderOptions::default()).await
    }

    /// Opens a data folder that is there. For whoever only looks or copies: a name that is mistyped must not become one.
    ///
    /// # Errors
    ///
    /// As above, and when there is none.
    pub async fn open_existing(path: impl AsRef<Path>) -> Result<EmbeddedStore, FolderError> {
        EmbeddedStore::open_folder(path.as_ref(), FolderOptions::default(), DataFolder::open).await
    }

    /// Opens a data folder, or makes one that is laid out otherwise.
    pub async fn open_with(
        path: impl AsRef<Path>,
        options: FolderOptions,
    ) -> Result<EmbeddedStore, FolderError> {
        let partitions = options.partitions;
        assert!(partitions > 0, "a store has one partition at least");
        let open = move |path: &Path| DataFolder::open_or_make(path, partitions);
        EmbeddedStore::open_folder(path.as_ref(), options, open).await
    }

    async fn open_folder(
        path: &Path,
        options: FolderOptions,
        open: impl FnOnce(&Path) -> Result<DataFolder, FolderError> + Send + 'static,
    ) -> Result<EmbeddedStore, FolderError> {
        let path = path.to_path_buf();
        let opened = blocking(path.clone(), move || {
            let folder = open(&path)?;
            let parts = || {
                let disk = FolderDisk::open(folder.journal())?.with_room(options.room.clone());
                let cold = FjallTier::open(&folder.tables())?.with_room(options.room.clone());
                Ok::<_, FolderTrouble>((disk, cold))
            };
            let (disk, cold) = parts().map_err(|trouble| trouble.at(&path))?;
            let About { identity, partitions } = folder.about;
            let journal = Options { identity, ..options.journal };
            let opened =
                JournaledStore::open_kv(disk, cold, partitions, (journal, options.bounds), Hands::Threads);
            let kv = opened.map_err(|error| FolderTrouble::Store(error).at(&path))?;
            Ok((kv, folder))
        });
        let (kv, folder) = opened.await?;
        let partitions = folder.about.partitions;
        let store = JournaledStore::on(kv, partitions).await;
        let store = store.map_err(|error| FolderTrouble::Store(error).at(folder.path()))?;
        Ok(EmbeddedStore { store, folder: Arc::new(folder) })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// How often the tables were read.
    pub fn cold_reads(&self) -> u64 {
        self.store.cold_reads()
    }

    /// How many checkpoints were made since it was opened.
    pub fn checkpoints(&self) -> u64 {
        self.store.checkpoints()
    }

    /// How many frames were written to the journal since it was opened, each with one sync, and their bytes.
    pub fn journal_written(&self) -> super::Written {
        self.store.journal_written()
    }

    /// How full it is.
    pub fn gauges(&self) -> super::Gauges {
        self.store.gauges()
    }

    /// Copies everything as it is at one moment into a new data folder, while the store goes on. The copy can be
    /// opened, verified and restored like any data folder. `progress` is told how much was copied so far.
    ///
    /// # Errors
    ///
    /// When the target is not empty, or a disk fails. What was copied until then is no data folder.
    pub async fn backup(
        &self,
        target: impl AsRef<Path>,
        mut progress: impl FnMut(Copied) + Send + 'static,
    ) -> Result<Copied, FolderError> {
        let (shared, target) = (self.store.shared(), target.as_ref().to_path_buf());
        let (partitions, source) = (self.folder.about.partitions, self.path().to_path_buf());
        blocking(target.clone(), move || {
            check_beside(&source, &target)?;
            let identity = draw_identity().map_err(|error| FolderTrouble::Disk(error).at(&target))?;
            let new = NewFolder::begin(&target, About { identity, partitions })?;
            let copied = copy_rows(&shared, &new.tables(), &mut progress);
            let copied = copied.map_err(|error| FolderTrouble::Store(error).at(&target))?;
            new.finish()?;
            Ok(copied)
        })
        .await
    }

    /// Puts a backup, or any data folder that nobody has open, into a new folder.
    ///
    /// # Errors
    ///
    /// When the first is no data folder or in use, when the second is not empty, or when a disk fails.
    pub async fn restore(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Copied, FolderError> {
        let (from, to) = (from.as_ref().to_path_buf(), to.as_ref().to_path_buf());
        blocking(to.clone(), move || {
            let source = DataFolder::open(&from)?;
            check_beside(&from, &to)?;
            let new = NewFolder::begin(&to, source.about)?;
            let mut copied = Copied::default();
            for (from, into) in [(source.tables(), new.tables()), (source.journal(), new.journal())] {
                copy_files(&from, &into, &mut copied).map_err(|error| FolderTrouble::Disk(error).at(&to))?;
            }
            new.finish()?;
            Ok(copied)
        })
        .await
    }
}

impl Wrapper for EmbeddedStore {
    type Inner = JournaledStore<FolderDisk, FjallTier>;

    fn inner(&self) -> &Self::Inner {
        &self.store
    }
}

/// Slow work, where it holds up nobody.
pub(super) async fn blocking<T: Send + 'static>(
    path: std::path::PathBuf,
    work: impl FnOnce() -> Result<T, FolderError> + Send + 'static,
) -> Result<T, FolderError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|died| Err(FolderTrouble::Store(StoreError::Unknown(Box::new(died))).at(&path)))
}

/// How many rows are copied between two words about it.
const ROWS_PER_WORD: u64 = 100_000;

/// All rows of one moment, as the only ingestion of new tables. The journal of the copy begins after it.
fn copy_rows<C: ColdTier>(
    shared: &Shared<C>,
    tables: &Path,
    progress: &mut dyn FnMut(Copied),
) -> Result<Copied, StoreError> {
    let target = FjallTier::open(tables)?;
    let layers = shared.read();
    let (recent, sealed) = (layers.recent.slice(&[], &ROWS_END, usize::MAX), layers.sealed.clone());
    let notes = checkpoint::notes(layers.next, &layers.unseen);
    // A layer that is on its way may be in the tables by now or not: it says the same again.
    let cold = shared.cold.range(&[], &ROWS_END);
    drop(layers);
    let rows = merge::all(recent, sealed.as_deref(), cold, (&[], &ROWS_END));
    let mut copied = Copied::default();
    let counted = rows.filter(|row| !matches!(row, Ok((_, None)))).inspect(|row| {
        let Ok((key, Some(value))) = row else { return };
        copied.rows += 1;
        copied.bytes += (key.as_slice().len() + value.len()) as u64;
        if copied.rows.is_multiple_of(ROWS_PER_WORD) {
            progress(copied);
        }
    });
    target.ingest(&mut counted.chain(notes.into_iter().map(Ok)))?;
    Ok(copied)
}

/// A folder with all that is in it, durably. There may be none.
fn copy_files(from: &Path, to: &Path, copied: &mut Copied) -> io::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_files(&entry.path(), &target, copied)?;
        } else {
            copied.bytes += fs::copy(entry.path(), &target)?;
            File::open(&target)?.sync_all()?;
        }
    }
    File::open(to)?.sync_all()
}
