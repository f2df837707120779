//! The server: tasks over HTTP, calls at a given time, and the command line.

pub mod api;
mod app;
mod blocked;
pub mod call;
mod calls;
mod debts;
mod delivery;
mod error_pages;
mod extras;
mod lateness;
mod letter;
pub mod logs;
mod metrics;
mod notifications;
mod owed;
mod serve;
mod watch;

pub use app::{App, Scheduler, ServerStore};
pub use serve::{Options, Server, Trouble};
