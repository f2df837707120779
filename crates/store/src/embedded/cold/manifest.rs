//! What fjall does not check when it opens tables: the list that says which of them count.
//!
//! Beside it lies a checksum that nobody compares. A spoiled list would be believed, and rows of tables that it does
//! not name would be gone without a word; a spoiled length in it would end the process.

use std::fs;
use std::io;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

/// Each keyspace has a folder of its own in here.
const KEYSPACES: &str = "keyspaces";
/// Which list counts: its number, its checksum, and how that is summed (0: xxh3).
const CURRENT: &str = "current";
const CURRENT_BYTES: usize = 8 + 16 + 1;

/// What fjall keeps for itself, and our rows.
const KEYSPACES_MADE: [&str; 2] = ["0", "1"];

/// Refuses tables whose list is not the one that was written, or is gone: fjall would remove the tables and go on without
/// them. For tables that were finished when they were made.
pub(super) fn check(tables: &Path) -> io::Result<()> {
    KEYSPACES_MADE.iter().try_for_each(|name| check_list(&tables.join(KEYSPACES).join(name)))
}

fn check_list(keyspace: &Path) -> io::Result<()> {
    let spoiled = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    let current = match fs::read(keyspace.join(CURRENT)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return spoiled(format!("{}/{CURRENT} is missing", keyspace.display()));
        }
        current => current?,
    };
    let Ok::<[u8; CURRENT_BYTES], _>(current) = current.try_into() else {
        return spoiled(format!("{}/{CURRENT} has a wrong length", keyspace.display()));
    };
    let number = u64::from_le_bytes(std::array::from_fn(|at| current[at]));
    let checksum = u128::from_le_bytes(std::array::from_fn(|at| current[8 + at]));
    let list = keyspace.join(format!("v{number}"));
    if current[CURRENT_BYTES - 1] != 0 || xxh3_128(&fs::read(&list)?) != checksum {
        return spoiled(format!("{} is not the list of tables that was written", list.display()));
    }
    Ok(())
}
