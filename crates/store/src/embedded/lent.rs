//! Rows that were read from the tables a while ago, for whoever changes them next.
//!
//! A window is read a page at a time, and soon after that each of its tasks is begun and ended. Without these copies each
//! would be looked up in the tables again. Only rows of the tables are kept: a row that was written since and taken
//! away again may have left no trace in the layers above.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::key::Key;
use super::layer::{Layer, Said};
use super::value::Value;

/// The young ones take no more memory than this, about, and neither do the old ones.
const BYTES_MAX: usize = 16 << 20;
const BYTES_EACH: usize = 100;

/// Copies of rows of the tables, as many as there is room for.
#[derive(Default)]
pub struct Lent {
    young: FxHashMap<Key, Bytes>,
    young_bytes: usize,
    /// Those that were read before: forgotten when there is no room for more young ones, which are old then.
    old: FxHashMap<Key, Bytes>,
}

impl Lent {
    pub fn get(&self, key: &Key) -> Said {
        let row = self.young.get(key).or_else(|| self.old.get(key));
        row.map_or(Said::Nothing, |row| Said::Is(Value::Bytes(row.clone())))
    }

    pub fn note(&mut self, rows: &[(Bytes, Bytes)]) {
        for (key, row) in rows {
            let bytes = BYTES_EACH + key.len() + row.len();
            if self.young_bytes + bytes > BYTES_MAX {
                self.old = std::mem::take(&mut self.young);
                self.young_bytes = 0;
            }
            self.young_bytes += bytes;
            self.young.insert(Key::from(&key[..]), row.clone());
        }
    }

    /// Those that a layer says nothing of, when it has become part of the tables.
    pub fn untouched_by(mut self, layer: &Layer) -> Lent {
        for rows in [&mut self.young, &mut self.old] {
            rows.retain(|key, _| layer.get(key) == Said::Nothing);
        }
        self
    }
}
