//! Types that go both ways: a server refuses what it does not know, a client of an older version overlooks it.
//!
//! Serde knows only one of the two for a type. So such a type has a twin with the same fields that is read leniently,
//! and answers read the twin.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A struct that refuses unknown fields, and its twin that does not.
macro_rules! two_way {
    (
        $(#[$about:meta])*
        pub struct $name:ident, twin $twin:ident {
            $( $(#[$about_field:meta])* pub $field:ident: $type:ty, )*
        }
    ) => {
        $(#[$about])*
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub struct $name {
            $( $(#[$about_field])* pub $field: $type, )*
        }

        // Described too, because its fields carry the same attributes.
        #[derive(serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub(crate) struct $twin {
            $( $(#[$about_field])* $field: $type, )*
        }

        impl From<$twin> for $name {
            fn from(twin: $twin) -> $name {
                $name { $( $field: twin.$field, )* }
            }
        }
    };
}
pub(crate) use two_way;

/// Reads a value as its twin.
pub(crate) fn lenient<'de, D, Twin, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    Twin: Deserialize<'de>,
    T: From<Twin>,
{
    Twin::deserialize(deserializer).map(T::from)
}

/// Reads a value, if there is one, as its twin.
pub(crate) fn lenient_option<'de, D, Twin, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    Twin: Deserialize<'de>,
    T: From<Twin>,
{
    Ok(Option::<Twin>::deserialize(deserializer)?.map(T::from))
}

/// Reads a value that is there: JSON's `null` is a value too.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Reads an object. What is derived for a type also reads a list of its fields' values, which nobody means.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Object<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_map(Object(PhantomData))
}
