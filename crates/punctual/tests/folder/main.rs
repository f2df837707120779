//! The library on the embedded store: in a real folder, with threads and a clock that runs.

mod counts;
mod kept;
mod life;
