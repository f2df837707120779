//! Calls to real servers on this machine, kind and unkind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop, in its helpers too")]

mod addresses;
mod answers;
mod connections;
mod limits;
mod proxy;
mod requests;
mod servers;
mod tls;
