//! How writes look in the journal: what happened to which key, one after the other.
//!
//! They say what is so afterwards, not how it came about. So writing them again, in order, changes nothing.

use std::sync::Arc;

use bytes::Bytes;
use punctual_core::{End, PartitionId, Task};

use super::key::Key;
use super::layer::{Layer, Said};
use super::value::Value;
use crate::kv::{encode, ended_key, partition_of, read_beginning, read_end, write_beginning, write_end};

/// Numbers are never used for anything else again.
const PUT: u8 = 1;
const PUT_NEW: u8 = 2;
const DELETE: u8 = 3;
const CLEAR: u8 = 4;
const BEGAN: u8 = 5;
const ENDED: u8 = 6;

/// A value was given to a key; `is_new`: the key was never there before.
pub fn put(into: &mut Vec<u8>, key: &[u8], value: &[u8], is_new: bool) {
    put_with(into, key, is_new, |into| into.extend_from_slice(value));
}

/// The same, of a value that is made in place.
pub fn put_with(into: &mut Vec<u8>, key: &[u8], is_new: bool, value: impl FnOnce(&mut Vec<u8>)) {
    into.push(if is_new { PUT_NEW } else { PUT });
    push(into, key);
    push_with(into, value);
}

/// A key was taken away.
pub fn delete(into: &mut Vec<u8>, key: &[u8]) {
    into.push(DELETE);
    push(into, key);
}

/// All keys from the first on and before the second were taken away.
pub fn clear(into: &mut Vec<u8>, from: &[u8], until: &[u8]) {
    into.push(CLEAR);
    push(into, from);
    push(into, until);
}

/// An attempt has begun of the task whose row lies under this key, in the layer that the journal is replayed into.
pub fn began(into: &mut Vec<u8>, key: &[u8], task: &Task) {
    into.push(BEGAN);
    push(into, key);
    push_with(into, |into| write_beginning(into, task));
}

/// The task has ended whose row lies under this key, in the layer that the journal is replayed into.
pub fn ended(into: &mut Vec<u8>, key: &[u8], task: &Task, end: &End) {
    into.push(ENDED);
    push(into, key);
    push_with(into, |into| write_end(into, task, end));
}

/// The same, of a task whose row lies elsewhere: all of it is written.
pub fn ended_whole(into: &mut Vec<u8>, partition: PartitionId, key: &[u8], task: &Task, ended: &[u8]) {
    delete(into, key);
    put(into, &ended_key(partition, &task.id), ended, has_never_ended(task));
}

/// Takes the row of a task away, and writes its end.
pub fn end(layer: &mut Layer, partition: PartitionId, row: &Key, task: &Task, ended: Bytes) {
    let key = Key::from(&ended_key(partition, &task.id)[..]);
    layer.delete(row);
    layer.put(key, Value::Bytes(ended), has_never_ended(task));
}

/// A task that was never refiled was never revived either.
fn has_never_ended(task: &Task) -> bool {
    task.revision == 1
}

/// Does to a layer what a record says, and names the keys that got a value. `None`: nothing of ours.
pub fn replay(record: &[u8], layer: &mut Layer, mut put: impl FnMut(&[u8])) -> Option<()> {
    let mut rest = record;
    while let Some((&kind, after)) = rest.split_first() {
        rest = after;
        let key = take(&mut rest)?;
        match kind {
            PUT | PUT_NEW => {
                let value = Bytes::copy_from_slice(take(&mut rest)?);
                layer.put(Key::from(key), Value::Bytes(value), kind == PUT_NEW);
                put(key);
            }
            DELETE => layer.delete(&Key::from(key)),
            CLEAR => layer.clear(Key::from(key), Key::from(take(&mut rest)?)),
            BEGAN => {
                let (key, task) = row_of(layer, key)?;
                let task = read_beginning(take(&mut rest)?, Task::clone(&task))?;
                layer.put(key, Value::Task(Arc::new(task)), false);
            }
            ENDED => {
                let partition = partition_of(key)?;
                let (key, task) = row_of(layer, key)?;
                let ended = read_end(take(&mut rest)?, &task)?;
                end(layer, partition, &key, &ended.task, encode(&ended));
            }
            _ => return None,
        }
    }
    Some(())
}

/// The task whose row lies in the layer.
fn row_of(layer: &Layer, key: &[u8]) -> Option<(Key, Arc<Task>)> {
    let key = Key::from(key);
    match layer.get(&key) {
        Said::Is(value) => value.to_task().ok().map(|task| (key, task)),
        _ => None,
    }
}

/// Bytes that are made in place, behind their length: two bytes of it are enough unless they are long.
fn push_with(into: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = into.len();
    write(into);
    let mut length = [0; 5];
    let length = length_of(into.len() - at, &mut length);
    into.splice(at..at, length.iter().copied());
}

/// Seven bits a byte, the lowest first.
fn length_of(mut length: usize, bytes: &mut [u8; 5]) -> &[u8] {
    for at in 0..bytes.len() {
        bytes[at] = length as u8 | 0x80;
        length >>= 7;
        if length == 0 {
            bytes[at] &= 0x7f;
            return &bytes[..=at];
        }
    }
    unreachable!("a frame is smaller than 4 GiB")
}

/// A length, and so many bytes.
fn push(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend_from_slice(length_of(bytes.len(), &mut [0; 5]));
    into.extend_from_slice(bytes);
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut length = 0usize;
    for place in 0..5 {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        length |= usize::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            let (bytes, after) = rest.split_at_checked(length)?;
            *rest = after;
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_written_is_replayed() {
        let mut record = Vec::new();
        put(&mut record, b"a", b"1", true);
        put(&mut record, b"b", &[7; 300], false);
        put(&mut record, b"c", b"", false);
        delete(&mut record, b"a");
        clear(&mut record, b"c", b"d");
        let (mut layer, mut keys) = (Layer::default(), Vec::new());
        assert_eq!(replay(&record, &mut layer, |key| keys.push(key.to_vec())), Some(()));
        assert_eq!(keys, [b"a", b"b", b"c"]);
        let said = |key: &[u8]| layer.get(&Key::from(key));
        assert_eq!(said(b"a"), Said::Nothing);
        assert_eq!(said(b"b"), Said::Is(Value::Bytes(Bytes::from_static(&[7; 300]))));
        assert_eq!(said(b"c"), Said::IsNot);
        let cut = &record[..record.len() - 1];
        assert_eq!(replay(cut, &mut Layer::default(), |_| {}), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(record: Vec<u8>) {
            replay(&record, &mut Layer::default(), |_| {});
        }
    }
}
