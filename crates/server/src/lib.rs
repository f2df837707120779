//! The server: tasks over HTTP, calls at a given time, and the command line.

pub mod call;
