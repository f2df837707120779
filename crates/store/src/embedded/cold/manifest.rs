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

/// Refuses tables whose list is not the one that was written.
pub(super) fn check(tables: &Path) -> io::Result<()> {
    let keyspaces = tables.join(KEYSPACES);
    if !keyspaces.exists() {
        return Ok(());
    }
    for keyspace in fs::read_dir(keyspaces)? {
        let keyspace = keyspace?.path();
        // Without it a keyspace was never finished: fjall makes it anew, and the journal misses what was in it.
        if keyspace.join(CURRENT).exists() {
            check_list(&keyspace)?;
        }
    }
    Ok(())
}

fn check_list(keyspace: &Path) -> io::Result<()> {
    let spoiled = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    let current = fs::read(keyspace.join(CURRENT))?;
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
