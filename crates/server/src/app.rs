//! What all requests share: the scheduler, who may ask, and what may be called.

use std::sync::Arc;

use bytes::Bytes;
use punctual::EmbeddedStore;
use punctual_core::QueueId;
use rustc_hash::FxHashMap;
use tokio::sync::watch;

use crate::access::Access;
use crate::call::Guard;
use crate::extras::Extras;
use crate::notifications::Notifications;
use crate::spans::Spans;
use crate::watch::Watch;

/// The store that a server keeps its tasks in.
pub type ServerStore = EmbeddedStore;

/// The scheduler that a server asks.
pub type Scheduler = punctual::Scheduler<ServerStore>;

/// What all requests share. Clones are the same.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    scheduler: Scheduler,
    guard: Guard,
    watch: Watch,
    access: Access,
    spans: Spans,
    /// Whether the server is stopping.
    stopping: watch::Sender<bool>,
    /// Every request that changes something listens here until it is done.
    under_way: watch::Sender<()>,
    extras: std::sync::RwLock<FxHashMap<QueueId, (Bytes, Arc<Extras>)>>,
    /// Held by the backup that is under way.
    backing_up: Arc<tokio::sync::Mutex<()>>,
    /// Held by whoever sets the virtual clock forward.
    advancing: tokio::sync::Mutex<()>,
}

impl App {
    /// A server on this scheduler, which may call what this guard lets it, and is asked by whom `access` lets in.
    pub fn new(scheduler: Scheduler, guard: Guard, watch: Watch, access: Access, spans: Spans) -> App {
        let (stopping, extras) = (watch::Sender::new(false), std::sync::RwLock::default());
        let (advancing, backing_up) = Default::default();
        App(Arc::new(Shared {
            scheduler,
            guard,
            watch,
            access,
            spans,
            stopping,
            under_way: watch::Sender::new(()),
            extras,
            backing_up,
            advancing,
        }))
    }

    /// The scheduler.
    pub fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    /// What may be called.
    pub fn guard(&self) -> &Guard {
        &self.0.guard
    }

    /// Who may ask, and how much.
    pub fn access(&self) -> &Access {
        &self.0.access
    }

    /// Tells spans of what happens.
    pub fn spans(&self) -> &Spans {
        &self.0.spans
    }

    /// Who sees what happens.
    pub fn watch(&self) -> &Watch {
        &self.0.watch
    }

    /// Who is told of what.
    pub fn notifications(&self) -> &Notifications {
        self.watch().notifications()
    }

    /// Waits until nobody else sets the virtual clock forward.
    pub async fn advancing(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.advancing.lock().await
    }

    /// For one backup at a time, unless one is under way.
    pub fn backing_up(&self) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        self.0.backing_up.clone().try_lock_owned().ok()
    }

    /// Lets go whoever would stay for ever.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Whether the server is stopping.
    pub fn is_stopping(&self) -> bool {
        *self.0.stopping.borrow()
    }

    /// Returns when the server is stopping.
    pub async fn stopping(&self) {
        self.0.stopping.subscribe().wait_for(|stopping| *stopping).await.ok();
    }

    /// Held by a request that must be done before the server ends, also when nobody waits for its answer.
    pub fn under_way(&self) -> watch::Receiver<()> {
        self.0.under_way.subscribe()
    }

    /// Returns when no such request is under way.
    pub async fn all_done(&self) {
        self.0.under_way.closed().await;
    }

    /// What a queue says about how its tasks are delivered, read from what lies beside its settings. The same bytes are
    /// read once.
    pub fn extras(&self, queue: QueueId, bytes: &Bytes) -> Arc<Extras> {
        let known = self.0.extras.read().expect("nothing panics while it is held").get(&queue).cloned();
        if let Some((_, extras)) = known.filter(|(read, _)| read == bytes) {
            return extras;
        }
        let extras = Arc::new(Extras::decode(bytes));
        let mut known = self.0.extras.write().expect("nothing panics while it is held");
        known.insert(queue, (bytes.clone(), extras.clone()));
        extras
    }
}
