//! A store on hold: after a restore nothing starts until somebody has looked.
//!
//! Every queue is paused, and which ones were is written down, so that a release resumes these and leaves alone what was
//! paused before. Queue by queue works as well: a queue that is resumed is not held any more.

use std::sync::Arc;

use bytes::Bytes;
use punctual_core::{QueueId, QueueSettings, Timestamp};
use punctual_store::{Store, Swap};
use serde::{Deserialize, Serialize};

use crate::directory::Directory;
use crate::error::Error;
use crate::scheduler::Scheduler;

/// Where the queues that are held lie in the store's map.
const KEY: &str = "on-hold";

/// A queue that is there, and whether a hold has paused it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldQueue {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// The number that its tasks know it by.
    pub number: QueueId,
    /// False if it was paused before.
    pub held: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Place {
    namespace: Box<str>,
    name: Box<str>,
}

/// Pauses every queue of a store that no scheduler uses, and `others` of the default namespace, which are made if they are
/// not there. Answers with all queues.
pub async fn hold<S: Store>(store: Arc<S>, now: Timestamp, others: &[&str]) -> Result<Vec<HeldQueue>, Error> {
    let directory = Directory::new(store.clone());
    for name in others {
        let made = directory.write(now, "default", name, |before| {
            let defaults = || (QueueSettings::default(), Bytes::new());
            Ok(before.map_or_else(defaults, |queue| (queue.settings.as_ref().clone(), queue.extras.clone())))
        });
        made.await?;
    }
    let mut queues = Vec::new();
    for (namespace, name, queue) in directory.list_all(now).await? {
        let held = !queue.settings.paused;
        queues.push(HeldQueue { namespace, name, number: queue.id, held });
    }
    // Written down first: if the rest is cut off, a release resumes a queue that is not paused, which does no harm.
    let places = queues.iter().filter(|queue| queue.held);
    let places = places.map(|queue| Place { namespace: queue.namespace.clone(), name: queue.name.clone() });
    note(&*store, now, places.collect()).await?;
    for queue in queues.iter().filter(|queue| queue.held) {
        let paused = directory.write(now, &queue.namespace, &queue.name, |before| {
            let Some(before) = before else { return Ok((QueueSettings::default(), Bytes::new())) };
            let settings = QueueSettings { paused: true, ..before.settings.as_ref().clone() };
            Ok((settings, before.extras.clone()))
        });
        paused.await?;
    }
    Ok(queues)
}

async fn note<S: Store>(store: &S, now: Timestamp, held: Vec<Place>) -> Result<(), Error> {
    let value = (!held.is_empty()).then(|| serde_json::to_vec(&held)).transpose().map_err(Error::Payload)?;
    let value = value.map(Bytes::from);
    loop {
        let there = store.get(now, KEY).await?.map(|entry| entry.version);
        if there.is_none() && value.is_none() {
            return Ok(());
        }
        if let Swap::Done(_) = store.compare_and_set(now, KEY, there, value.clone(), None).await? {
            return Ok(());
        }
    }
}

impl<S: Store> Scheduler<S> {
    /// The queues that a hold has paused and nobody has resumed since, of all namespaces.
    pub async fn held(&self) -> Result<Vec<HeldQueue>, Error> {
        let mut held = Vec::new();
        for Place { namespace, name } in self.noted().await? {
            let Some(queue) = self.in_namespace(&namespace)?.queue_if_there(&name).await? else { continue };
            if queue.settings.paused {
                held.push(HeldQueue { namespace, name, number: queue.id, held: true });
            }
        }
        Ok(held)
    }

    /// Resumes the queues that a hold has paused. Answers with them.
    pub async fn release_hold(&self) -> Result<Vec<HeldQueue>, Error> {
        let held = self.held().await?;
        for queue in &held {
            self.in_namespace(&queue.namespace)?.resume(&queue.name).await?;
        }
        note(&*self.inner.store, self.now(), Vec::new()).await?;
        Ok(held)
    }

    async fn noted(&self) -> Result<Vec<Place>, Error> {
        let entry = self.inner.store.get(self.now(), KEY).await?;
        let places = entry.map(|entry| serde_json::from_slice(&entry.value)).transpose();
        Ok(places.map_err(Error::Payload)?.unwrap_or_default())
    }
}
