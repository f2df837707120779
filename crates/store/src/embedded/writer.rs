//! Group commit: whatever waits is written as one frame, with one sync, and everybody is answered after it.
//!
//! ```text
//!   submit ──▶ bounded channel ──▶ gather what is there ──▶ append ──▶ apply ──▶ answer
//!                                  (never wait for more)
//! ```
//!
//! While one frame is being synced the next group gathers, so groups grow with the load and a lone request waits
//! for nobody. [`GroupCommit`] does the work on whatever thread calls it, which is how the simulator runs it;
//! [`spawn`] gives it a thread of its own.

mod thread;

pub use thread::{NotSubmitted, Submitter, WriterThread, spawn};

use super::disk::Disk;
use super::frame::{Batch, FrameBuffer, HEADER, Records, Sequence};
use super::journal::{AppendError, Class, Journal};

/// What became of a request: the frame it is in, which is durable and applied, or why it is in none.
pub type Outcome = Result<Sequence, AppendError>;

/// Whoever waits for a request. Dropped without a call, the request was never looked at: its writer is gone.
pub trait Completion: Send + 'static {
    /// Called once, on the writer's thread, after the records are durable and applied. It must not block.
    fn complete(self, outcome: Outcome);
}

impl<F: FnOnce(Outcome) + Send + 'static> Completion for F {
    fn complete(self, outcome: Outcome) {
        self(outcome);
    }
}

/// Records to be written together, in one frame.
#[derive(Debug)]
pub struct Request<C> {
    /// The records.
    pub batch: Batch,
    /// Whether they may be written when the disk is full. A batch that asks for anything new is new.
    pub class: Class,
    /// Who waits.
    pub waiting: C,
}

/// How much is written at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupLimits {
    /// Records in a frame. A request with more goes alone.
    pub records_max: u32,
    /// Bytes of a frame. A request with more goes alone.
    pub bytes_max: usize,
    /// Requests that may wait for the thread, before whoever submits must wait.
    pub waiting_max: usize,
}

impl Default for GroupLimits {
    fn default() -> Self {
        GroupLimits { records_max: 4_096, bytes_max: 1 << 20, waiting_max: 8_192 }
    }
}

/// Gathers requests, and writes them as one frame.
pub struct GroupCommit<D: Disk, A, C> {
    journal: Journal<D>,
    /// Called with every frame, in order, when it is durable and before anybody is answered.
    apply: A,
    limits: GroupLimits,
    group: Vec<Request<C>>,
    records: u32,
    bytes: usize,
    frame: FrameBuffer,
}

impl<D, A, C> GroupCommit<D, A, C>
where
    D: Disk,
    A: FnMut(Sequence, Records<'_>),
    C: Completion,
{
    /// Nothing waits yet.
    pub fn new(journal: Journal<D>, limits: GroupLimits, apply: A) -> Self {
        let frame = FrameBuffer::default();
        GroupCommit { journal, apply, limits, group: Vec::new(), records: 0, bytes: HEADER, frame }
    }

    /// Adds a request to the group. What does not fit into it is handed back: commit first. What fits into no
    /// frame at all is answered at once.
    pub fn offer(&mut self, request: Request<C>) -> Result<(), Request<C>> {
        let records = self.records.saturating_add(request.batch.len());
        let bytes = self.bytes + request.batch.bytes().len();
        let frame_bytes_max = self.journal.frame_bytes_max();
        let fits = records <= self.limits.records_max && bytes <= self.limits.bytes_max.min(frame_bytes_max);
        if !fits && !self.group.is_empty() {
            return Err(request);
        }
        if bytes > frame_bytes_max {
            request.waiting.complete(Err(AppendError::TooLarge { bytes, bytes_max: frame_bytes_max }));
            return Ok(());
        }
        (self.records, self.bytes) = (records, bytes);
        self.group.push(request);
        Ok(())
    }

    /// Writes the group, if there is one, and answers everybody in it.
    pub fn commit(&mut self) {
        if self.group.is_empty() {
            return;
        }
        let mut written = self.write();
        if matches!(written, Err(AppendError::Full)) && self.refuse_what_is_new() {
            written = self.write();
        }
        if let Ok(sequence) = written {
            (self.apply)(sequence, self.frame.records());
        }
        self.answer(&written);
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.group.is_empty()
    }

    /// See [`Journal::release_before`].
    pub fn release_before(&mut self, sequence: Sequence) -> usize {
        self.journal.release_before(sequence)
    }

    /// The journal that is written to.
    pub fn journal(&self) -> &Journal<D> {
        &self.journal
    }

    /// The journal, after what waits is written.
    pub fn into_journal(mut self) -> Journal<D> {
        self.commit();
        self.journal
    }

    fn write(&mut self) -> Outcome {
        self.frame.clear();
        let mut class = Class::End;
        for request in &self.group {
            self.frame.push(&request.batch);
            if request.class == Class::New {
                class = Class::New;
            }
        }
        self.journal.append(class, &mut self.frame)
    }

    /// A full disk still takes ends. Says whether there are any left after the others are refused.
    fn refuse_what_is_new(&mut self) -> bool {
        if !self.group.iter().any(|request| request.class == Class::End) {
            return false;
        }
        for request in self.group.extract_if(.., |request| request.class == Class::New) {
            request.waiting.complete(Err(AppendError::Full));
        }
        true
    }

    fn answer(&mut self, written: &Outcome) {
        for request in self.group.drain(..) {
            request.waiting.complete(written.clone());
        }
        (self.records, self.bytes) = (0, HEADER);
    }
}
