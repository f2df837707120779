//! A year of failures in a minute: a small cluster on simulated time, with everything going wrong, judged by one
//! checker per promise. A seed reproduces a run exactly.

#![expect(missing_docs, reason = "not published: names that explain themselves are enough here")]

pub mod bugs;
pub mod checkers;
pub mod coverage;
pub mod dice;
pub mod history;
mod machine;
pub mod process;
pub mod run;
pub mod settings;
pub mod targets;
pub mod users;
pub mod watch;
pub mod witness;
mod workers;
pub mod world;
