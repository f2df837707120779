//! Several layers read as one: the upper one is right.

use std::iter::Peekable;

use bytes::Bytes;

use super::cold::{ColdTier, Entry};
use super::key::Key;
use super::layer::{Layer, Slice, is_cleared};
use crate::StoreError;

/// The first `limit` rows of all layers in `from..until`.
pub fn scan(
    recent: Slice,
    sealed: Option<&Layer>,
    cold: &impl ColdTier,
    (from, until): (&[u8], &[u8]),
    limit: usize,
) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
    let Slice { rows, cleared } = recent;
    let cleared_above_cold = |key: &[u8]| {
        is_cleared(&cleared, key) || sealed.is_some_and(|sealed| is_cleared(sealed.cleared(), key))
    };
    let recent = rows.into_iter().map(Ok);
    let sealed_rows = sealed.into_iter().flat_map(|sealed| sealed.range(from, until));
    let sealed_rows = sealed_rows
        .filter(|(key, _)| !is_cleared(&cleared, key.as_slice()))
        .map(|(key, value)| Ok((key.clone(), value.cloned())));
    let cold_rows = cold.range(from, until).filter_map(|row| match row {
        Ok((key, _)) if cleared_above_cold(&key) => None,
        Ok((key, value)) => Some(Ok((Key::from(&key[..]), Some(value)))),
        Err(error) => Some(Err(error)),
    });
    let merged = Merge::new(recent, Merge::new(sealed_rows, cold_rows));
    let mut found = Vec::new();
    for entry in merged {
        if found.len() == limit {
            break;
        }
        if let (key, Some(value)) = entry? {
            found.push((Bytes::copy_from_slice(key.as_slice()), value));
        }
    }
    Ok(found)
}

/// What a layer changes below it, in order: its rows and deletions, and a deletion for each row that it cleared.
pub fn to_ingest<'a>(
    sealed: &'a Layer,
    cold: &'a impl ColdTier,
) -> impl Iterator<Item = Result<Entry, StoreError>> + 'a {
    let rows = sealed.all().map(|(key, value)| Ok((key.clone(), value.cloned())));
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
