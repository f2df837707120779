//! A node as the operating system sees it: started, killed, stopped and continued.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use punctual_core::{
    Change, Epoch, Fence, Obstacle, PartitionId, QueueId, RowKey, Task, Timestamp, WindowId,
};
use punctual_store::{
    Claim, Filter, Found, Held, Loaded, MapEntry, Meta, Ownership, Page, PageKey, Pruned, Query, Recorded,
    Retention, Standing, Store, StoreError, Swap,
};

/// `SIGSTOP` and `SIGCONT` for a future: while it is stopped, nothing in it is polled.
#[derive(Clone, Default)]
pub struct Signal {
    state: Arc<Mutex<(bool, Option<Waker>)>>,
}

impl Signal {
    /// Stops or continues.
    pub fn set_stopped(&self, stopped: bool) {
        let mut state = self.state.lock().expect("nothing panics while it holds the signal");
        state.0 = stopped;
        if !stopped {
            state.1.take().inspect(Waker::wake_by_ref);
        }
    }

    /// Runs a future under this signal.
    pub fn govern<F: Future<Output = ()> + Send + 'static>(&self, future: F) -> Governed {
        Governed { signal: self.clone(), future: Box::pin(future) }
    }
}

/// A future that can be stopped and continued.
pub struct Governed {
    signal: Signal,
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Future for Governed {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        {
            let mut state = self.signal.state.lock().expect("nothing panics while it holds the signal");
            if state.0 {
                state.1 = Some(context.waker().clone());
                return Poll::Pending;
            }
        }
        self.future.as_mut().poll(context)
    }
}

/// A store across a network: what was sent arrives, whatever happens to the sender meanwhile.
#[derive(Clone)]
pub struct Remote<S>(pub S);

/// Runs a write as a packet in flight: dropping the caller does not call it back.
async fn send<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> T {
    tokio::spawn(call).await.expect("a store call neither panics nor is aborted")
}

impl<S: Store + Clone> Store for Remote<S> {
    async fn meta(&self) -> Result<Meta, StoreError> {
        self.0.meta().await
    }

    async fn ownerships(&self) -> Result<Vec<Ownership>, StoreError> {
        self.0.ownerships().await
    }

    async fn claim(&self, partition: PartitionId, seen: Epoch, owner: &str) -> Result<Claim, StoreError> {
        let (store, owner) = (self.0.clone(), owner.to_owned());
        send(async move { store.claim(partition, seen, &owner).await }).await
    }

    async fn release(&self, fence: Fence) -> Result<(), StoreError> {
        let store = self.0.clone();
        send(async move { store.release(fence).await }).await
    }

    async fn record(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
        let (store, batch) = (self.0.clone(), batch.to_vec());
        send(async move { store.record(&batch).await }).await
    }

    async fn standing(&self, partition: PartitionId) -> Result<Standing, StoreError> {
        self.0.standing(partition).await
    }

    async fn held(
        &self,
        partition: PartitionId,
        after: Option<Obstacle>,
        limit: usize,
    ) -> Result<Vec<Held>, StoreError> {
        self.0.held(partition, after, limit).await
    }

    async fn load(
        &self,
        partition: PartitionId,
        window: WindowId,
        from: RowKey,
        until: Timestamp,
        limit: usize,
    ) -> Result<Loaded, StoreError> {
        self.0.load(partition, window, from, until, limit).await
    }

    async fn parked(
        &self,
        partition: PartitionId,
        obstacle: Obstacle,
        from: RowKey,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError> {
        self.0.parked(partition, obstacle, from, limit).await
    }

    async fn find(
        &self,
        partition: PartitionId,
        queries: &[Query],
    ) -> Result<Vec<Option<Found>>, StoreError> {
        self.0.find(partition, queries).await
    }

    async fn list(&self, filter: &Filter, from: Option<PageKey>, limit: usize) -> Result<Page, StoreError> {
        self.0.list(filter, from, limit).await
    }

    async fn prune(
        &self,
        fence: Fence,
        queue: QueueId,
        retention: Retention,
        buckets_max: usize,
    ) -> Result<Pruned, StoreError> {
        self.0.prune(fence, queue, retention, buckets_max).await
    }

    async fn schedules(
        &self,
        partition: PartitionId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Box<str>, Bytes)>, StoreError> {
        self.0.schedules(partition, after, limit).await
    }

    async fn get(&self, now: Timestamp, key: &str) -> Result<Option<MapEntry>, StoreError> {
        self.0.get(now, key).await
    }

    async fn entries(
        &self,
        now: Timestamp,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Box<str>, MapEntry)>, StoreError> {
        self.0.entries(now, prefix, after, limit).await
    }

    async fn compare_and_set(
        &self,
        now: Timestamp,
        key: &str,
        expected: Option<u64>,
        value: Option<Bytes>,
        expires_at: Option<Timestamp>,
    ) -> Result<Swap, StoreError> {
        self.0.compare_and_set(now, key, expected, value, expires_at).await
    }
}
