//! The wire types say what the protocol says: its examples, its refusals, and nothing gets lost on the way.

mod durations;
mod examples;
#[cfg(feature = "openapi")]
mod openapi;
mod refusals;
mod times;
