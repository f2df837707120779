//! The hand that writes the journal: at once in simulations, or by a writer.

use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

use super::cold::ColdTier;
use super::disk::Disk;
use super::frame::{FrameBuffer, Sequence};
use super::gauges::JournalGauges;
use super::journal::{AppendError, Class, Journal, Room};
use super::shared::Shared;
use super::writer::{Append, Desk, Job, Writer};

/// So many frames are made at once, mostly: what more were needed for a moment give their memory back.
const SPARE_MAX: usize = 2;

/// Memory of frames that were written, to be used again.
pub type Spare = Arc<Mutex<Vec<FrameBuffer>>>;

/// How the journal is written.
pub struct Hand<D: Disk> {
    means: Means<D>,
    spare: Spare,
}

enum Means<D: Disk> {
    /// By a thread, or by whoever asks: a sync takes long, and no processor.
    Writer(Writer<D>),
    /// At once.
    Inline(Box<Desk<D>>),
}

impl<D: Disk> Hand<D> {
    /// At once.
    pub fn inline(journal: Journal<D>, gauges: Arc<JournalGauges>) -> Hand<D> {
        let spare = Spare::default();
        let desk = Desk::new(journal, gauges, spare.clone());
        Hand { means: Means::Inline(Box::new(desk)), spare }
    }

    /// A thread that writes this journal, where whoever asks does not.
    pub fn writer(mut journal: Journal<D>, gauges: Arc<JournalGauges>) -> std::io::Result<Hand<D>>
    where
        Journal<D>: Send,
    {
        journal.prepare_in_background()?;
        let spare = Spare::default();
        let writer = Writer::start(Desk::new(journal, gauges, spare.clone()))?;
        Ok(Hand { means: Means::Writer(writer), spare })
    }

    pub async fn make_room(&mut self, class: Class, bytes: usize) -> Result<Room, AppendError> {
        let (reply, room) = oneshot::channel();
        self.tell(Job::MakeRoom(class, bytes, reply));
        room.await.unwrap_or(Err(AppendError::Stopped))
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
        let append = Append { class, frame, sequence, then, reply };
        match &mut self.means {
            Means::Inline(desk) => desk.obey(Job::Append(append)).send(),
            Means::Writer(writer) => writer.append(append),
        }
        written
    }

    /// Frames before this one are in the tables.
    pub fn release_before(&mut self, next: Sequence) {
        self.tell(Job::Release(next));
    }

    /// What tells the writer, from anywhere, that frames are in the tables.
    pub fn releaser(&self) -> Option<impl Fn(Sequence) + Send + 'static + use<D>> {
        match &self.means {
            Means::Inline(_) => None,
            Means::Writer(writer) => Some(writer.releaser()),
        }
    }

    fn tell(&mut self, job: Job) {
        match &mut self.means {
            Means::Inline(desk) => desk.obey(job).send(),
            Means::Writer(writer) => writer.tell(job),
        }
    }
}

/// Keeps the memory of a frame that was written.
pub fn keep(spare: &Spare, frame: FrameBuffer) {
    let mut spare = lock(spare);
    if spare.len() < SPARE_MAX {
        spare.push(frame);
    }
}

fn lock(spare: &Spare) -> MutexGuard<'_, Vec<FrameBuffer>> {
    spare.lock().expect("nothing panics while it is held")
}
