//! The hand that writes the journal: a thread of its own, or at once in simulations.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::cold::ColdTier;
use super::disk::Disk;
use super::frame::{FrameBuffer, Sequence};
use super::gauges::JournalGauges;
use super::journal::{AppendError, Class, Journal, Room};
use super::shared::Shared;

/// So many frames are made at once, mostly: what more were needed for a moment give their memory back.
const SPARE_MAX: usize = 2;

/// Memory of frames that were written, to be used again.
type Spare = Arc<Mutex<Vec<FrameBuffer>>>;

/// How the journal is written.
pub struct Hand<D: Disk> {
    means: Means<D>,
    spare: Spare,
}

enum Means<D: Disk> {
    /// By a thread: a sync takes long, and no processor.
    Thread(Writer),
    /// At once.
    Inline(Box<Journal<D>>),
}

/// The frames of two batches are under way at most, and a release now and then: nobody ever waits for room in the channel.
const JOBS_MAX: usize = 64;

/// A thread that owns the journal. It ends with this.
pub struct Writer {
    /// `None` when it is to end.
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// What is done when a frame was written, or could not be: whether or not somebody waits for it.
type Then = Box<dyn FnOnce(&Result<(), AppendError>) + Send>;

/// A frame for the journal.
struct Append {
    class: Class,
    frame: FrameBuffer,
    /// It is written as this one or not at all: if the one before it found no room, it must not come in its place.
    sequence: Sequence,
    then: Then,
    reply: oneshot::Sender<Result<(), AppendError>>,
}

/// What the thread is told.
enum Job {
    MakeRoom(Class, usize, oneshot::Sender<Result<Room, AppendError>>),
    Append(Append),
    Release(Sequence),
}

impl<D: Disk> Hand<D> {
    /// At once.
    pub fn inline(journal: Journal<D>) -> Hand<D> {
        Hand { means: Means::Inline(Box::new(journal)), spare: Spare::default() }
    }

    /// A thread that writes this journal.
    pub fn thread(mut journal: Journal<D>, gauges: Arc<JournalGauges>) -> std::io::Result<Hand<D>>
    where
        Journal<D>: Send,
    {
        journal.prepare_in_background()?;
        gauges.note(journal.usage());
        let (jobs, told) = sync_channel(JOBS_MAX);
        let spare = Spare::default();
        let spares = spare.clone();
        let work = move || {
            while let Ok(job) = told.recv() {
                obey(&mut journal, job, &spares);
                gauges.note(journal.usage());
            }
        };
        let thread = std::thread::Builder::new().name("punctual-journal".into()).spawn(work)?;
        Ok(Hand { means: Means::Thread(Writer { jobs: Some(jobs), thread: Some(thread) }), spare })
    }

    pub async fn make_room(&mut self, class: Class, bytes: usize) -> Result<Room, AppendError> {
        match &mut self.means {
            Means::Inline(journal) => journal.make_room(class, bytes),
            Means::Thread(writer) => {
                let (reply, room) = oneshot::channel();
                writer.tell(Job::MakeRoom(class, bytes, reply));
                room.await.unwrap_or(Err(AppendError::Stopped))
            }
        }
    }

    /// An empty frame.
    pub fn frame(&self) -> FrameBuffer {
        let mut frame = lock(&self.spare).pop().unwrap_or_default();
        frame.clear();
        frame
    }

    /// Writes a frame behind all others. The layers hear of it whether or not somebody waits.
    pub fn append<C: ColdTier>(
        &mut self,
        shared: &Arc<Shared<C>>,
        class: Class,
        frame: FrameBuffer,
        sequence: Sequence,
    ) -> oneshot::Receiver<Result<(), AppendError>> {
        let (reply, written) = oneshot::channel();
        let (shared, bytes) = (shared.clone(), frame.records_bytes());
        let then = Box::new(move |written: &Result<(), AppendError>| match written {
            Ok(()) => shared.written_through(sequence, bytes),
            Err(AppendError::Full) => shared.take_back(sequence),
            Err(error) => shared.fail(&error.to_string()),
        });
        self.tell(Job::Append(Append { class, frame, sequence, then, reply }));
        written
    }

    /// Frames before this one are in the tables.
    pub fn release_before(&mut self, next: Sequence) {
        self.tell(Job::Release(next));
    }

    /// What tells a thread, from anywhere, that frames are in the tables.
    pub fn releaser(&self) -> Option<impl Fn(Sequence) + Send + 'static + use<D>> {
        match &self.means {
            Means::Inline(_) => None,
            Means::Thread(writer) => {
                let jobs = writer.jobs.clone();
                Some(move |next| _ = jobs.as_ref().map(|jobs| jobs.send(Job::Release(next))))
            }
        }
    }

    fn tell(&mut self, job: Job) {
        match &mut self.means {
            Means::Inline(journal) => obey(journal, job, &self.spare),
            Means::Thread(writer) => writer.tell(job),
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
fn obey<D: Disk>(journal: &mut Journal<D>, job: Job, spare: &Spare) {
    match job {
        Job::MakeRoom(class, bytes, reply) => _ = reply.send(journal.make_room(class, bytes)),
        Job::Release(next) => _ = journal.release_before(next),
        Job::Append(Append { class, mut frame, sequence, then, reply }) => {
            let follows = journal.usage().next == sequence;
            let written = if follows { journal.append(class, &mut frame) } else { Err(AppendError::Full) };
            let written = written.map(|_| ());
            keep(spare, frame);
            then(&written);
            reply.send(written).ok();
        }
    }
}

fn keep(spare: &Spare, frame: FrameBuffer) {
    let mut spare = lock(spare);
    if spare.len() < SPARE_MAX {
        spare.push(frame);
    }
}

fn lock(spare: &Spare) -> MutexGuard<'_, Vec<FrameBuffer>> {
    spare.lock().expect("nothing panics while it is held")
}
