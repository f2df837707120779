//! The library as its users see it: on a store in memory, in a time that the tests own, waiting for events only.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop, in its helpers too")]

mod bad_input;
mod change;
mod clocks;
mod everything;
mod expiry;
mod full_disk;
mod handing_over;
mod handlers;
mod history;
mod look;
mod order;
mod queues;
mod recovery;
mod removal;
mod retries;
mod script;
mod stop;
mod storm;
mod unique;
mod workers;
mod world;
