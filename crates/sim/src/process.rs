//! A node as the operating system sees it: started, killed, stopped and continued.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use punctual_core::{Change, Epoch, Fence, PartitionId, QueueId};
use punctual_store::{Claim, Pruned, Recorded, Retention, Store, StoreError, Wrapper};

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

impl<S: Store + Clone> Wrapper for Remote<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.0
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

    async fn prune(
        &self,
        fence: Fence,
        queue: QueueId,
        retention: Retention,
        buckets_max: usize,
    ) -> Result<Pruned, StoreError> {
        let store = self.0.clone();
        send(async move { store.prune(fence, queue, retention, buckets_max).await }).await
    }
}
