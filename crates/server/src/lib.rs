//! The server: tasks over HTTP, calls at a given time, and the command line.

mod access;
pub mod api;
mod app;
mod audit;
mod blocked;
pub mod call;
mod calls;
mod counts;
mod debts;
mod delivery;
mod error_pages;
mod extras;
pub mod keys;
mod lateness;
mod letter;
mod limits;
mod listen;
pub mod logs;
mod metrics;
mod notifications;
mod owed;
mod serve;
mod spans;
mod trace;
pub mod units;
mod watch;

pub use access::{Access, Need, PATHS, Room};
pub use app::{App, Scheduler, ServerStore};
pub use audit::{Audit, open_existing as open_audit};
pub use limits::Limits;
pub use listen::{BadTls, TlsFiles};
pub use serve::{Options, Reload, Server, Trouble};
pub use spans::NoSpans;
