//! Tasks over HTTP, as `docs/protocol.md` has it. Nothing here decides: it reads, asks the scheduler, and writes.

mod ask;
mod call_at;
mod create;
mod draft;
mod events;
mod failure;
mod lanes;
mod lines;
mod list;
mod once;
mod pages;
mod queues;
mod reply;
mod router;
mod tasks;
mod verbs;
mod view;
mod work;

pub(crate) use draft::moment_of;
pub use failure::{Failure, codes};
pub use router::{paths, router};
pub use verbs::{QUEUE_VERBS, QueueVerb, TASK_VERBS, TaskVerb};
pub(crate) use view::{result as result_of, state as state_of};
