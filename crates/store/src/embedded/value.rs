//! What a row says: as bytes, or, while it is hot, as what the bytes stand for.

use std::sync::Arc;

use bytes::Bytes;
use punctual_core::{EndedTask, Task};

use crate::StoreError;
use crate::kv::{decode, encode};

/// The value of a row. Clones share it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// As it is written.
    Bytes(Bytes),
    /// A task that has not ended.
    Task(Arc<Task>),
    /// A task that has.
    Ended(Arc<EndedTask>),
}

/// What a task takes in memory besides its texts and its payload, about.
const TASK_BYTES: usize = size_of::<Task>() + size_of::<punctual_core::Spec>() + 32;

impl Value {
    /// As it is written.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Value::Bytes(bytes) => bytes.clone(),
            Value::Task(task) => encode(&**task),
            Value::Ended(ended) => encode(&**ended),
        }
    }

    /// The task that has not ended, if this is its row.
    pub fn to_task(&self) -> Result<Arc<Task>, StoreError> {
        match self {
            Value::Task(task) => Ok(task.clone()),
            other => decode(&other.to_bytes()).map(Arc::new),
        }
    }

    /// How much memory it takes, about.
    pub fn memory(&self) -> usize {
        match self {
            Value::Bytes(bytes) => bytes.len(),
            Value::Task(task) => TASK_BYTES + carried(task),
            Value::Ended(ended) => {
                let error = ended.end.error.as_ref().map_or(0, |error| error.len());
                TASK_BYTES
                    + size_of::<punctual_core::End>()
                    + carried(&ended.task)
                    + ended.end.result.len()
                    + error
            }
        }
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Value {
        Value::Bytes(bytes)
    }
}

/// What a task carries along: its payload and its texts.
pub fn carried(task: &Task) -> usize {
    let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
    let spec = &task.spec;
    spec.payload.len()
        + text(&spec.lane)
        + text(&spec.unique_key)
        + text(&spec.name)
        + task.last_error.as_ref().map_or(0, |error| error.len())
}
