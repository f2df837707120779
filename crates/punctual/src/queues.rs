//! Queues, as a program sees them: their settings, whether they are paused, and which there are.

use std::sync::Arc;

use bytes::Bytes;
use punctual_core::{QueueId, QueueSettings, TaskId};
use punctual_store::Store;

use crate::directory::{Changed, Queue};
use crate::door::Entry;
use crate::error::Error;
use crate::scheduler::Scheduler;
use crate::shell::Command;
use crate::view::Filter;

/// A queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueView {
    /// What it is called.
    pub name: Box<str>,
    /// The number that its tasks know it by.
    pub number: u32,
    /// How its tasks are run.
    pub settings: Arc<QueueSettings>,
    /// What whoever delivers its tasks wrote down beside the settings. Never looked into.
    pub extras: Bytes,
    /// Grows with each change.
    pub version: u64,
}

impl<S: Store> Scheduler<S> {
    /// The same scheduler for the queues of another namespace: neither sees the other's tasks.
    pub fn in_namespace(&self, namespace: &str) -> Result<Scheduler<S>, Error> {
        if *namespace == *self.namespace {
            return Ok(self.clone());
        }
        punctual_core::check::namespace(namespace)?;
        Ok(Scheduler { inner: self.inner.clone(), namespace: namespace.into() })
    }

    /// The namespace of its queues.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Changes a queue's settings; makes the queue if there is none. `pinned` and `priority` are decided when it is
    /// made, by this or by the first task: after that another value is refused as `setting_invalid`.
    pub async fn set_queue(&self, name: &str, settings: QueueSettings) -> Result<(), Error> {
        self.change_queue(name, move |_| settings.clone()).await
    }

    /// A queue's settings; the defaults for a queue that does not exist yet.
    pub async fn queue(&self, name: &str) -> Result<QueueSettings, Error> {
        let queue = self.queue_if_there(name).await?;
        Ok(queue.map_or_else(QueueSettings::default, |queue| queue.settings.as_ref().clone()))
    }

    /// Starts nothing of this queue until it is resumed. What runs goes on.
    pub async fn pause(&self, queue: &str) -> Result<(), Error> {
        self.change_queue(queue, |settings| QueueSettings { paused: true, ..settings.clone() }).await
    }

    /// Goes on with a queue that was paused.
    pub async fn resume(&self, queue: &str) -> Result<(), Error> {
        self.change_queue(queue, |settings| QueueSettings { paused: false, ..settings.clone() }).await
    }

    /// The queue of that name, if there is one.
    pub async fn find_queue(&self, name: &str) -> Result<Option<QueueView>, Error> {
        Ok(self.queue_if_there(name).await?.map(|queue| view(name, queue)))
    }

    /// All queues of this namespace, in order of their names.
    pub async fn queues(&self) -> Result<Vec<QueueView>, Error> {
        let queues = self.inner.directory.list(self.now(), &self.namespace).await?;
        Ok(queues.into_iter().map(|(name, queue)| view(&name, queue)).collect())
    }

    /// What the queue of a task is called; `None` if it is of another namespace.
    pub fn queue_of(&self, id: TaskId) -> Option<Arc<str>> {
        let name = self.inner.directory.name(id.queue)?;
        (name.namespace == self.namespace).then_some(name.name)
    }

    /// A queue's namespace and name, by its number, whatever its namespace.
    pub fn place_of(&self, queue: QueueId) -> Option<(Arc<str>, Arc<str>)> {
        self.inner.directory.name(queue).map(|called| (called.namespace, called.name))
    }

    /// The scheduler of a queue's namespace, by the queue's number: for whoever does something because of its tasks.
    pub fn in_namespace_of(&self, queue: QueueId) -> Option<Scheduler<S>> {
        let namespace = self.inner.directory.name(queue)?.namespace;
        Some(Scheduler { inner: self.inner.clone(), namespace })
    }

    /// A queue's name and extras, by its number, whatever its namespace: for whoever delivers tasks.
    pub fn delivery_of(&self, queue: QueueId) -> Option<(Arc<str>, Bytes)> {
        let name = self.inner.directory.name(queue)?.name;
        Some((name, self.inner.directory.numbered(queue)?.extras))
    }

    /// Makes of a queue what `change` makes of its settings and extras, or of the defaults if there is none; but only if its
    /// version is one that `is_expected`. (It has none if it is not there.)
    pub async fn write_queue(
        &self,
        name: &str,
        is_expected: impl Fn(Option<u64>) -> bool,
        change: impl Fn(&QueueSettings, &Bytes) -> Result<(QueueSettings, Bytes), Error>,
    ) -> Result<QueueView, Error> {
        self.refuse_when_stopping()?;
        let change = |before: Option<&Queue>| {
            if !is_expected(before.map(|queue| queue.version)) {
                return Err(Error::QueueChanged);
            }
            match before {
                Some(queue) => change(&queue.settings, &queue.extras),
                None => change(&QueueSettings::default(), &Bytes::new()),
            }
        };
        Ok(view(name, self.write(name, change).await?))
    }

    /// Forgets a queue in which nothing waits, if its version `is_expected`, and what ended in it. A task that comes for it
    /// later makes it anew.
    pub async fn remove_queue(&self, name: &str, is_expected: impl Fn(u64) -> bool) -> Result<(), Error> {
        let queue = self.queue_if_there(name).await?.ok_or(Error::QueueNotFound)?;
        if !is_expected(queue.version) {
            return Err(Error::QueueChanged);
        }
        let (scheduler, name) = (self.clone(), Box::<str>::from(name));
        // Whoever asks may go away half-way, and the queue would be neither there nor gone.
        let removal = tokio::spawn(async move { scheduler.remove_if_empty(&name, &queue).await });
        removal.await.unwrap_or(Err(Error::Unknown))
    }

    async fn remove_if_empty(&self, name: &str, queue: &Queue) -> Result<(), Error> {
        let directory = &self.inner.directory;
        let _alone = directory.one_removal_at_a_time().await;
        // Somebody else may have removed it meanwhile.
        directory
            .met(&self.namespace, name)
            .filter(|there| there.id == queue.id)
            .ok_or(Error::QueueNotFound)?;
        let door_shut = queue.door.shut().ok_or(Error::QueueNotEmpty)?;
        let waiting = self.list(&Filter::live().queue(name), None, 1).await?;
        if !waiting.tasks.is_empty() || waiting.next.is_some() {
            return Err(Error::QueueNotEmpty);
        }
        let removed = directory.remove(self.now(), &self.namespace, name, queue).await;
        // If the store did not answer and has it still, it is met anew, with another door.
        if !matches!(removed, Err(Error::QueueChanged)) {
            door_shut.for_good();
        }
        removed?;
        self.tell(Command::QueueRemoved(queue.id)).await
    }

    async fn change_queue(
        &self,
        name: &str,
        change: impl Fn(&QueueSettings) -> QueueSettings,
    ) -> Result<(), Error> {
        self.write_queue(name, |_| true, |settings, extras| Ok((change(settings), extras.clone()))).await?;
        Ok(())
    }

    /// The queue of that name. Looking makes none.
    pub(crate) async fn queue_if_there(&self, name: &str) -> Result<Option<Queue>, Error> {
        if let Some(queue) = self.inner.directory.met(&self.namespace, name) {
            return Ok(Some(queue));
        }
        // Boxed, because it is seldom: whoever asks for a queue that was met would carry the room for it.
        Box::pin(self.read_queue(name)).await
    }

    async fn read_queue(&self, name: &str) -> Result<Option<Queue>, Error> {
        let queue = self.inner.directory.find(self.now(), &self.namespace, name).await?;
        if let Some(queue) = &queue {
            self.tell_of_queue(queue).await?;
        }
        Ok(queue)
    }

    /// The queue of that name; made with the default settings when there is none.
    pub(crate) async fn make_queue(&self, name: &str) -> Result<Queue, Error> {
        let _alone = self.inner.directory.one_at_a_time().await;
        if let Some(queue) = self.inner.directory.met(&self.namespace, name) {
            return Ok(queue);
        }
        self.write(name, |before| {
            Ok(before.map_or_else(Changed::default, |queue| {
                (queue.settings.as_ref().clone(), queue.extras.clone())
            }))
        })
        .await
    }

    async fn write(
        &self,
        name: &str,
        change: impl Fn(Option<&Queue>) -> Result<Changed, Error>,
    ) -> Result<Queue, Error> {
        let queue = self.inner.directory.write(self.now(), &self.namespace, name, change).await?;
        self.tell_of_queue(&queue).await?;
        Ok(queue)
    }

    async fn tell_of_queue(&self, queue: &Queue) -> Result<(), Error> {
        let settings = Box::new(queue.settings.as_ref().clone());
        self.tell(Command::SetQueue(queue.id, queue.version, settings)).await
    }

    /// The way back into the queue of a task that has ended. What ended in a queue is forgotten with it.
    pub(crate) async fn enter_again(&self, id: TaskId) -> Result<Entry, Error> {
        let directory = &self.inner.directory;
        loop {
            let queue = directory.is_there(self.now(), id.queue).await?.ok_or(Error::NotFound)?;
            if let Some(entry) = queue.door.enter() {
                return Ok(entry);
            }
            drop(directory.one_removal_at_a_time().await);
        }
    }

    /// Whether a queue is of this namespace. One that this process has not met is nobody's yet.
    pub(crate) fn is_ours(&self, queue: QueueId) -> bool {
        match self.inner.directory.name(queue) {
            Some(name) => name.namespace == self.namespace,
            None => !self.inner.directory.is_gone(queue),
        }
    }
}

fn view(name: &str, queue: Queue) -> QueueView {
    let number = queue.id.0;
    QueueView {
        name: name.into(),
        number,
        settings: queue.settings,
        extras: queue.extras,
        version: queue.version,
    }
}
