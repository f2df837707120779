//! What a row says: as bytes or, if it is the row of a task that will soon change, as the task.

use std::sync::Arc;

use bytes::Bytes;
use punctual_core::Task;

use crate::StoreError;
use crate::kv::{decode, encode};

/// The value of a row. Clones share it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// As it is written.
    Bytes(Bytes),
    /// A task that has not ended.
    Task(Arc<Task>),
}

/// What a task takes in memory besides its texts and its payload, about.
const TASK_BYTES: usize = size_of::<Task>() + size_of::<punctual_core::Spec>() + 32;

impl Value {
    /// As it is written.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Value::Bytes(bytes) => bytes.clone(),
            Value::Task(task) => encode(&**task),
        }
    }

    /// The task that has not ended, if this is its row.
    pub fn to_task(&self) -> Result<Arc<Task>, StoreError> {
        match self {
            Value::Bytes(bytes) => decode(bytes).map(Arc::new),
            Value::Task(task) => Ok(task.clone()),
        }
    }

    /// How much memory it takes, about.
    pub fn memory(&self) -> usize {
        match self {
            Value::Bytes(bytes) => bytes.len(),
            Value::Task(task) => TASK_BYTES + task.carried_bytes(),
        }
    }
}
