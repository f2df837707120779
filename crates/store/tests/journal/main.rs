//! The journal keeps what it acknowledged, in order and whole, whatever happens to the power, the disk and the bytes.
#![cfg(feature = "embedded")]

mod bit_flips;
mod counts;
mod crash_sweep;
mod faults;
mod full_disk;
mod real_disk;
mod recycling;
mod refusals;
mod round_trips;
mod torn_writes;
mod world;
