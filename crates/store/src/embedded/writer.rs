//! Who writes the journal: a thread of its own, or whoever has a frame, where that is quicker.
//!
//! To tell a thread and to be told takes two wakes. For a small frame a quick disk takes hardly longer than that, so one
//! that nothing lies before is written by whoever made it: as long as the disk is quick, and others can go on meanwhile.
//! Decision record: `docs/decisions/0025-small-frames-are-written-at-once.md`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::disk::Disk;
use super::frame::{FrameBuffer, Sequence};
use super::gauges::JournalGauges;
use super::hand::{Spare, keep};
use super::journal::{AppendError, Class, Journal, Room};

/// Small frames are no longer than this: a disk takes about as long for each of them.
const SMALL_BYTES: usize = 16 * 1024;
/// A disk is quick that takes no longer for a small frame, on average.
const QUICK: Duration = Duration::from_micros(250);
/// The frames of two batches are under way at most, and a release now and then: nobody ever waits for room in the channel.
const JOBS_MAX: usize = 64;

/// A journal, and a thread that writes it. It ends with this.
pub struct Writer<D: Disk> {
    desk: Arc<Mutex<Desk<D>>>,
    /// `None` when the thread is to end.
    jobs: Option<Jobs>,
    thread: Option<JoinHandle<()>>,
}

/// What is done when a frame was written, or could not be: whether or not somebody waits for it.
type Then = Box<dyn FnOnce(&Result<(), AppendError>) + Send>;

/// A frame for the journal.
pub struct Append {
    pub class: Class,
    pub frame: FrameBuffer,
    /// It is written as this one or not at all: if the one before it found no room, it must not come in its place.
    pub sequence: Sequence,
    pub then: Then,
    pub reply: oneshot::Sender<Result<(), AppendError>>,
}

/// What is to be done with a journal.
pub enum Job {
    MakeRoom(Class, usize, oneshot::Sender<Result<Room, AppendError>>),
    Append(Append),
    Release(Sequence),
}

/// The answer to a job. Whoever asked may have gone: then nobody is told.
#[must_use]
pub enum Reply {
    Room(oneshot::Sender<Result<Room, AppendError>>, Result<Room, AppendError>),
    Written(oneshot::Sender<Result<(), AppendError>>, Result<(), AppendError>),
    Nothing,
}

/// Where a journal is written, by one at a time.
pub struct Desk<D: Disk> {
    journal: Journal<D>,
    gauges: Arc<JournalGauges>,
    spare: Spare,
    pace: Pace,
}

/// How long small frames have taken of late. It begins as that of a disk that is not quick.
struct Pace(Duration);

/// The way to the thread. Clones are the same.
#[derive(Clone)]
struct Jobs {
    sender: SyncSender<Job>,
    /// How many the thread has not done yet.
    waiting: Arc<AtomicUsize>,
}

impl<D: Disk> Writer<D> {
    /// Has a thread write what comes to this desk.
    pub fn start(desk: Desk<D>) -> std::io::Result<Writer<D>>
    where
        Journal<D>: Send,
    {
        let (sender, told) = sync_channel::<Job>(JOBS_MAX);
        let jobs = Jobs { sender, waiting: Arc::default() };
        let desk = Arc::new(Mutex::new(desk));
        let (at, waiting) = (desk.clone(), jobs.waiting.clone());
        let work = move || {
            while let Ok(job) = told.recv() {
                // Somebody died at the desk: what is in the journal now, the next start finds out.
                let Ok(mut desk) = at.lock() else { return };
                let reply = desk.obey(job);
                drop(desk);
                waiting.fetch_sub(1, Ordering::Release);
                reply.send();
            }
        };
        let thread = std::thread::Builder::new().name("punctual-journal".into()).spawn(work)?;
        Ok(Writer { desk, jobs: Some(jobs), thread: Some(thread) })
    }

    /// Writes a frame behind all others: here and now if that is quicker, else by the thread.
    pub fn append(&self, append: Append) {
        let is_next = self.jobs.as_ref().is_some_and(|jobs| jobs.waiting.load(Ordering::Acquire) == 0);
        if is_next
            && append.frame.frame_bytes() <= SMALL_BYTES
            && others_go_on()
            && let Ok(mut desk) = self.desk.try_lock()
            && desk.pace.is_quick()
        {
            let reply = desk.obey(Job::Append(append));
            drop(desk);
            return reply.send();
        }
        self.tell(Job::Append(append));
    }

    /// Has the thread do something. One that has ended drops it, and with it the way to answer.
    pub fn tell(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            jobs.tell(job);
        }
    }

    /// What tells the thread, from anywhere, that frames are in the tables.
    pub fn releaser(&self) -> impl Fn(Sequence) + Send + 'static + use<D> {
        let jobs = self.jobs.clone();
        move |next| jobs.iter().for_each(|jobs| jobs.tell(Job::Release(next)))
    }
}

impl Jobs {
    fn tell(&self, job: Job) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.sender.send(job).ok();
    }
}

impl<D: Disk> Drop for Writer<D> {
    /// Whoever opens the folder next finds it closed.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Whether other threads do what there is to do while this one waits for the disk.
fn others_go_on() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.metrics().num_workers() > 1)
}

impl<D: Disk> Desk<D> {
    pub fn new(journal: Journal<D>, gauges: Arc<JournalGauges>, spare: Spare) -> Desk<D> {
        gauges.note(journal.usage());
        Desk { journal, gauges, spare, pace: Pace(2 * QUICK) }
    }

    /// Does something, and says what is to be answered once the desk is free.
    pub fn obey(&mut self, job: Job) -> Reply {
        let reply = match job {
            Job::MakeRoom(class, bytes, reply) => Reply::Room(reply, self.journal.make_room(class, bytes)),
            Job::Append(append) => self.append(append),
            Job::Release(next) => {
                self.journal.release_before(next);
                Reply::Nothing
            }
        };
        self.gauges.note(self.journal.usage());
        reply
    }

    fn append(&mut self, Append { class, mut frame, sequence, then, reply }: Append) -> Reply {
        let follows = self.journal.usage().next == sequence;
        let is_small = frame.frame_bytes() <= SMALL_BYTES;
        let begun = now();
        let written = if follows { self.journal.append(class, &mut frame) } else { Err(AppendError::Full) };
        if is_small {
            self.pace.note(now() - begun);
        }
        let written = written.map(|_| ());
        keep(&self.spare, frame);
        then(&written);
        Reply::Written(reply, written)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long the disk takes decides who waits for it, and nothing else"
)]
fn now() -> Instant {
    Instant::now()
}

impl Pace {
    fn is_quick(&self) -> bool {
        self.0 <= QUICK
    }

    /// One that took a hundred times as long makes it slow for the next dozens.
    fn note(&mut self, took: Duration) {
        self.0 = (7 * self.0 + took) / 8;
    }
}

impl Reply {
    pub fn send(self) {
        match self {
            Reply::Room(reply, room) => _ = reply.send(room),
            Reply::Written(reply, written) => _ = reply.send(written),
            Reply::Nothing => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::thread::ThreadId;

    use super::*;
    use crate::embedded::disk::SimulatedDisk;
    use crate::embedded::frame::Batch;
    use crate::embedded::journal::Options;

    const OPTIONS: Options = Options {
        segment_bytes: 8 << 20,
        reserved_segments: 1,
        spare_segments_max: 2,
        keep_free_bytes: 0,
        identity: crate::embedded::frame::Identity(7),
    };

    /// A writer on a disk that is quick, and who wrote each frame.
    struct World {
        writer: Writer<SimulatedDisk>,
        next: Sequence,
        wrote: Receiver<ThreadId>,
        tell: std::sync::mpsc::Sender<ThreadId>,
    }

    impl World {
        #[expect(clippy::disallowed_methods, reason = "what is told is bounded by what the test writes")]
        fn new() -> World {
            let (journal, _) =
                Journal::open(SimulatedDisk::new(1), OPTIONS, Sequence(0), |_, _| Ok(())).unwrap();
            let gauges = Arc::new(JournalGauges::new(&OPTIONS));
            let writer = Writer::start(Desk::new(journal, gauges, Spare::default())).unwrap();
            let (tell, wrote) = channel();
            World { writer, next: Sequence(0), wrote, tell }
        }

        fn append(&mut self, bytes: usize) -> oneshot::Receiver<Result<(), AppendError>> {
            let mut frame = FrameBuffer::default();
            frame.push(&Batch::of(&vec![7; bytes]));
            let (reply, written) = oneshot::channel();
            let tell = self.tell.clone();
            let then = Box::new(move |_: &Result<(), AppendError>| {
                tell.send(std::thread::current().id()).unwrap();
            });
            let sequence = self.next;
            self.next = sequence.next();
            self.writer.append(Append { class: Class::New, frame, sequence, then, reply });
            written
        }

        /// Writes a frame, and says whether this thread did it.
        async fn writes_here(&mut self, bytes: usize) -> bool {
            self.append(bytes).await.unwrap().unwrap();
            self.wrote.recv().unwrap() == std::thread::current().id()
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn small_frames_are_written_by_whoever_made_them_once_the_disk_is_known_to_be_quick() {
        let mut world = World::new();
        assert!(!world.writes_here(100).await, "nobody knows yet how quick it is");
        let mut tries = 0;
        while !world.writes_here(100).await {
            tries += 1;
            assert!(tries < 1_000, "a disk in memory is quick");
        }
        assert!(!world.writes_here(SMALL_BYTES).await, "with its head it is larger than small");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn where_nobody_else_can_go_on_the_thread_writes() {
        let mut world = World::new();
        for _ in 0..100 {
            assert!(!world.writes_here(100).await);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn frames_follow_each_other_whoever_writes_them() {
        let mut world = World::new();
        for round in 0..50 {
            let sizes = [100, 100, 2 * SMALL_BYTES, 100, 200, 2 * SMALL_BYTES, 300];
            let written: Vec<_> = sizes.map(|bytes| world.append(bytes)).into();
            for written in written {
                // One that came before its turn would have found the journal at another sequence.
                written.await.unwrap().unwrap_or_else(|error| panic!("round {round}: {error}"));
            }
        }
    }

    #[test]
    fn one_slow_frame_makes_a_disk_slow_for_a_while() {
        let mut pace = Pace(2 * QUICK);
        let quick = |pace: &mut Pace| {
            (1..100).find(|_| {
                pace.note(QUICK / 3);
                pace.is_quick()
            })
        };
        assert_eq!(quick(&mut pace), Some(7));
        pace.note(100 * QUICK);
        assert!(!pace.is_quick());
        assert_eq!(quick(&mut pace), Some(23));
        for _ in 0..20 {
            pace.note(2 * QUICK);
        }
        assert!(!pace.is_quick());
    }
}
