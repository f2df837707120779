//! The engine, the gate and the node around them, by scripts: what goes in, and what must come out.

mod amend;
mod begins;
mod blocked;
mod cancel;
mod expiry;
mod full;
mod gate;
mod isolation;
mod lanes;
mod leases;
mod left_over;
mod parking;
mod random;
mod script;
mod unique;
mod waiting;
mod windows;
