//! What lies below the journal's layers: sorted tables, written a whole layer at a time.

mod fjall;
mod growing;
mod manifest;
mod memory;

use bytes::Bytes;

use super::key::Key;
use crate::StoreError;

pub use self::fjall::FjallTier;
pub use self::memory::{MemoryTier, TierFault};

/// A row, or a deletion.
pub type Entry = (Key, Option<Bytes>);

/// Sorted rows on stable storage. Written by whole layers only.
pub trait ColdTier: Send + Sync + 'static {
    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// Rows in `from..until`, in order, as they are now or later.
    fn range<'a>(
        &'a self,
        from: &[u8],
        until: &[u8],
    ) -> Box<dyn Iterator<Item = Result<(Bytes, Bytes), StoreError>> + 'a>;

    /// Takes entries in, in order of key: all of them or, if it fails or is cut off, none. On stable storage when
    /// it returns. [`StoreError::Full`] says that it can be tried again when there is room.
    fn ingest(&self, entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>) -> Result<(), StoreError>;

    /// Whether it could take so many bytes more. Asked before it is given any: what cannot be written to its end is in
    /// vain, and may lie about until the next start.
    fn has_room(&self, bytes: u64) -> bool;

    /// How many bytes it takes on the disk.
    fn disk_bytes(&self) -> u64;
}
