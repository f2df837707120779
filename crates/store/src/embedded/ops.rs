//! How writes look in the journal: what happened to which key, one after the other.
//!
//! They say what is so afterwards, not how it came about. So writing them again, in order, changes nothing.

use bytes::Bytes;

use super::key::Key;
use super::layer::Layer;

const PUT: u8 = 1;
const PUT_NEW: u8 = 2;
const DELETE: u8 = 3;
const CLEAR: u8 = 4;

/// A value was given to a key; `is_new`: the key was never there before.
pub fn put(into: &mut Vec<u8>, key: &[u8], value: &[u8], is_new: bool) {
    into.push(if is_new { PUT_NEW } else { PUT });
    push(into, key);
    push(into, value);
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

/// Does to a layer what a record says, and names the keys that got a value. `None`: nothing of ours.
pub fn replay(record: &[u8], layer: &mut Layer, mut put: impl FnMut(&[u8])) -> Option<()> {
    let mut rest = record;
    while let Some((&kind, after)) = rest.split_first() {
        rest = after;
        let key = take(&mut rest)?;
        match kind {
            PUT | PUT_NEW => {
                let value = Bytes::copy_from_slice(take(&mut rest)?);
                layer.put(Key::from(key), value, kind == PUT_NEW);
                put(key);
            }
            DELETE => layer.delete(key),
            CLEAR => layer.clear(Key::from(key), Key::from(take(&mut rest)?)),
            _ => return None,
        }
    }
    Some(())
}

/// A length of seven bits a byte, the lowest first, and so many bytes.
fn push(into: &mut Vec<u8>, bytes: &[u8]) {
    let mut length = bytes.len();
    while length >= 0x80 {
        into.push(length as u8 | 0x80);
        length >>= 7;
    }
    into.push(length as u8);
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
    use crate::embedded::layer::Said;

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
        assert_eq!(layer.get(b"a"), Said::Nothing);
        assert_eq!(layer.get(b"b"), Said::Is(Bytes::from_static(&[7; 300])));
        assert_eq!(layer.get(b"c"), Said::IsNot);
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
