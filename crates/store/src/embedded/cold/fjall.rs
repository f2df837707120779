//! Fjall, written by ingestion only: its own journal stays empty, so that a kill opens like a clean stop.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions};

use super::growing::{Follower, Growing};
use super::{ColdTier, Entry, manifest};
use crate::StoreError;
use crate::embedded::background::giving_way;
use crate::embedded::disk::{self, DiskRoom};

/// Blocks that were read are kept up to this many bytes.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;

/// How tables that are being made are told from others.
const UNFINISHED: &str = "new";
/// What tables take beyond their rows, at most: filters, an index, the list of tables.
const MARGIN_BYTES: u64 = 4 * 1024 * 1024;

/// Tables in a folder.
pub struct FjallTier {
    rows: Keyspace,
    /// Kept, because its threads end with it.
    database: Database,
    folder: PathBuf,
    /// None if there was no thread to be had: tables are then synced when they are whole.
    follower: Option<Follower>,
    room: DiskRoom,
}

impl FjallTier {
    /// Opens the tables in a folder, or makes it. New ones are made under another name: if that is cut off, what is
    /// left of them can never be opened, and is made again.
    pub fn open(folder: &Path) -> Result<FjallTier, StoreError> {
        if !folder.exists() {
            make(folder).map_err(|error| unreadable(folder, error))?;
        }
        manifest::check(folder).map_err(|error| unreadable(folder, error.into()))?;
        open(folder).map_err(|error| unreadable(folder, error))
    }

    /// The same, on a disk with this much room.
    pub fn with_room(self, room: DiskRoom) -> FjallTier {
        FjallTier { room, ..self }
    }

    /// Tables will be written from now on, by us or by fjall.
    fn follow(&self) {
        self.follower.iter().for_each(|follower| follower.begins(self.growing()));
    }

    fn growing(&self) -> Growing {
        Growing::new(self.rows.path().join("tables"))
    }
}

fn make(folder: &Path) -> Result<(), fjall::Error> {
    let unfinished = folder.with_extension(UNFINISHED);
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    drop(open(&unfinished)?);
    fs::rename(&unfinished, folder)?;
    folder.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())?;
    Ok(())
}

fn open(folder: &Path) -> Result<FjallTier, fjall::Error> {
    // Its threads tidy up behind everybody else.
    let database = giving_way(|| Database::builder(folder).cache_size(CACHE_BYTES).worker_threads(1).open())?;
    let rows = database.keyspace("rows", KeyspaceCreateOptions::default)?;
    let follower = Follower::start().ok();
    let tier = FjallTier { rows, database, folder: folder.into(), follower, room: DiskRoom::default() };
    // What was not merged before is merged now.
    tier.follow();
    Ok(tier)
}

impl ColdTier for FjallTier {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.rows.get(key).map_err(trouble)?.map(Bytes::from))
    }

    fn range<'a>(
        &'a self,
        from: &[u8],
        until: &[u8],
    ) -> Box<dyn Iterator<Item = Result<(Bytes, Bytes), StoreError>> + 'a> {
        if from >= until {
            return Box::new(std::iter::empty());
        }
        let rows = self.rows.range(from..until).map(|row| {
            let (key, value) = row.into_inner().map_err(trouble)?;
            Ok((Bytes::from(key), Bytes::from(value)))
        });
        Box::new(rows)
    }

    fn ingest(&self, entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>) -> Result<(), StoreError> {
        self.follow();
        let mut ingestion = self.rows.start_ingestion().map_err(trouble)?;
        for entry in entries {
            let (key, value) = entry?;
            match value {
                Some(value) => ingestion.write(key.as_slice(), value).map_err(trouble)?,
                None => ingestion.write_tombstone(key.as_slice()).map_err(trouble)?,
            }
        }
        ingestion.finish().map_err(trouble)
    }

    fn has_room(&self, bytes: u64) -> bool {
        // If the disk does not say, the attempt will.
        self.room.free_bytes(&self.folder).map_or(true, |free| free >= bytes.saturating_add(MARGIN_BYTES))
    }

    fn disk_bytes(&self) -> u64 {
        self.database.disk_space().unwrap_or_default()
    }
}

fn trouble(error: fjall::Error) -> StoreError {
    if no_space(&error) {
        StoreError::Full
    } else if is_spoiled(&error) {
        StoreError::Corrupt(Box::new(error))
    } else {
        StoreError::Unavailable(Box::new(error))
    }
}

/// Whether what was read is not what was written: it does not help to try again.
fn is_spoiled(error: &fjall::Error) -> bool {
    let is_cut = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => is_cut(error),
        fjall::Error::Storage(_) => true,
        fjall::Error::Decompress(_) | fjall::Error::InvalidTag(_) | fjall::Error::InvalidTrailer => true,
        _ => false,
    }
}

/// Whether somewhere beneath lies the disk's word that it is full.
fn no_space(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_full = error.downcast_ref::<io::Error>().is_some_and(disk::is_no_space);
    is_full || error.source().is_some_and(no_space)
}

fn unreadable(folder: &Path, error: fjall::Error) -> StoreError {
    StoreError::Corrupt(format!("the tables in {} cannot be opened: {error}", folder.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fjall does not promise where its tables lie.
    #[test]
    fn a_table_that_is_being_written_is_found() {
        let folder = std::env::temp_dir().join(format!("punctual-tables-{}", std::process::id()));
        let tier = FjallTier::open(&folder).expect("opened");
        let mut growing = tier.growing();
        assert_eq!(growing.sync(), 0);
        let ingestion = tier.rows.start_ingestion().expect("begun");
        assert_eq!(growing.sync(), 1);
        drop(ingestion);
        drop(tier);
        fs::remove_dir_all(folder).expect("removed");
    }
}
