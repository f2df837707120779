//! Where tasks wait: the contract every store keeps, the suite that proves it, and the drivers.
//!
//! [`Store`] is small, in the domain's words, and in batches. What it must promise is written beside each
//! method and checked by [`conformance`], which every driver runs against its real server.
//! Decision record: `docs/decisions/0003-the-stores-contract.md`.

pub mod conformance;
mod contract;
mod dice;
#[cfg(feature = "embedded")]
pub mod embedded;
mod error;
mod expiry;
pub mod faulty;
pub mod kv;
mod memory;
#[cfg(test)]
mod mutation;
mod news;
mod paging;
mod place;
mod tears;
mod wrapper;

pub use contract::{
    Claim, Filter, Found, Held, Listed, Loaded, MapEntry, Meta, Ownership, Page, PageKey, Pruned, Query,
    Recorded, Retention, Standing, Store, Swap, WindowStanding,
};
pub use error::{Cause, StoreError};
pub use memory::MemoryStore;
pub use tears::{Tear, TearableStore};
pub use wrapper::{Either, Replaceable, Wrapper};
