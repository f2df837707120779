//! The client and the worker loop, against a server that speaks the protocol from memory.
//!
//! Only `server` knows that it is not the true one. Connections are made of memory, so that a paused clock moves on only
//! when nothing is on its way.

mod failures;
mod requests;
mod server;
mod streams;
mod worker;
