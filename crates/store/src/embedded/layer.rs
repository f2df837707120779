//! Rows that were written since a checkpoint, in order, on top of what lies below.
//!
//! ```text
//!   recent   rows and deletions since the last seal      changes with every frame
//!   sealed   the layer before it, on its way down        never changes
//!   cold     everything older, in sorted tables          changes by whole layers
//! ```
//!
//! The upper layer is right. A row that was born in a layer and dies in it leaves nothing behind: that is the whole
//! life of most tasks.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use super::key::Key;

/// What a row takes in a tree besides its bytes, about.
const ROW_OVERHEAD: usize = 80;

/// One layer of rows.
#[derive(Default)]
pub struct Layer {
    rows: BTreeMap<Key, Row>,
    /// Everything below was deleted in these, from the first on and before the second.
    cleared: Vec<(Key, Key)>,
    bytes: usize,
}

struct Row {
    /// `None`: deleted.
    value: Option<Bytes>,
    /// Nothing of this key lies below.
    is_born_here: bool,
}

/// What a layer says about a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// This is its value.
    Is(Bytes),
    /// It has none.
    IsNot,
    /// Ask the layer below.
    Nothing,
}

/// Part of a layer: rows in order, and the ranges that were cleared.
pub struct Slice {
    /// Keys and values; `None` for deleted ones.
    pub rows: Vec<(Key, Option<Bytes>)>,
    /// Everything below was deleted in these.
    pub cleared: Vec<(Key, Key)>,
}

impl Layer {
    /// What this layer says about a key.
    pub fn get(&self, key: &[u8]) -> Said {
        match self.rows.get(key) {
            Some(Row { value: Some(value), .. }) => Said::Is(value.clone()),
            Some(Row { value: None, .. }) => Said::IsNot,
            None if is_cleared(&self.cleared, key) => Said::IsNot,
            None => Said::Nothing,
        }
    }

    /// Writes a row. `is_new`: no layer below has anything of this key.
    pub fn put(&mut self, key: Key, value: Bytes, is_new: bool) {
        self.bytes += ROW_OVERHEAD + key.heap_bytes() + value.len();
        let is_born_here = is_new || is_cleared(&self.cleared, key.as_slice());
        match self.rows.get_mut(&key) {
            Some(row) => {
                self.bytes -= ROW_OVERHEAD + key.heap_bytes() + row.value.as_ref().map_or(0, Bytes::len);
                row.value = Some(value);
            }
            None => _ = self.rows.insert(key, Row { value: Some(value), is_born_here }),
        }
    }

    /// Deletes a row, if there is one.
    pub fn delete(&mut self, key: &[u8]) {
        match self.rows.get_mut(key) {
            Some(row) if row.is_born_here => {
                self.bytes -= ROW_OVERHEAD + row.value.as_ref().map_or(0, Bytes::len);
                if let Some((key, _)) = self.rows.remove_entry(key) {
                    self.bytes -= key.heap_bytes();
                }
            }
            Some(row) => self.bytes -= row.value.take().map_or(0, |value| value.len()),
            None if is_cleared(&self.cleared, key) => {}
            None => {
                let key = Key::from(key);
                self.bytes += ROW_OVERHEAD + key.heap_bytes();
                self.rows.insert(key, Row { value: None, is_born_here: false });
            }
        }
    }

    /// Deletes everything from `from` on and before `until`, here and below.
    pub fn clear(&mut self, from: Key, until: Key) {
        if from >= until {
            return;
        }
        let within = (Bound::Included(from.as_slice()), Bound::Excluded(until.as_slice()));
        let gone: Vec<Key> = self.rows.range::<[u8], _>(within).map(|(key, _)| key.clone()).collect();
        for key in gone {
            if let Some(row) = self.rows.remove(&key) {
                self.bytes -= ROW_OVERHEAD + key.heap_bytes() + row.value.map_or(0, |value| value.len());
            }
        }
        self.bytes += ROW_OVERHEAD;
        self.cleared.push((from, until));
    }

    /// Rows and deletions in `from..until`, up to and with the `limit`th that has a value.
    pub fn slice(&self, from: &[u8], until: &[u8], limit: usize) -> Slice {
        let mut rows = Vec::new();
        let mut values = 0;
        for (key, row) in self.range(from, until) {
            if values == limit {
                break;
            }
            values += usize::from(row.is_some());
            rows.push((key.clone(), row.cloned()));
        }
        Slice { rows, cleared: self.cleared.clone() }
    }

    /// Rows and deletions in `from..until`, in order.
    pub fn range(&self, from: &[u8], until: &[u8]) -> impl Iterator<Item = (&Key, Option<&Bytes>)> {
        let within = (Bound::Included(from), Bound::Excluded(until));
        let rows = (from < until).then(|| self.rows.range::<[u8], _>(within));
        rows.into_iter().flatten().map(|(key, row)| (key, row.value.as_ref()))
    }

    /// All rows and deletions, in order.
    pub fn all(&self) -> impl Iterator<Item = (&Key, Option<&Bytes>)> {
        self.rows.iter().map(|(key, row)| (key, row.value.as_ref()))
    }

    /// The ranges in which everything below was deleted.
    pub fn cleared(&self) -> &[(Key, Key)] {
        &self.cleared
    }

    /// How much memory it takes, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.cleared.is_empty()
    }
}

/// Whether a key lies in one of these ranges.
pub fn is_cleared(cleared: &[(Key, Key)], key: &[u8]) -> bool {
    cleared.iter().any(|(from, until)| from.as_slice() <= key && key < until.as_slice())
}

#[cfg(test)]
mod tests;
