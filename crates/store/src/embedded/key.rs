//! A key of a row, kept where it is compared.

use std::cmp::Ordering;
use std::fmt;

/// The keys that are many are shorter: those of waiting and of ended tasks.
const SHORT_MAX: usize = 31;

/// A key, in the order of its bytes. Most are short and lie in the tree itself, so that a search follows no pointers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key(Form);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    /// The bytes, zeros, and how many bytes there are. So the order of two is the order of two numbers.
    Short([u8; SHORT_MAX + 1]),
    Long(Box<[u8]>),
}

impl Key {
    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Form::Short(bytes) => &bytes[..usize::from(bytes[SHORT_MAX])],
            Form::Long(bytes) => bytes,
        }
    }

    /// What it takes beyond itself.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Form::Short(_) => 0,
            Form::Long(bytes) => bytes.len(),
        }
    }
}

impl From<&[u8]> for Key {
    fn from(key: &[u8]) -> Key {
        if key.len() > SHORT_MAX {
            return Key(Form::Long(key.into()));
        }
        let mut bytes = [0; SHORT_MAX + 1];
        bytes[..key.len()].copy_from_slice(key);
        bytes[SHORT_MAX] = key.len() as u8;
        Key(Form::Short(bytes))
    }
}

/// The upper and the lower half as numbers.
fn halves(bytes: &[u8; SHORT_MAX + 1]) -> (u128, u128) {
    let (upper, lower) = bytes.split_at(16);
    let number = |half: &[u8]| half.first_chunk().map_or(0, |half| u128::from_be_bytes(*half));
    (number(upper), number(lower))
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Key) -> Ordering {
        match (&self.0, &other.0) {
            (Form::Short(one), Form::Short(other)) => halves(one).cmp(&halves(other)),
            _ => self.as_slice().cmp(other.as_slice()),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_sort_like_their_bytes(
            one in prop::collection::vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..40),
            other in prop::collection::vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..40),
            shared in prop::collection::vec(any::<u8>(), 0..30),
        ) {
            let [one, other] = [one, other].map(|rest| [&shared[..], &rest].concat());
            let keys = [&one, &other].map(|bytes| Key::from(&bytes[..]));
            prop_assert_eq!(keys[0].cmp(&keys[1]), one.cmp(&other));
            prop_assert_eq!(keys[0].as_slice(), &one[..]);
        }
    }
}
