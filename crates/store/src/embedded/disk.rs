//! What the journal asks of a disk, and nothing more: a flat folder of files that are written in place and synced.
//!
//! The seam exists so that the journal can be run on a disk that loses power, tears writes and lies about syncs,
//! by seed ([`SimulatedDisk`]). Calls block: they are made by the writer's thread, by whoever has a small frame for a disk
//! that is quick, or inline by the simulator.

mod direct;
mod folder;
mod room;
pub mod simulated;

use std::io;

pub use folder::{FolderDisk, FolderFile};
pub use room::DiskRoom;
pub use simulated::SimulatedDisk;

/// What a disk writes wholly or not at all.
pub const SECTOR: usize = 512;

/// A folder of files. Names are plain names, without a path. Clones share it.
pub trait Disk: Clone + Send + 'static {
    /// An open file.
    type File: DiskFile;
    /// Keeps others out until it is dropped.
    type Lock: Send;

    /// Makes an empty file, open to read and to write. Fails when the name is taken.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file to read and to write.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name. A crash leaves one of the two until the folder is synced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. It may come back by a crash until the folder is synced.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The names of all files, in order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes durable which files there are. What is in them is synced by [`DiskFile::sync`].
    fn sync_folder(&self) -> io::Result<()>;

    /// How many bytes can still be written to new files.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Takes the lock of this name, made if it is not there; nothing if somebody else holds it.
    fn lock(&self, name: &str) -> io::Result<Option<Self::Lock>>;
}

/// An open file, read and written at offsets.
#[expect(clippy::len_without_is_empty, reason = "nobody asks whether a file is empty")]
pub trait DiskFile: Send + 'static {
    /// How long the file is.
    fn len(&self) -> io::Result<u64>;

    /// Fills the buffer from this offset on. The end of the file before that is an error.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all of the bytes. They are durable after the next sync; until then a crash may keep any part of them.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes all of the bytes, and says whether they are durable already: some disks do both at once, for less.
    fn write_through(&self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        self.write_at(offset, bytes).map(|()| false)
    }

    /// Makes durable what was written, and the length. After an error nobody knows what is, and another
    /// sync that succeeds proves nothing: the system may have forgotten what it could not write.
    fn sync(&self) -> io::Result<()>;
}

/// Whether an error says that there is no room, which passes, unlike others.
pub fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
