//! Checks a data folder that nobody has open: every frame, every table, every row.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::cold::{ColdTier, FjallTier};
use super::disk::FolderDisk;
use super::folder::{DataFolder, FolderError, FolderTrouble};
use super::in_folder::blocking;
use super::journal::{self, Recovery};
use super::shared::{Layers, Shared};
use super::store::{self, Hands};
use crate::StoreError;
use crate::kv::{Guard, OrderedKv, Report, Write, verify as verify_rows};

/// What was found in a data folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    /// The journal since the last checkpoint.
    pub journal: Recovery,
    /// The rows of journal and tables together.
    pub rows: Report,
}

/// Checks a data folder: that its files can be read and belong together, and that each row is as it must be.
/// `progress` is told now and then what was found so far.
///
/// # Errors
///
/// When the folder could not be opened or read at all: it is in use, of a newer version, or damaged. Rows that are
/// wrong are no error: the report names them.
pub async fn verify(
    path: impl AsRef<Path>,
    mut progress: impl FnMut(&Report) + Send + 'static,
) -> Result<Verified, FolderError> {
    let path = path.as_ref().to_path_buf();
    blocking(path.clone(), move || {
        let folder = DataFolder::open(&path)?;
        let verified = verify_folder(&folder, &mut progress);
        verified.map_err(|trouble| trouble.at(&path))
    })
    .await
}

fn verify_folder(
    folder: &DataFolder,
    progress: &mut (dyn FnMut(&Report) + Send),
) -> Result<Verified, FolderTrouble> {
    let cold = FjallTier::open(&folder.tables())?;
    let mut layers = Layers::above(&cold, folder.about.partitions)?;
    let disk = FolderDisk::open(folder.journal())?;
    let read = journal::inspect(&disk, layers.next, |_, records| layers.replay(records));
    let (identity, recovery) = read.map_err(StoreError::from)?;
    store::check_tie(&cold, identity, &recovery)?;
    layers.next = recovery.next;
    let rows = ReadOnly(Arc::new(Shared::new(cold, layers, Hands::Inline)));
    let report = futures_util::FutureExt::now_or_never(verify_rows(&rows, folder.about.partitions, progress));
    Ok(Verified { journal: recovery, rows: report.expect("everything is durable, so nothing waits")? })
}

/// Rows as they lie there, for somebody who only looks.
struct ReadOnly<C>(Arc<Shared<C>>);

impl<C: ColdTier> OrderedKv for ReadOnly<C> {
    fn write_max(&self) -> usize {
        usize::MAX
    }

    async fn get(&self, key: &Bytes) -> Result<Option<Bytes>, StoreError> {
        Ok(self.get_many(std::slice::from_ref(key)).await?.pop().flatten())
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.0.get_many(keys).await
    }

    async fn scan(
        &self,
        from: &Bytes,
        until: &Bytes,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        self.0.scan(from, until, limit).await
    }

    async fn write(&self, _guards: &[Guard], _writes: Vec<Write>) -> Result<bool, StoreError> {
        Err(StoreError::Unavailable("the store is open to be read only".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The process was killed when the folder was made and nothing was in it: `verify` missed the row that says what
    /// the store is.
    #[tokio::test]
    async fn a_folder_that_was_just_made_is_well() {
        let place = tempfile::tempdir().expect("a folder");
        drop(DataFolder::open_or_make(place.path(), 4).expect("made"));
        for _ in 0..2 {
            let verified = verify(place.path(), |_| {}).await.expect("verified");
            assert_eq!((verified.rows.rows, verified.rows.described), (0, Vec::new()));
        }
    }
}
