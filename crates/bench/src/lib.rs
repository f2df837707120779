//! What the benchmarks and the tests of counts share: a counting allocator, and a node driven by hand.

pub mod allocations;
pub mod echo;
pub mod waiting;
