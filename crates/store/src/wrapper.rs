//! A store around another one, written by what differs: to fail on purpose, to watch, to count, to break.
//!
//! Every method is in one table. A wrapper that changes nothing is one line long; one that changes how calls
//! are made says so in [`Wrapper::read`] and [`Wrapper::write`]; one that changes an answer writes that method.

use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use punctual_core::{
    Change, Epoch, Fence, Obstacle, PartitionId, QueueId, RowKey, Task, Timestamp, WindowId,
};

use crate::{
    Claim, Filter, Found, Held, Loaded, MapEntry, Meta, Ownership, Page, PageKey, Pruned, Query, Recorded,
    Retention, Standing, Store, StoreError, Swap, Tear, TearableStore,
};

macro_rules! wrapper {
    ($($kind:ident $method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        /// A store around another one: each method does what the inner store does, unless it is written anew.
        pub trait Wrapper: Send + Sync + 'static {
            /// What is wrapped.
            type Inner: Store;

            /// The store within.
            fn inner(&self) -> &Self::Inner;

            /// Makes a call that changes nothing.
            fn read<T: Send>(
                &self,
                call: impl Future<Output = Result<T, StoreError>> + Send,
            ) -> impl Future<Output = Result<T, StoreError>> + Send {
                call
            }

            /// Makes a call that changes something, in one step that happens or does not.
            fn write<T: Send>(
                &self,
                call: impl Future<Output = Result<T, StoreError>> + Send,
            ) -> impl Future<Output = Result<T, StoreError>> + Send {
                call
            }

            /// The one call that can happen in part.
            fn record(&self, batch: &[(Fence, Vec<Change>)]) -> impl Future<Output = Vec<Recorded>> + Send {
                self.inner().record(batch)
            }

            $(#[doc = concat!("As [`Store::", stringify!($method), "`].")]
            fn $method(&self $(, $argument: $type)*)
                -> impl Future<Output = Result<$answer, StoreError>> + Send
            {
                self.$kind(self.inner().$method($($argument),*))
            })*
        }

        impl<W: Wrapper> Store for W {
            fn record(&self, batch: &[(Fence, Vec<Change>)]) -> impl Future<Output = Vec<Recorded>> + Send {
                Wrapper::record(self, batch)
            }

            $(fn $method(&self $(, $argument: $type)*)
                -> impl Future<Output = Result<$answer, StoreError>> + Send
            {
                Wrapper::$method(self $(, $argument)*)
            })*
        }

        impl<A: Store, B: Store> Store for Either<A, B> {
            async fn record(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
                match self {
                    Either::One(store) => store.record(batch).await,
                    Either::Other(store) => store.record(batch).await,
                }
            }

            $(async fn $method(&self $(, $argument: $type)*) -> Result<$answer, StoreError> {
                match self {
                    Either::One(store) => store.$method($($argument),*).await,
                    Either::Other(store) => store.$method($($argument),*).await,
                }
            })*
        }

        impl<S: Store> Store for Replaceable<S> {
            async fn record(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
                self.present().record(batch).await
            }

            $(async fn $method(&self $(, $argument: $type)*) -> Result<$answer, StoreError> {
                self.present().$method($($argument),*).await
            })*
        }
    };
}

/// One of two kinds of stores, by choice at run time. Clones share it.
#[derive(Clone)]
pub enum Either<A, B> {
    /// Of the one kind.
    One(A),
    /// Of the other.
    Other(B),
}

impl<A: TearableStore, B: TearableStore> TearableStore for Either<A, B> {
    async fn record_torn(&self, batch: &[(Fence, Vec<Change>)], tears: &[Tear]) -> Vec<Recorded> {
        match self {
            Either::One(store) => store.record_torn(batch, tears).await,
            Either::Other(store) => store.record_torn(batch, tears).await,
        }
    }
}

/// A store that can be replaced while it is in use, as when its machine starts again. Clones share it.
pub struct Replaceable<S>(Arc<RwLock<Arc<S>>>);

impl<S> Replaceable<S> {
    /// This store, for now.
    pub fn new(store: S) -> Replaceable<S> {
        Replaceable(Arc::new(RwLock::new(Arc::new(store))))
    }

    /// From now on this one. Calls under way go on with the old one.
    pub fn replace(&self, store: S) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(store);
    }

    /// The store that is in use now.
    pub fn present(&self) -> Arc<S> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<S> Clone for Replaceable<S> {
    fn clone(&self) -> Self {
        Replaceable(self.0.clone())
    }
}

/// Whether writes can be cut is not known of what comes: they are all or nothing.
impl<S: Store> TearableStore for Replaceable<S> {}

wrapper! {
    read meta() -> Meta;
    read ownerships() -> Vec<Ownership>;
    write claim(partition: PartitionId, seen: Epoch, owner: &str) -> Claim;
    write release(fence: Fence) -> ();
    read standing(partition: PartitionId) -> Standing;
    read held(partition: PartitionId, after: Option<Obstacle>, limit: usize) -> Vec<Held>;
    read load(
        partition: PartitionId, window: WindowId, from: RowKey, until: Timestamp, limit: usize
    ) -> Loaded;
    read parked(partition: PartitionId, obstacle: Obstacle, from: RowKey, limit: usize) -> Vec<Task>;
    read find(partition: PartitionId, queries: &[Query]) -> Vec<Option<Found>>;
    read list(filter: &Filter, from: Option<PageKey>, limit: usize) -> Page;
    write prune(fence: Fence, queue: QueueId, retention: Retention, buckets_max: usize) -> Pruned;
    read schedules(partition: PartitionId, after: Option<&str>, limit: usize) -> Vec<(Box<str>, Bytes)>;
    read get(now: Timestamp, key: &str) -> Option<MapEntry>;
    read entries(
        now: Timestamp, prefix: &str, after: Option<&str>, limit: usize
    ) -> Vec<(Box<str>, MapEntry)>;
    write compare_and_set(
        now: Timestamp, key: &str, expected: Option<u64>, value: Option<Bytes>, expires_at: Option<Timestamp>
    ) -> Swap;
}
