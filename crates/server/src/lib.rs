//! The server: tasks over HTTP, calls at a given time, and the command line.

mod access;
pub mod api;
mod app;
mod audit;
pub mod call;
mod callbacks;
mod calls;
mod counts;
mod delivery;
mod error_pages;
mod extras;
pub mod keys;
mod limits;
mod listen;
mod metrics;
mod serve;
pub mod units;
mod watch;

pub use access::{Access, Need, PATHS, Room};
pub use app::{App, Scheduler, ServerStore};
pub use audit::Audit;
pub use limits::Limits;
pub use listen::{BadTls, TlsFiles};
pub use serve::{Options, Reload, Server, Trouble};
