//! Types that go both ways: a server refuses what it does not know, a client of an older version overlooks it.
//!
//! Serde knows only one of the two for a type. So such a type has a twin with the same fields that is read leniently,
//! and answers read the twin.

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
        #[serde(deny_unknown_fields, remote = "Self")]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub struct $name {
            $( $(#[$about_field])* pub $field: $type, )*
        }
        $crate::wire::two_way::object!($name);

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

/// Makes a struct that is derived with `remote = "Self"` read objects only.
///
/// What serde derives for a struct also reads a list of its fields' values: `"retention": []` would be settings in which
/// nothing is said. Nobody means that. With `remote`, what is derived becomes methods of the struct, and the traits are
/// written here around them. Only what lies within a request needs it: [`read`](super::body::read) sees to the whole.
macro_rules! object {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $name::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                struct Object;

                impl<'de> serde::de::Visitor<'de> for Object {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$name, A::Error> {
                        $name::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    }

                    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, _: A) -> Result<$name, A::Error> {
                        Err(serde::de::Error::custom($crate::wire::body::LIST_FOR_OBJECT))
                    }
                }

                deserializer.deserialize_any(Object)
            }
        }
    };
}
pub(crate) use object;
