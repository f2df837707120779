//! Tasks over HTTP, as `docs/protocol.md` has it. Nothing here decides: it reads, asks the scheduler, and writes.

mod ask;
mod backup;
mod call_at;
mod clock;
mod create;
mod draft;
mod events;
mod expected;
mod failure;
mod hold;
mod keys;
mod lanes;
mod lines;
mod list;
mod named;
mod notifications;
mod once;
mod pages;
mod queues;
mod reply;
mod router;
mod tasks;
mod verbs;
mod view;
mod work;

pub(crate) use draft::{Surroundings, moment_of};
pub use failure::{Failure, codes};
pub use keys::{key_of, shown as shown_key, with_secret as made_key};
pub use router::{Api, head_too_large, paths};
pub use verbs::{KEY_VERBS, KeyVerb, QUEUE_VERBS, QueueVerb, TASK_VERBS, TaskVerb};
pub(crate) use view::{ended_task, live_task, result as result_of, state as state_of};
