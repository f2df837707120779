//! Queues by name: each (namespace, name) is given a number once, and keeps it; its settings lie beside it.

use std::sync::{Arc, RwLock, RwLockReadGuard};

use bytes::Bytes;
use punctual_core::{QueueId, QueueSettings, Refusal, Timestamp};
use punctual_store::{Cause, MapEntry, Store, StoreError, Swap};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::{Mutex, MutexGuard, watch};

use crate::Error;
use crate::door::Door;
use crate::stored_queue::{decode, encode};

/// Where the last number given lies in the store's map.
const LAST_NUMBER: &str = "queue-number";
/// What the keys of queues begin with.
const ALL_QUEUES: &str = "queue/";
const QUEUES_PAGE: usize = 1_000;
const DECIDED_ONCE: &str =
    "is decided when a queue is made: make another queue, and move what sends tasks there";

/// A queue as users and the store know it.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub id: QueueId,
    pub settings: Arc<QueueSettings>,
    /// What whoever delivers its tasks wrote down beside the settings. Never looked into.
    pub extras: Bytes,
    /// Grows with each change of the settings: of two, the higher is the present one.
    pub version: u64,
    /// What every task of it comes in by.
    pub door: Door,
}

/// What a queue is called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct QueueName {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

/// What a change of a queue makes of it.
pub(crate) type Changed = (QueueSettings, Bytes);

/// All queues that this process has met.
pub(crate) struct Directory<S> {
    store: Arc<S>,
    known: RwLock<Known>,
    /// Tells those who wait for a queue to be made that they should look again.
    news: watch::Sender<()>,
    /// Held while a queue is made: of many first tasks one makes it, and the others find it. Without it all would write,
    /// and all but one begin again, round after round.
    making: Mutex<()>,
    /// Held while a queue is removed.
    removing: Mutex<()>,
}

#[derive(Default)]
struct Known {
    /// By namespace, then by name.
    queues: FxHashMap<Arc<str>, FxHashMap<Arc<str>, Queue>>,
    names: FxHashMap<QueueId, QueueName>,
    /// They do not come back, whatever was read before they were removed.
    removed: FxHashSet<QueueId>,
}

impl<S: Store> Directory<S> {
    pub fn new(store: Arc<S>) -> Directory<S> {
        Directory {
            store,
            known: RwLock::default(),
            news: watch::Sender::default(),
            making: Mutex::default(),
            removing: Mutex::default(),
        }
    }

    /// Reads the queues of all namespaces, so that each begins with its settings and not with the defaults.
    pub async fn read_all(&self, now: Timestamp) -> Result<Vec<Queue>, Error> {
        let queues = self.read_under(now, ALL_QUEUES).await?;
        Ok(queues.into_iter().map(|(_, queue)| queue).collect())
    }

    /// The queues of all namespaces, with their namespaces and names.
    pub async fn list_all(&self, now: Timestamp) -> Result<Vec<(Box<str>, Box<str>, Queue)>, Error> {
        let queues = self.read_under(now, ALL_QUEUES).await?;
        let placed = queues.into_iter().filter_map(|(key, queue)| {
            let (namespace, name) = key.strip_prefix(ALL_QUEUES)?.split_once('/')?;
            Some((namespace.into(), name.into(), queue))
        });
        Ok(placed.collect())
    }

    /// The queues of a namespace, in order of their names.
    pub async fn list(&self, now: Timestamp, namespace: &str) -> Result<Vec<(Box<str>, Queue)>, Error> {
        let prefix = key(namespace, "");
        let queues = self.read_under(now, &prefix).await?;
        Ok(queues.into_iter().map(|(key, queue)| (key[prefix.len()..].into(), queue)).collect())
    }

    async fn read_under(&self, now: Timestamp, prefix: &str) -> Result<Vec<(Box<str>, Queue)>, Error> {
        let (mut queues, mut after) = (Vec::new(), None::<Box<str>>);
        loop {
            let page = self.store.entries(now, prefix, after.as_deref(), QUEUES_PAGE).await?;
            for (key, entry) in &page {
                queues.push((key.clone(), self.remember(key, read(entry)?)));
            }
            match page.last() {
                Some((key, _)) if page.len() == QUEUES_PAGE => after = Some(key.clone()),
                _ => return Ok(queues),
            }
        }
    }

    /// Waits for whoever makes a queue just now, so that it can be looked for again before another is made.
    pub async fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.making.lock().await
    }

    /// Waits until nobody removes a queue any more.
    pub async fn one_removal_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.removing.lock().await
    }

    /// A queue that this process has met.
    pub fn met(&self, namespace: &str, name: &str) -> Option<Queue> {
        self.known().queues.get(namespace)?.get(name).cloned()
    }

    /// Changes whenever a queue is met for the first time.
    pub fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// Has those look again who wait for a queue.
    pub fn look_again(&self) {
        self.news.send_replace(());
    }

    /// The numbers of a namespace's queues that this process has met, in order; `None` if it has met no others.
    pub fn only_of(&self, namespace: &str) -> Option<Arc<[QueueId]>> {
        let known = self.known();
        if known.queues.keys().all(|met| **met == *namespace) {
            return None;
        }
        let own = known.names.iter().filter(|(_, name)| *name.namespace == *namespace);
        let mut own: Vec<QueueId> = own.map(|(queue, _)| *queue).collect();
        own.sort_unstable();
        Some(own.into())
    }

    /// What a queue that this process has met is called.
    pub fn name(&self, queue: QueueId) -> Option<QueueName> {
        self.known().names.get(&queue).cloned()
    }

    /// A queue that this process has met, by its number.
    pub fn numbered(&self, queue: QueueId) -> Option<Queue> {
        let QueueName { namespace, name } = self.name(queue)?;
        self.met(&namespace, &name)
    }

    /// Whether a queue was removed by this process.
    pub fn is_gone(&self, id: QueueId) -> bool {
        self.known().removed.contains(&id)
    }

    /// A queue by its number, if it is there still, and not another one of its name.
    pub async fn is_there(&self, now: Timestamp, id: QueueId) -> Result<Option<Queue>, Error> {
        let there = || self.numbered(id).filter(|queue| queue.id == id);
        if there().is_none() && !self.is_gone(id) {
            // Somebody else may have made it.
            self.read_all(now).await?;
        }
        Ok(there())
    }

    /// The queue of that name, if there is one. Nothing is made by looking.
    pub async fn find(&self, now: Timestamp, namespace: &str, name: &str) -> Result<Option<Queue>, Error> {
        punctual_core::check::queue_name(name)?;
        let key = key(namespace, name);
        let entry = self.store.get(now, &key).await?;
        Ok(entry.as_ref().map(read).transpose()?.map(|queue| self.remember(&key, queue)))
    }

    /// Changes a queue in the store; makes it if there is none. `change` is given what is there and may refuse.
    pub async fn write(
        &self,
        now: Timestamp,
        namespace: &str,
        name: &str,
        change: impl Fn(Option<&Queue>) -> Result<Changed, Error>,
    ) -> Result<Queue, Error> {
        punctual_core::check::queue_name(name)?;
        let key = key(namespace, name);
        loop {
            let entry = self.store.get(now, &key).await?;
            let before = entry.as_ref().map(read).transpose()?;
            let (settings, extras) = change(before.as_ref())?;
            punctual_core::check::queue(&settings)?;
            let id = match before {
                Some(queue) => {
                    refuse_to_split(&queue.settings, &settings)?;
                    queue.id
                }
                None => self.next_number(now).await?,
            };
            let version = entry.map(|entry| entry.version);
            let value = encode(id, &settings, &extras);
            let swap = self.store.compare_and_set(now, &key, version, Some(value), None).await?;
            if let Swap::Done(Some(version)) = swap {
                let door = Door::default();
                return Ok(
                    self.remember(&key, Queue { id, settings: settings.into(), extras, version, door })
                );
            }
        }
    }

    /// Forgets a queue, if it is still of this version.
    pub async fn remove(
        &self,
        now: Timestamp,
        namespace: &str,
        name: &str,
        queue: &Queue,
    ) -> Result<(), Error> {
        let key = key(namespace, name);
        let removed = self.store.compare_and_set(now, &key, Some(queue.version), None, None).await;
        if let Ok(Swap::Conflict(_)) = removed {
            return Err(Error::QueueChanged);
        }
        let mut known = self.known.write().expect("nothing panics while it is held");
        if let Some(queues) = known.queues.get_mut(namespace) {
            // It may have been made anew by now.
            queues.retain(|_, there| there.id != queue.id);
        }
        // Without an answer it may still be there: whoever needs it asks the store.
        removed?;
        known.removed.insert(queue.id);
        known.names.remove(&queue.id);
        Ok(())
    }

    /// A number that no queue had before. One that is then not used is lost, which harms nobody.
    async fn next_number(&self, now: Timestamp) -> Result<QueueId, Error> {
        loop {
            let entry = self.store.get(now, LAST_NUMBER).await?;
            let last = entry.as_ref().map_or(Ok(0), |entry| number(&entry.value))?;
            let value = Bytes::copy_from_slice(&(last + 1).to_be_bytes());
            let version = entry.map(|entry| entry.version);
            if let Swap::Done(_) =
                self.store.compare_and_set(now, LAST_NUMBER, version, Some(value), None).await?
            {
                return Ok(QueueId(last + 1));
            }
        }
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().expect("nothing panics while it is held")
    }

    /// Keeps the newest of what was heard of a queue, in whatever order it is heard.
    fn remember(&self, key: &str, mut queue: Queue) -> Queue {
        let Some((namespace, name)) = key.strip_prefix(ALL_QUEUES).and_then(|rest| rest.split_once('/'))
        else {
            return queue;
        };
        let mut known = self.known.write().expect("nothing panics while it is held");
        let called = QueueName { namespace: namespace.into(), name: name.into() };
        if known.removed.contains(&queue.id) {
            queue.door = Door::of_what_is_gone();
            return queue;
        }
        let queues = known.queues.entry(called.namespace.clone()).or_default();
        match queues.get(name) {
            Some(newer) if newer.version > queue.version => return newer.clone(),
            Some(before) if before.id == queue.id => queue.door = before.door.clone(),
            _ => {}
        }
        let is_new = queues.insert(called.name.clone(), queue.clone()).is_none();
        known.names.insert(queue.id, called);
        drop(known);
        if is_new {
            self.look_again();
        }
        queue
    }
}

/// Neither namespaces nor names have a slash.
fn key(namespace: &str, name: &str) -> String {
    format!("{ALL_QUEUES}{namespace}/{name}")
}

/// What decides where the tasks of a lane lie cannot change while some may be waiting: they would lie in two
/// partitions or in two windows, and lose their order. Of two partitions, neither would know the other's unique keys.
fn refuse_to_split(before: &QueueSettings, after: &QueueSettings) -> Result<(), Refusal> {
    let split = match (before.pinned != after.pinned, before.priority != after.priority) {
        (true, _) => "pinned",
        (_, true) => "priority",
        _ => return Ok(()),
    };
    Err(Refusal::BadSetting { what: split, hint: DECIDED_ONCE })
}

fn read(entry: &MapEntry) -> Result<Queue, Error> {
    let (id, settings, extras) = decode(&entry.value).map_err(StoreError::Corrupt)?;
    Ok(Queue { id, settings: settings.into(), extras, version: entry.version, door: Door::default() })
}

fn number(value: &[u8]) -> Result<u32, Error> {
    let bytes = value
        .try_into()
        .map_err(|_| StoreError::Corrupt(Cause::from("the last queue number is not a number")))?;
    Ok(u32::from_be_bytes(bytes))
}
