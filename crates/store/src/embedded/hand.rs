//! The hand that writes the journal: a thread of its own, or at once in simulations.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::cold::ColdTier;
use super::disk::Disk;
use super::frame::{FrameBuffer, Sequence};
use super::gauges::JournalGauges;
use super::journal::{AppendError, Class, Journal, Room};
use super::shared::Shared;

/// How the journal is written.
pub enum Hand<D: Disk> {
    /// By a thread: a sync takes long, and no processor.
    Thread(Writer),
    /// At once.
    Inline(Box<Journal<D>>),
}

/// One frame is under way at a time, and a release now and then: nobody ever waits for room in the channel.
const JOBS_MAX: usize = 16;

/// A thread that owns the journal. It ends with this.
pub struct Writer {
    /// `None` when it is to end.
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// A frame was written, or not. Its memory comes back to be used again.
pub struct Written {
    pub frame: FrameBuffer,
    pub result: Result<Room, AppendError>,
}

/// What the thread is told.
enum Job {
    MakeRoom(Class, usize, oneshot::Sender<Result<Room, AppendError>>),
    Append(Class, FrameBuffer, Box<dyn FnOnce() + Send>, oneshot::Sender<Written>),
    Release(Sequence),
}

impl<D: Disk> Hand<D> {
    /// A thread that writes this journal.
    pub fn thread(mut journal: Journal<D>, gauges: Arc<JournalGauges>) -> std::io::Result<Hand<D>>
    where
        Journal<D>: Send,
    {
        journal.prepare_in_background()?;
        gauges.note(journal.usage());
        let (jobs, told) = sync_channel(JOBS_MAX);
        let work = move || {
            while let Ok(job) = told.recv() {
                obey(&mut journal, job);
                gauges.note(journal.usage());
            }
        };
        let thread = std::thread::Builder::new().name("punctual-journal".into()).spawn(work)?;
        Ok(Hand::Thread(Writer { jobs: Some(jobs), thread: Some(thread) }))
    }

    pub async fn make_room(&mut self, class: Class, bytes: usize) -> Result<Room, AppendError> {
        match self {
            Hand::Inline(journal) => journal.make_room(class, bytes),
            Hand::Thread(writer) => {
                let (reply, room) = oneshot::channel();
                writer.tell(Job::MakeRoom(class, bytes, reply));
                room.await.unwrap_or(Err(AppendError::Stopped))
            }
        }
    }

    /// Writes a frame. When it is durable, everything before `next` is.
    pub fn append<C: ColdTier>(
        &mut self,
        shared: &Arc<Shared<C>>,
        class: Class,
        frame: FrameBuffer,
        next: Sequence,
    ) -> oneshot::Receiver<Written> {
        let (reply, written) = oneshot::channel();
        let shared = shared.clone();
        let durable = Box::new(move || shared.durable(next));
        self.tell(Job::Append(class, frame, durable, reply));
        written
    }

    /// Frames before this one are in the tables.
    pub fn release_before(&mut self, next: Sequence) {
        self.tell(Job::Release(next));
    }

    /// What tells a thread, from anywhere, that frames are in the tables.
    pub fn releaser(&self) -> Option<impl Fn(Sequence) + Send + 'static + use<D>> {
        match self {
            Hand::Inline(_) => None,
            Hand::Thread(writer) => {
                let jobs = writer.jobs.clone();
                Some(move |next| _ = jobs.as_ref().map(|jobs| jobs.send(Job::Release(next))))
            }
        }
    }

    fn tell(&mut self, job: Job) {
        match self {
            Hand::Inline(journal) => obey(journal, job),
            Hand::Thread(writer) => writer.tell(job),
        }
    }
}

impl Writer {
    /// A thread that has ended drops the job, and with it the way to answer.
    fn tell(&self, job: Job) {
        self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok());
    }
}

impl Drop for Writer {
    /// Whoever opens the folder next finds it closed.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Whoever asked may have gone: then nobody is told.
fn obey<D: Disk>(journal: &mut Journal<D>, job: Job) {
    match job {
        Job::MakeRoom(class, bytes, reply) => _ = reply.send(journal.make_room(class, bytes)),
        Job::Release(next) => _ = journal.release_before(next),
        Job::Append(class, mut frame, durable, reply) => {
            let result = journal.append(class, &mut frame).map(|_| journal.room());
            if result.is_ok() {
                durable();
            }
            reply.send(Written { frame, result }).ok();
        }
    }
}
