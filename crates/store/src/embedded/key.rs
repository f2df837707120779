//! A key of a row, kept where it is compared.

use std::cmp::Ordering;
use std::fmt;

/// So long are the keys that are many: of waiting and of ended tasks.
const SHORT_MAX: usize = 30;

/// A key. Most are short and lie in the tree itself, so that a search follows no pointers.
#[derive(Clone)]
pub struct Key(Form);

#[derive(Clone)]
enum Form {
    Short(u8, [u8; SHORT_MAX]),
    Long(Box<[u8]>),
}

impl Key {
    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Form::Short(length, bytes) => &bytes[..usize::from(*length)],
            Form::Long(bytes) => bytes,
        }
    }

    /// What it takes beyond itself.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Form::Short(..) => 0,
            Form::Long(bytes) => bytes.len(),
        }
    }
}

impl From<&[u8]> for Key {
    fn from(key: &[u8]) -> Key {
        match u8::try_from(key.len()) {
            Ok(length) if key.len() <= SHORT_MAX => {
                let mut bytes = [0; SHORT_MAX];
                bytes[..key.len()].copy_from_slice(key);
                Key(Form::Short(length, bytes))
            }
            _ => Key(Form::Long(key.into())),
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Key {}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::borrow::Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
