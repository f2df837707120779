//! Who is told of what: each notification is an entry of the store's map, and has a queue of its own for what is sent.
//!
//! Its queue makes it like any other call: signed with the queue's secrets, retried, paused, looked at, given up.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use bytes::Bytes;
use punctual::{Error, Store, Timestamp};
use punctual_client::wire::{EventKind, Span};
use punctual_store::Swap;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::app::{Scheduler, ServerStore};
use crate::owed::Wanted;

/// What the names of their queues begin with.
const QUEUES: &str = "notifications.";
/// What their keys in the map begin with.
const KEYS: &str = "notification/";
const PAGE: usize = 1_000;

/// Whether this is the queue of a notification.
pub fn is_queue(queue: &str) -> bool {
    queue.starts_with(QUEUES)
}

/// The queue of a notification.
pub fn queue_of(name: &str) -> String {
    format!("{QUEUES}{name}")
}

/// Whom to tell, and of what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notification {
    /// Whose.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where it is sent.
    pub url: String,
    /// Of what.
    pub events: Vec<EventKind>,
    /// Only of this queue.
    pub queue: Option<String>,
    /// When tasks are later than this.
    pub lateness_over: Option<Duration>,
}

/// As it lies in the map.
#[derive(Serialize, Deserialize)]
struct Stored {
    url: String,
    events: Vec<EventKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lateness_over: Option<Span>,
}

/// All notifications of all namespaces, in order. Clones are the same.
#[derive(Clone)]
pub struct Notifications(Arc<Shared>);

struct Shared {
    all: RwLock<Arc<[Notification]>>,
    /// Of what somebody wants to be told; grows with each change.
    wanted: watch::Sender<Wanted>,
}

impl Default for Notifications {
    fn default() -> Notifications {
        let all = RwLock::new(Arc::from([]));
        Notifications(Arc::new(Shared { all, wanted: watch::Sender::new(Wanted::default()) }))
    }
}

impl Notification {
    /// Whether it is for what happens in this queue.
    pub fn is_for(&self, namespace: &str, queue: &str, kind: EventKind) -> bool {
        self.namespace == namespace
            && self.events.contains(&kind)
            && self.queue.as_deref().is_none_or(|only| only == queue)
    }
}

impl Notifications {
    /// Reads them all from the store.
    pub async fn read(&self, store: &ServerStore, now: Timestamp) -> Result<(), Error> {
        let (mut all, mut after) = (Vec::new(), None::<Box<str>>);
        loop {
            let page = store.entries(now, KEYS, after.as_deref(), PAGE).await?;
            all.extend(page.iter().filter_map(|(key, entry)| read(key, &entry.value)));
            match page.last() {
                Some((key, _)) if page.len() == PAGE => after = Some(key.clone()),
                _ => break,
            }
        }
        self.set(all);
        Ok(())
    }

    fn set(&self, all: Vec<Notification>) {
        let any = |kind| all.iter().any(|one| one.events.contains(&kind));
        let wanted = Wanted {
            dead: any(EventKind::TaskDead),
            blocked: any(EventKind::LaneBlocked),
            lateness: any(EventKind::Lateness),
        };
        *self.0.all.write().expect("nothing panics while it is held") = all.into();
        self.0.wanted.send_replace(wanted);
    }

    /// All of them.
    pub fn all(&self) -> Arc<[Notification]> {
        self.0.all.read().expect("nothing panics while it is held").clone()
    }

    /// Those of a namespace that want to know what happens in this queue.
    pub fn wanting(&self, namespace: &str, queue: &str, kind: EventKind) -> Vec<Notification> {
        self.all().iter().filter(|one| one.is_for(namespace, queue, kind)).cloned().collect()
    }

    /// Of what somebody wants to be told.
    pub fn wanted(&self) -> Wanted {
        *self.0.wanted.borrow()
    }

    /// Returns when somebody wants to be told of lateness.
    pub async fn lateness_wanted(&self) {
        self.0.wanted.subscribe().wait_for(|wanted| wanted.lateness).await.ok();
    }

    /// Writes one, whether it was there or not.
    pub async fn put(&self, scheduler: &Scheduler, notification: &Notification) -> Result<(), Error> {
        let stored = Stored {
            url: notification.url.clone(),
            events: notification.events.clone(),
            queue: notification.queue.clone(),
            lateness_over: notification.lateness_over.map(Into::into),
        };
        let value = Bytes::from(serde_json::to_vec(&stored).map_err(Error::Payload)?);
        self.write(scheduler, &notification.name, Some(value)).await?;
        self.read(scheduler.store(), scheduler.now()).await
    }

    /// Removes one. Says whether it was there.
    pub async fn remove(&self, scheduler: &Scheduler, name: &str) -> Result<bool, Error> {
        let was_there = self.write(scheduler, name, None).await?;
        self.read(scheduler.store(), scheduler.now()).await?;
        Ok(was_there)
    }

    async fn write(&self, scheduler: &Scheduler, name: &str, value: Option<Bytes>) -> Result<bool, Error> {
        let key = format!("{KEYS}{}/{name}", scheduler.namespace());
        let store = scheduler.store();
        loop {
            let now = scheduler.now();
            let there = store.get(now, &key).await?.map(|entry| entry.version);
            if there.is_none() && value.is_none() {
                return Ok(false);
            }
            if let Swap::Done(_) = store.compare_and_set(now, &key, there, value.clone(), None).await? {
                return Ok(there.is_some());
            }
        }
    }
}

/// One that a newer program wrote and this one does not understand is not there.
fn read(key: &str, value: &[u8]) -> Option<Notification> {
    let (namespace, name) = key.strip_prefix(KEYS)?.split_once('/')?;
    let stored: Stored = serde_json::from_slice(value).ok()?;
    Some(Notification {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        url: stored.url,
        events: stored.events,
        queue: stored.queue,
        lateness_over: stored.lateness_over.map(Into::into),
    })
}
