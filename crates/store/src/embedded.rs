//! The store in a folder of this machine: a journal in front of sorted tables.
//!
//! ```text
//!   record ──▶ author ──▶ layers (recent, sealed) ──▶ answered when the frame is durable
//!                │                    │
//!                ▼                    ▼  a layer at a time
//!             journal             cold tier
//!          one write, one sync    sorted tables, written by ingestion
//! ```
//!
//! Decision records: `docs/decisions/0009-the-journal.md`, `docs/decisions/0010-layers-and-tables.md`.

mod author;
mod background;
mod checkpoint;
pub mod cold;
pub mod disk;
mod draft;
mod folder;
pub mod frame;
mod gauges;
mod hand;
mod hot;
mod in_folder;
pub mod journal;
mod key;
mod kv;
mod layer;
mod lent;
mod merge;
mod ops;
mod shared;
mod store;
mod value;
mod verify;
mod writer;

pub use author::Bounds;
pub use folder::{FolderError, FolderTrouble};
pub use gauges::Gauges;
pub use in_folder::{Copied, EmbeddedStore, FolderOptions};
pub use kv::JournaledKv;
pub use shared::Written;
pub use store::{Hands, JournaledStore};
pub use verify::{Verified, verify};

#[cfg(test)]
mod tests;
