//! The items of a batch, `{"tasks": […]}`: each stands for itself, and one that is wrong spoils no other.
//!
//! Mostly all of them are right, and are read in one go. Otherwise the batch is cut into its items, and whoever wants them
//! reads each by itself.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::body::{self, BodyFault};
use super::create::BATCH_MAX;

/// The items of a batch.
#[derive(Debug)]
pub enum Items<'a, T> {
    /// All are right, and no more than fit into one batch.
    Right(Vec<T>),
    /// Some are not: the texts of all of them.
    Mixed(Vec<&'a str>),
}

impl<'a, T: DeserializeOwned> Items<'a, T> {
    /// Reads a batch.
    pub fn read(bytes: &'a [u8]) -> Result<Items<'a, T>, BodyFault> {
        body::refuse_list(bytes)?;
        if let Ok(Batch { tasks: Few(items) }) = serde_json::from_slice(bytes) {
            return Ok(Items::Right(items));
        }
        match serde_json::from_slice::<RawBatch<'_>>(bytes) {
            Ok(raw) => Ok(Items::Mixed(raw.tasks.into_iter().map(RawValue::get).collect())),
            Err(error) => Err(body::fault_of(bytes, &error)),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Items::Right(items) => items.len(),
            Items::Mixed(texts) => texts.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each in turn; of one that is wrong, why, and its text.
    pub fn each(self) -> impl Iterator<Item = Result<T, (BodyFault, &'a str)>> {
        let (items, texts) = match self {
            Items::Right(items) => (items, Vec::new()),
            Items::Mixed(texts) => (Vec::new(), texts),
        };
        let read = |text: &'a str| body::read(text.as_bytes()).map_err(|fault| (fault, text));
        items.into_iter().map(Ok).chain(texts.into_iter().map(read))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound = "T: DeserializeOwned")]
struct Batch<T> {
    tasks: Few<T>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBatch<'a> {
    #[serde(borrow)]
    tasks: Vec<&'a RawValue>,
}

/// No more than fit into one batch: a body could name many more in few bytes, and each takes room once it is read.
struct Few<T>(Vec<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Few<T>, D::Error> {
        deserializer.deserialize_seq(FewVisitor(PhantomData))
    }
}

struct FewVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for FewVisitor<T> {
    type Value = Few<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(Object(item)) = list.next_element()? {
            if items.len() == BATCH_MAX {
                return Err(A::Error::custom("there are too many"));
            }
            items.push(item);
        }
        Ok(Few(items))
    }
}

/// An object, and no list of its fields.
struct Object<T>(T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}
