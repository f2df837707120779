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

/// They take no more memory than this, about.
const BYTES_MAX: usize = 16 << 20;
const BYTES_EACH: usize = 100;

/// Copies of rows of the tables, as many as there is room for.
#[derive(Default)]
pub struct Lent {
    rows: FxHashMap<Key, Bytes>,
    bytes: usize,
}

impl Lent {
    pub fn get(&self, key: &Key) -> Said {
        self.rows.get(key).map_or(Said::Nothing, |row| Said::Is(Value::Bytes(row.clone())))
    }

    /// When there is no room, all of them are forgotten: whoever reads on is more likely to want what it reads now.
    pub fn note(&mut self, rows: &[(Bytes, Bytes)]) {
        for (key, row) in rows {
            let key = Key::from(&key[..]);
            let bytes = bytes_of(&key, row);
            if self.bytes + bytes > BYTES_MAX {
                *self = Lent::default();
            }
            if self.rows.insert(key, row.clone()).is_none() {
                self.bytes += bytes;
            }
        }
    }

    /// Those that a layer says nothing of, when it has become part of the tables.
    pub fn untouched_by(mut self, layer: &Layer) -> Lent {
        self.rows.retain(|key, _| layer.get(key) == Said::Nothing);
        self.bytes = self.rows.iter().map(|(key, row)| bytes_of(key, row)).sum();
        self
    }
}

fn bytes_of(key: &Key, row: &Bytes) -> usize {
    BYTES_EACH + key.as_slice().len() + row.len()
}
