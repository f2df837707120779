//! The server: tasks over HTTP, calls at a given time, and the command line.

pub mod api;
mod app;
pub mod call;
mod callbacks;
mod calls;
mod counts;
mod delivery;
mod error_pages;
mod extras;
mod metrics;
mod serve;
mod watch;

pub use app::{App, Scheduler, ServerStore};
pub use serve::{Options, Server, Trouble};
