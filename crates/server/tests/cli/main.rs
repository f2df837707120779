//! The command line as its users have it: the real binary against a real server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop, in its helpers too")]

mod changes;
mod config;
mod example_workers;
mod folders;
mod keys;
mod operation;
mod program;
mod tls;
mod transcripts;
mod usage;
mod work;
