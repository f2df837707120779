//! The store in a folder of this machine. So far its journal: what is written before a caller is answered.
//!
//! ```text
//!   requests ──▶ writer ──▶ journal ──▶ disk
//!                one group   one frame   one write, one sync
//! ```
//!
//! Nothing in here knows what a task is: records are bytes. Decision record: `docs/decisions/0008-the-journal.md`.

pub mod disk;
pub mod frame;
pub mod journal;
pub mod writer;
