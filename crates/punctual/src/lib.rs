//! Punctual runs work at the time it was promised, in order, and tells you before a promise breaks.
//!
//! Register handlers by name, start on a store, schedule tasks:
//!
//! ```
//! use std::time::Duration;
//! use punctual::{Job, MemoryStore, NewTask, Scheduler};
//!
//! # #[tokio::main] async fn main() -> Result<(), punctual::Error> {
//! let scheduler = Scheduler::builder()
//!     .handler("greet", |job: Job<String>| async move { Ok(format!("Hello, {}!", job.payload)) })
//!     .start(MemoryStore::new(64))
//!     .await?;
//! let task = NewTask::new("greet").payload(&"Ana")?.after(Duration::from_millis(10)).lane("ana");
//! let id = scheduler.schedule(task).await?.id();
//! assert_eq!(scheduler.result(id).await?.read::<String>()?, "Hello, Ana!");
//! scheduler.stop(Duration::from_secs(1)).await?;
//! # Ok(()) }
//! ```
//!
//! A task's id is text to the world outside, and comes back from it:
//!
//! ```
//! # fn look(id: punctual::TaskId) -> Result<(), punctual::Error> {
//! let text: String = id.to_string();
//! let same: punctual::TaskId = text.parse()?;
//! # Ok(()) }
//! ```

mod builder;
pub mod clock;
mod directory;
mod door;
mod error;
mod executor;
mod handlers;
mod hold;
mod observer;
mod queues;
mod request;
mod scheduler;
pub mod shell;
mod stored_queue;
mod task;
mod time;
mod view;
mod worker;

pub use builder::Builder;
pub use error::Error;
pub use executor::{Executor, Running};
pub use handlers::{Failure, Handlers, Job};
pub use hold::{HeldQueue, hold};
pub use observer::{Note, Observer, Unobserved};
pub use punctual_core::id::NotATaskId;
pub use punctual_core::{
    Attempt, Change, EndState, EndedTask, Found, Limits, OnConflict, OnExhausted, Outcome, PartitionId, Past,
    Priority, QueueSettings, Rate, Refusal, RetryPolicy, Spec, Target, Task, TaskId, Timestamp, Token,
    WaitState, Waits,
};
pub use punctual_store::embedded::{
    Copied, EmbeddedStore, FolderError, FolderOptions, FolderTrouble, Verified, verify,
};
pub use punctual_store::{MemoryStore, PageKey, Store, StoreError};
pub use queues::QueueView;
pub use scheduler::Scheduler;
pub use task::NewTask;
pub use time::{IntoTimestamp, system_time};
pub use view::{Filter, Load, Page, Quiet, Scheduled, TaskResult, TaskState, TaskView};
pub use worker::{Afterwards, RESERVE_MAX, RESERVE_WAIT_MAX, Report, Reserved, Settled};

/// The README's example is compiled and run with the others.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
