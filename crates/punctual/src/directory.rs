//! Queues by name: each (namespace, name) is given a number once, and keeps it; its settings lie beside it.

use std::sync::{Arc, RwLock};

use bytes::Bytes;
use punctual_core::{QueueId, QueueSettings, Refusal, Timestamp};
use punctual_store::{Cause, MapEntry, Store, StoreError, Swap};
use rustc_hash::FxHashMap;

use crate::Error;
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
    /// Grows with each change of the settings: of two, the higher is the present one.
    pub version: u64,
}

/// All queues that this process has met.
pub(crate) struct Directory<S> {
    store: Arc<S>,
    namespace: Box<str>,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    by_name: FxHashMap<Box<str>, Queue>,
    settings: FxHashMap<QueueId, Arc<QueueSettings>>,
}

impl<S: Store> Directory<S> {
    pub fn new(store: Arc<S>, namespace: &str) -> Directory<S> {
        Directory { store, namespace: namespace.into(), known: RwLock::default() }
    }

    /// Reads all queues, so that each begins with its settings and not with the defaults: also those of other namespaces,
    /// because their tasks run here too.
    pub async fn read_all(&self, now: Timestamp) -> Result<Vec<Queue>, Error> {
        let own = self.key("");
        let (mut queues, mut after) = (Vec::new(), None::<Box<str>>);
        loop {
            let page = self.store.entries(now, ALL_QUEUES, after.as_deref(), QUEUES_PAGE).await?;
            for (key, entry) in &page {
                let queue = read(entry)?;
                match key.strip_prefix(&own) {
                    Some(name) => _ = self.remember(name, queue.clone()),
                    None => self.remember_settings(&queue),
                }
                queues.push(queue);
            }
            match page.last() {
                Some((key, _)) if page.len() == QUEUES_PAGE => after = Some(key.clone()),
                _ => return Ok(queues),
            }
        }
    }

    /// A queue that this process has met.
    pub fn known(&self, name: &str) -> Option<Queue> {
        self.known.read().expect("nothing panics while it is held").by_name.get(name).cloned()
    }

    /// The settings of a queue, by its number.
    pub fn settings(&self, queue: QueueId) -> Option<Arc<QueueSettings>> {
        self.known.read().expect("nothing panics while it is held").settings.get(&queue).cloned()
    }

    /// The queue of that name, if there is one. Nothing is made by looking.
    pub async fn find(&self, now: Timestamp, name: &str) -> Result<Option<Queue>, Error> {
        if let Some(queue) = self.known(name) {
            return Ok(Some(queue));
        }
        punctual_core::check::queue_name(name)?;
        let entry = self.store.get(now, &self.key(name)).await?;
        Ok(entry.as_ref().map(read).transpose()?.map(|queue| self.remember(name, queue)))
    }

    /// The queue of that name; made with the default settings when there is none.
    pub async fn get_or_make(&self, now: Timestamp, name: &str) -> Result<Queue, Error> {
        match self.find(now, name).await? {
            Some(queue) => Ok(queue),
            None => self.write(now, name, QueueSettings::clone).await,
        }
    }

    /// Changes a queue's settings, in the store first.
    pub async fn write(
        &self,
        now: Timestamp,
        name: &str,
        change: impl Fn(&QueueSettings) -> QueueSettings,
    ) -> Result<Queue, Error> {
        punctual_core::check::queue_name(name)?;
        let key = self.key(name);
        loop {
            let entry = self.store.get(now, &key).await?;
            let before = entry.as_ref().map(read).transpose()?;
            let settings = change(before.as_ref().map_or(&QueueSettings::default(), |queue| &queue.settings));
            punctual_core::check::queue(&settings)?;
            let id = match before {
                Some(queue) => {
                    refuse_to_split(&queue.settings, &settings)?;
                    queue.id
                }
                None => self.next_number(now).await?,
            };
            let version = entry.map(|entry| entry.version);
            let value = encode(id, &settings);
            let swap = self.store.compare_and_set(now, &key, version, Some(value), None).await?;
            if let Swap::Done(Some(version)) = swap {
                return Ok(self.remember(name, Queue { id, settings: settings.into(), version }));
            }
        }
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

    fn remember_settings(&self, queue: &Queue) {
        let mut known = self.known.write().expect("nothing panics while it is held");
        known.settings.insert(queue.id, queue.settings.clone());
    }

    /// Keeps the newest of what was heard of a queue, in whatever order it is heard.
    fn remember(&self, name: &str, queue: Queue) -> Queue {
        let mut known = self.known.write().expect("nothing panics while it is held");
        if let Some(newer) = known.by_name.get(name).filter(|known| known.version > queue.version) {
            return newer.clone();
        }
        known.settings.insert(queue.id, queue.settings.clone());
        known.by_name.insert(name.into(), queue.clone());
        queue
    }

    fn key(&self, name: &str) -> String {
        format!("{ALL_QUEUES}{}/{name}", self.namespace)
    }
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
    let (id, settings) = decode(&entry.value).map_err(StoreError::Corrupt)?;
    Ok(Queue { id, settings: settings.into(), version: entry.version })
}

fn number(value: &[u8]) -> Result<u32, Error> {
    let bytes = value
        .try_into()
        .map_err(|_| StoreError::Corrupt(Cause::from("the last queue number is not a number")))?;
    Ok(u32::from_be_bytes(bytes))
}
