//! Several layers read as one: the upper one is right.

use std::iter::Peekable;
use std::rc::Rc;

use bytes::Bytes;

use super::cold::{ColdTier, Entry};
use super::key::Key;
use super::layer::{Layer, Slice, is_cleared};
use super::value::Value;
use crate::StoreError;

/// The first `limit` rows of all layers in `from..until`. The tables' rows are of that range.
pub fn scan(
    recent: Slice,
    sealed: Option<&Layer>,
    cold: impl Iterator<Item = Result<(Bytes, Bytes), StoreError>>,
    (from, until): (&[u8], &[u8]),
    limit: usize,
) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
    let mut found = Vec::new();
    for entry in all(recent, sealed, cold, (from, until)) {
        if found.len() == limit {
            break;
        }
        if let (key, Some(value)) = entry? {
            found.push((Bytes::copy_from_slice(key.as_slice()), value));
        }
    }
    Ok(found)
}

/// What all layers say about `from..until`, deletions with it. The tables' rows are of that range.
pub fn all<'a>(
    recent: Slice,
    sealed: Option<&'a Layer>,
    cold: impl Iterator<Item = Result<(Bytes, Bytes), StoreError>> + 'a,
    (from, until): (&'a [u8], &'a [u8]),
) -> impl Iterator<Item = Result<Entry, StoreError>> + 'a {
    let Slice { rows, cleared } = recent;
    let cleared = Rc::new(cleared);
    let recent = rows.into_iter().map(|(key, value)| Ok((key, value.as_ref().map(Value::to_bytes))));
    let is_cleared_above = cleared.clone();
    let sealed_rows = sealed.into_iter().flat_map(move |sealed| sealed.range(from, until));
    let sealed_rows = sealed_rows
        .filter(move |(key, _)| !is_cleared(&is_cleared_above, key))
        .map(|(key, value)| Ok((key.clone(), value.map(Value::to_bytes))));
    let is_cleared_above = move |key: &Key| {
        is_cleared(&cleared, key) || sealed.is_some_and(|sealed| is_cleared(sealed.cleared(), key))
    };
    let cold_rows = cold.filter_map(move |row| match row.map(|(key, value)| (Key::from(&key[..]), value)) {
        Ok((key, _)) if is_cleared_above(&key) => None,
        Ok((key, value)) => Some(Ok((key, Some(value)))),
        Err(error) => Some(Err(error)),
    });
    Merge::new(recent, Merge::new(sealed_rows, cold_rows))
}

/// What a layer changes below it, in order: its rows and deletions, and a deletion for each row that it cleared.
pub fn to_ingest<'a>(
    sealed: &'a Layer,
    cold: &'a impl ColdTier,
) -> impl Iterator<Item = Result<Entry, StoreError>> + 'a {
    let rows = sealed.all().map(|(key, value)| Ok((key.clone(), value.map(Value::to_bytes))));
    let gone = disjoint(sealed.cleared()).into_iter().flat_map(|(from, until)| {
        let below: Vec<_> = cold.range(from.as_slice(), until.as_slice()).collect();
        below.into_iter().map(|row| row.map(|(key, _)| (Key::from(&key[..]), None)))
    });
    Merge::new(rows, gone)
}

/// The same ranges, in order and without overlaps.
fn disjoint(ranges: &[(Key, Key)]) -> Vec<(Key, Key)> {
    let mut sorted = ranges.to_vec();
    sorted.sort();
    let mut disjoint: Vec<(Key, Key)> = Vec::with_capacity(sorted.len());
    for (from, until) in sorted {
        match disjoint.last_mut() {
            Some(last) if from <= last.1 => last.1 = until.max(last.1.clone()),
            _ => disjoint.push((from, until)),
        }
    }
    disjoint
}

/// Two sequences in order as one. Of two entries with one key only the upper one comes out.
struct Merge<U: Iterator, L: Iterator> {
    upper: Peekable<U>,
    lower: Peekable<L>,
}

impl<U, L> Merge<U, L>
where
    U: Iterator<Item = Result<Entry, StoreError>>,
    L: Iterator<Item = Result<Entry, StoreError>>,
{
    fn new(upper: U, lower: L) -> Merge<U, L> {
        Merge { upper: upper.peekable(), lower: lower.peekable() }
    }
}

impl<U, L> Iterator for Merge<U, L>
where
    U: Iterator<Item = Result<Entry, StoreError>>,
    L: Iterator<Item = Result<Entry, StoreError>>,
{
    type Item = Result<Entry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (upper, lower) = match (self.upper.peek(), self.lower.peek()) {
            // An error comes out at once, whatever lies beside it.
            (Some(Err(_)), _) | (_, None) => return self.upper.next(),
            (_, Some(Err(_))) | (None, _) => return self.lower.next(),
            (Some(Ok((upper, _))), Some(Ok((lower, _)))) => (upper, lower),
        };
        if lower < upper {
            return self.lower.next();
        }
        if lower == upper {
            self.lower.next();
        }
        self.upper.next()
    }
}

#[cfg(test)]
mod tests;
