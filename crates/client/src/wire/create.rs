//! Making tasks: one, many, or a stream of them.

use serde::{Deserialize, Serialize};

use super::body::{self, BodyFault};
use super::items::Items;
use super::problem::Problem;
#[cfg(feature = "openapi")]
use super::schema::Id;
use super::select::View;
use super::task::{NewTask, Task};

/// So many tasks fit into one batch.
pub const BATCH_MAX: usize = 10_000;

/// Many tasks in one request. A server reads it with [`Creation::read`].
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewTasks {
    /// In order; up to 10,000.
    #[cfg_attr(feature = "openapi", schema(max_items = 10_000))]
    pub tasks: Vec<NewTask>,
}

/// The body of a request that makes tasks.
#[derive(Debug)]
pub enum Creation<'a> {
    /// It is one task.
    One(Box<NewTask>),
    /// It is `{"tasks": […]}`.
    Many(Items<'a, NewTask>),
}

impl<'a> Creation<'a> {
    /// Reads a body that is one task or many. Its first field tells.
    pub fn read(bytes: &'a [u8]) -> Result<Creation<'a>, BodyFault> {
        if begins_with_tasks(bytes) {
            return Items::read(bytes).map(Creation::Many);
        }
        match body::read(bytes) {
            Ok(task) => Ok(Creation::One(Box::new(task))),
            // The same word in other letters: no task has such a field.
            Err(_) if first_field(bytes).as_deref() == Some("tasks") => {
                Items::read(bytes).map(Creation::Many)
            }
            Err(fault) => Err(fault),
        }
    }
}

/// What the first field of an object is called, as JSON has it: with escapes undone.
fn first_field(body: &[u8]) -> Option<String> {
    let body = body.trim_ascii_start().strip_prefix(b"{")?;
    serde_json::Deserializer::from_slice(body).into_iter().next()?.ok()
}

fn begins_with_tasks(body: &[u8]) -> bool {
    let body = body.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
    body.trim_ascii_start().starts_with(b"\"tasks\"")
}

/// What became of one task of a batch: `task` (or `id`, with `Prefer: return=minimal`), or `problem`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateResult {
    /// What the answer's status would have been, had it come alone: 201 if the task is new, 200 if it was there.
    pub status: u16,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// The task's id, when no more was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `basic` if the task is shown without what it carries, although that was asked for: those before it carry too much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
    /// Why there is no task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

impl CreateResult {
    /// The id of the task that stands for the request.
    pub fn id(&self) -> Result<&str, &Problem> {
        const NOTHING: &str = "";
        match (&self.problem, &self.task, &self.id) {
            (Some(problem), _, _) => Err(problem),
            (None, Some(task), _) => Ok(&task.id),
            (None, None, id) => Ok(id.as_deref().unwrap_or(NOTHING)),
        }
    }
}

/// The id of a task, when no more was wanted (`Prefer: return=minimal`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskId {
    /// What to ask for it by.
    #[cfg_attr(feature = "openapi", schema(value_type = Id))]
    pub id: String,
}

/// One result for each item of a batch, in order.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Results<T> {
    /// In the order of the items.
    pub results: Vec<T>,
}
