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

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use super::frame::Sequence;
use super::key::Key;
use super::value::Value;
use crate::kv::partition_of;

/// What a row takes in a tree besides its bytes, about.
const ROW_OVERHEAD: usize = 96;

type Tree = BTreeMap<Key, Row>;

/// One layer of rows.
#[derive(Default)]
pub struct Layer {
    /// Rows of no partition, and then those of each: small trees are searched faster than one large one.
    trees: Vec<Tree>,
    /// Everything below was deleted in these, from the first on and before the second.
    cleared: Vec<(Key, Key)>,
    bytes: usize,
    /// How it was before each frame that may have to be taken back, in order. What is written now belongs to the last.
    undos: VecDeque<Undo>,
}

/// What takes the writes of a frame back.
#[derive(Default)]
struct Undo {
    frame: Sequence,
    /// Each key that was touched, and its row before that: in the order of the touches.
    rows: Vec<(Key, Option<Row>)>,
    /// `None`: nothing was cleared since.
    cleared: Option<Vec<(Key, Key)>>,
    bytes: usize,
}

struct Row {
    /// `None`: deleted.
    value: Option<Value>,
    /// Nothing of this key lies below.
    is_born_here: bool,
}

/// What a layer says about a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// This is its value.
    Is(Value),
    /// It has none.
    IsNot,
    /// Ask the layer below.
    Nothing,
}

impl Said {
    /// What another one says, if this one says nothing.
    pub fn or_else(self, other: impl FnOnce() -> Said) -> Said {
        match self {
            Said::Nothing => other(),
            said => said,
        }
    }
}

/// Part of a layer: rows in order, and the ranges that were cleared.
pub struct Slice {
    /// Keys and values; `None` for deleted ones.
    pub rows: Vec<(Key, Option<Value>)>,
    /// Everything below was deleted in these.
    pub cleared: Vec<(Key, Key)>,
}

/// Which tree a key lies in. The order of keys is the order of trees.
fn tree_of(key: &[u8]) -> usize {
    partition_of(key).map_or(0, |partition| 1 + usize::from(partition.0))
}

fn tree_mut<'a>(trees: &'a mut Vec<Tree>, key: &Key) -> &'a mut Tree {
    let tree = tree_of(key.as_slice());
    if trees.len() <= tree {
        trees.resize_with(tree + 1, Tree::default);
    }
    &mut trees[tree]
}

impl Layer {
    /// A frame begins: what it changes can be taken back until it is known to be durable, as everything before `durable`
    /// is by now.
    pub fn begin(&mut self, frame: Sequence, durable: Sequence) {
        let mut undo = Undo::default();
        while self.undos.front().is_some_and(|first| first.frame < durable) {
            // Its memory is used again.
            undo = self.undos.pop_front().unwrap_or_default();
        }
        // Nothing was written by whoever began it before.
        undo = self.undos.pop_back_if(|last| last.frame == frame).unwrap_or(undo);
        undo.rows.clear();
        (undo.frame, undo.cleared, undo.bytes) = (frame, None, self.bytes);
        self.undos.push_back(undo);
    }

    /// Takes back this frame and those after it.
    pub fn take_back(&mut self, from: Sequence) {
        while let Some(undo) = self.undos.pop_back_if(|last| last.frame >= from) {
            for (key, row) in undo.rows.into_iter().rev() {
                let tree = &mut self.trees[tree_of(key.as_slice())];
                match row {
                    Some(row) => tree.insert(key, row),
                    None => tree.remove(&key),
                };
            }
            self.cleared = undo.cleared.unwrap_or_else(|| std::mem::take(&mut self.cleared));
            self.bytes = undo.bytes;
        }
    }

    /// What was written stays.
    pub fn keep(&mut self) {
        self.undos.clear();
    }

    fn note(&mut self, key: &Key, before: Option<Row>) {
        if let Some(undo) = self.undos.back_mut() {
            undo.rows.push((key.clone(), before));
        }
    }

    /// What this layer says about a key.
    pub fn get(&self, key: &Key) -> Said {
        let tree = self.trees.get(tree_of(key.as_slice()));
        match tree.and_then(|tree| tree.get(key)) {
            Some(Row { value: Some(value), .. }) => Said::Is(value.clone()),
            Some(Row { value: None, .. }) => Said::IsNot,
            None if is_cleared(&self.cleared, key) => Said::IsNot,
            None => Said::Nothing,
        }
    }

    /// The value of a key, if it is in this very layer.
    pub fn value(&self, key: &Key) -> Option<&Value> {
        self.trees.get(tree_of(key.as_slice()))?.get(key)?.value.as_ref()
    }

    /// Writes a row. `is_new`: no layer below has anything of this key.
    pub fn put(&mut self, key: Key, value: Value, is_new: bool) {
        self.bytes += ROW_OVERHEAD + key.heap_bytes() + value.memory();
        let is_born_here = is_new || is_cleared(&self.cleared, &key);
        let row = Row { value: Some(value), is_born_here };
        let undo = self.undos.back_mut().map(|undo| &mut undo.rows);
        match tree_mut(&mut self.trees, &key).entry(key) {
            Entry::Vacant(entry) => {
                undo.into_iter().for_each(|undo| undo.push((entry.key().clone(), None)));
                entry.insert(row);
            }
            Entry::Occupied(mut entry) => {
                let is_born_here = entry.get().is_born_here;
                let value = std::mem::replace(&mut entry.get_mut().value, row.value);
                let old = Row { value, is_born_here };
                self.bytes -= ROW_OVERHEAD + entry.key().heap_bytes() + old.memory();
                if let Some(undo) = undo {
                    undo.push((entry.key().clone(), Some(old)));
                }
            }
        }
    }

    /// Deletes a row, if there is one.
    pub fn delete(&mut self, key: &Key) {
        let tree = tree_mut(&mut self.trees, key);
        let Entry::Occupied(mut entry) = tree.entry(key.clone()) else { return self.delete_below(key) };
        let (is_born_here, memory) = (entry.get().is_born_here, entry.get().memory());
        self.bytes -= memory;
        let gone = if is_born_here {
            self.bytes -= ROW_OVERHEAD + key.heap_bytes();
            entry.remove()
        } else {
            Row { value: entry.get_mut().value.take(), is_born_here }
        };
        self.note(key, Some(gone));
    }

    /// Notes that a row of which this layer knows nothing is gone, whether or not there is one below.
    fn delete_below(&mut self, key: &Key) {
        if !is_cleared(&self.cleared, key) {
            self.bytes += ROW_OVERHEAD + key.heap_bytes();
            tree_mut(&mut self.trees, key).insert(key.clone(), Row { value: None, is_born_here: false });
            self.note(key, None);
        }
    }

    /// Deletes everything from `from` on and before `until`, here and below.
    pub fn clear(&mut self, from: Key, until: Key) {
        if from >= until {
            return;
        }
        let gone: Vec<Key> =
            self.range(from.as_slice(), until.as_slice()).map(|(key, _)| key.clone()).collect();
        for key in gone {
            if let Some(row) = self.trees[tree_of(key.as_slice())].remove(&key) {
                self.bytes -= ROW_OVERHEAD + key.heap_bytes() + row.memory();
                self.note(&key, Some(row));
            }
        }
        if let Some(undo) = self.undos.back_mut() {
            undo.cleared.get_or_insert_with(|| self.cleared.clone());
        }
        // History is cut again and again from where its bucket begins: the longer range says it all.
        let before = self.cleared.len();
        self.cleared.retain(|(first, end)| *first < from || until < *end);
        self.bytes -= ROW_OVERHEAD * (before - self.cleared.len());
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
    pub fn range<'a>(
        &'a self,
        from: &[u8],
        until: &[u8],
    ) -> impl Iterator<Item = (&'a Key, Option<&'a Value>)> + use<'a> {
        let within = (Bound::Included(Key::from(from)), Bound::Excluded(Key::from(until)));
        let last = tree_of(until).saturating_add(1).min(self.trees.len());
        let trees = if from < until { self.trees.get(tree_of(from)..last) } else { None };
        let rows = trees.unwrap_or_default().iter().flat_map(move |tree| tree.range(within.clone()));
        rows.map(|(key, row)| (key, row.value.as_ref()))
    }

    /// All rows and deletions, in order.
    pub fn all(&self) -> impl Iterator<Item = (&Key, Option<&Value>)> {
        self.trees.iter().flatten().map(|(key, row)| (key, row.value.as_ref()))
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
        self.trees.iter().all(Tree::is_empty) && self.cleared.is_empty()
    }
}

impl Row {
    fn memory(&self) -> usize {
        self.value.as_ref().map_or(0, Value::memory)
    }
}

/// Whether a key lies in one of these ranges.
pub fn is_cleared(cleared: &[(Key, Key)], key: &Key) -> bool {
    cleared.iter().any(|(from, until)| from <= key && key < until)
}

#[cfg(test)]
mod tests;
