//! What a scheduler is made with. Everything has a sensible default.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use punctual_core::{BootTime, Limits, Obstacle, Refusal, Settings};
use punctual_store::{Ownership, Store, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::Clock;
use crate::directory::Directory;
use crate::error::Error;
use crate::executor::{Executor, Executors};
use crate::handlers::{Failure, Handlers, Job};
use crate::observer::{Observer, Unobserved};
use crate::scheduler::{Inner, Scheduler};
use crate::shell::{Command, Parts, Shell};

/// What a scheduler is made with.
pub struct Builder {
    handlers: Handlers,
    limits: Limits,
    clock: Clock,
    observer: Arc<dyn Observer>,
    calls: Option<Arc<dyn Executor>>,
    name: Box<str>,
    namespace: Box<str>,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            handlers: Handlers::default(),
            limits: Limits::default(),
            clock: Clock::system(),
            observer: Arc::new(Unobserved),
            calls: None,
            name: own_name(),
            namespace: "default".into(),
        }
    }
}

/// A name that no other process has: whoever finds it in the store as an owner's can tell whether it was itself.
fn own_name() -> Box<str> {
    let (now, _) = Clock::system().read();
    format!("solo-{}-{}", std::process::id(), now.wall.as_micros()).into()
}

impl Builder {
    /// Registers a handler: an async function from a [`Job`] to its result, both whatever serde can read and write.
    pub fn handler<P, R, F, Fut>(self, name: &str, handler: F) -> Builder
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize,
        F: Fn(Job<P>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        self.handlers.register(name, handler);
        self
    }

    /// Bounds of memory, concurrency and input.
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = limits;
        self
    }

    /// Another clock than the machine's own.
    pub fn clock(mut self, clock: Clock) -> Builder {
        self.clock = clock;
        self
    }

    /// Somebody who wants to know what happens.
    pub fn observer(mut self, observer: impl Observer) -> Builder {
        self.observer = Arc::new(observer);
        self
    }

    /// Who makes the calls: runs tasks whose target is a destination. Without it they wait, as for a missing handler.
    pub fn calls(mut self, calls: impl Executor) -> Builder {
        self.calls = Some(Arc::new(calls));
        self
    }

    /// This node's name in the store: who owns its partitions.
    pub fn name(mut self, name: &str) -> Builder {
        self.name = name.into();
        self
    }

    /// The namespace of the queues that this scheduler names: one of the same name in another namespace is another
    /// queue. `default` if nothing is said; 1 to 100 letters, digits, `_`, `-` and `.`. The scheduler runs all tasks of its
    /// store, whatever their namespace, but finds, lists and changes only those of its own.
    pub fn namespace(mut self, namespace: &str) -> Builder {
        self.namespace = namespace.into();
        self
    }

    /// Begins. Returns when the scheduler owns every partition of the store. Another scheduler that was at work on
    /// the store is pushed aside: what it tries to record from now on is refused.
    ///
    /// # Panics
    ///
    /// In a tokio runtime without its clock or its I/O: build it with `enable_all`, as `#[tokio::main]` does.
    pub async fn start<S: Store>(self, store: S) -> Result<Scheduler<S>, Error> {
        self.start_shared(Arc::new(store)).await
    }

    /// The same, on a store that others use too: its map, not its tasks.
    pub async fn start_shared<S: Store>(self, store: Arc<S>) -> Result<Scheduler<S>, Error> {
        punctual_core::check::limits(&self.limits)?;
        self.check_names()?;
        let meta = store.meta().await?;
        let directory = Directory::new(store.clone());
        let now = self.clock.now();
        let settings = self.settings(&directory, now.wall).await?;
        let parts = Parts {
            store: store.clone(),
            executor: Arc::new(Executors { handlers: self.handlers.clone(), calls: self.calls }),
            observer: self.observer,
            clock: self.clock.clone(),
            settings,
            name: self.name,
            inline: false,
            forward_to: None,
        };
        let present = store.ownerships().await?;
        refuse_spoiled(&*store, &present).await?;
        let (shell, commands) = Shell::new(parts).await?;
        let running = tokio::spawn(shell.run());
        let scheduler = Inner {
            store,
            directory,
            handlers: self.handlers,
            commands: commands.clone(),
            clock: self.clock,
            limits: self.limits,
            partitions: meta.partitions,
            asked_kib: tokio::sync::Semaphore::new(crate::request::ASKED_KIB_MAX as usize),
            random: AtomicU64::new(now.wall.as_micros() as u64),
            stopping: AtomicBool::new(false),
            running: std::sync::Mutex::new(Some(running)),
        };
        own_everything(&commands, &present).await?;
        Ok(Scheduler { inner: Arc::new(scheduler), namespace: self.namespace.into() })
    }

    fn check_names(&self) -> Result<(), Refusal> {
        check_name("the scheduler's name", &self.name)?;
        punctual_core::check::namespace(&self.namespace)?;
        self.handlers.receivers().iter().try_for_each(|name| check_name("the handler's name", name))
    }

    async fn settings<S: Store>(
        &self,
        directory: &Directory<S>,
        now: punctual_core::Timestamp,
    ) -> Result<Settings, Error> {
        let receivers = self.handlers.receivers().iter().map(|name| Obstacle::handler(name)).collect();
        let mut settings =
            Settings { limits: self.limits.clone(), receivers, nodes: 1, ..Settings::default() };
        for queue in directory.read_all(now).await? {
            settings.queues.set(queue.id, queue.settings.as_ref().clone());
        }
        Ok(settings)
    }
}

pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), Refusal> {
    match name.len() {
        0 => Err(Refusal::Empty(what)),
        bytes if bytes > Limits::KEY_MAX => Err(Refusal::TooLong { what, bytes, max: Limits::KEY_MAX }),
        _ => Ok(()),
    }
}

/// What a new owner reads first. It would try again and again; but what is spoiled will not be whole the next time.
async fn refuse_spoiled<S: Store>(store: &S, present: &[Ownership]) -> Result<(), Error> {
    for Ownership { partition, .. } in present {
        let standing = store.standing(*partition).await.map(drop);
        let read = standing.and(store.held(*partition, None, 1).await.map(drop));
        if let Err(spoiled @ StoreError::Corrupt(_)) = read {
            return Err(spoiled.into());
        }
    }
    Ok(())
}

/// Alone, a node owns every partition for as long as it runs: the store lets nobody else in.
async fn own_everything(
    commands: &tokio::sync::mpsc::Sender<Command>,
    present: &[Ownership],
) -> Result<(), Error> {
    let send = |command| async { commands.send(command).await.map_err(|_| Error::Stopped) };
    send(Command::TrustUntil(BootTime::from_micros(u64::MAX))).await?;
    send(Command::Claim(present.iter().map(Ownership::fence).collect())).await?;
    let (reply, settled) = tokio::sync::oneshot::channel();
    send(Command::AwaitOwned(reply)).await?;
    settled.await.map_err(|_| Error::Stopped)?;
    let (reply, owned) = tokio::sync::oneshot::channel();
    send(Command::Owned(reply)).await?;
    let owned = owned.await.map_err(|_| Error::Stopped)?;
    // Another scheduler started on the same store at the same time.
    if owned == present.len() { Ok(()) } else { Err(Error::NotOwner) }
}
