//! What a patch says about a field: nothing, take it away, or make it this.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What becomes of a field. Left out, it stays; `null` takes it away; anything else is its new value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Change<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It goes back to what it is when nothing is said.
    Clear,
    /// It becomes this.
    Set(T),
}

impl<T> Change<T> {
    /// Whether nothing is said about it.
    pub fn is_keep(&self) -> bool {
        matches!(self, Change::Keep)
    }

    /// The new value, if there is one.
    pub fn set(self) -> Option<T> {
        match self {
            Change::Set(value) => Some(value),
            Change::Keep | Change::Clear => None,
        }
    }

    /// What the field is from now on.
    pub fn apply(self, old: T, when_cleared: impl FnOnce() -> T) -> T {
        match self {
            Change::Keep => old,
            Change::Clear => when_cleared(),
            Change::Set(value) => value,
        }
    }

    /// What a field is from now on that may be without a value.
    pub fn apply_to(self, old: Option<T>) -> Option<T> {
        match self {
            Change::Keep => old,
            Change::Clear => None,
            Change::Set(value) => Some(value),
        }
    }
}

impl<T> From<T> for Change<T> {
    fn from(value: T) -> Change<T> {
        Change::Set(value)
    }
}

/// Fields that stay must be left out by whoever writes them: `skip_serializing_if = "Change::is_keep"`.
impl<T: Serialize> Serialize for Change<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Change::Keep | Change::Clear => serializer.serialize_none(),
            Change::Set(value) => serializer.serialize_some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Change<T>, D::Error> {
        Ok(Option::<T>::deserialize(deserializer)?.map_or(Change::Clear, Change::Set))
    }
}
