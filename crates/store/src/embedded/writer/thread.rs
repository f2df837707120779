//! The thread that owns the journal, and the channel to it.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use super::{Completion, GroupCommit, GroupLimits, Request};
use crate::embedded::disk::Disk;
use crate::embedded::frame::{Records, Sequence};
use crate::embedded::journal::{AppendError, Journal};

enum Message<C> {
    Write(Request<C>),
    Release(Sequence),
    Stop,
}

/// Starts a writer on a thread of its own. `apply` is called there with each frame, see [`GroupCommit`].
pub fn spawn<D, A, C>(
    journal: Journal<D>,
    limits: GroupLimits,
    apply: A,
) -> io::Result<(Submitter<C>, WriterThread<D, C>)>
where
    D: Disk,
    A: FnMut(Sequence, Records<'_>) + Send + 'static,
    C: Completion,
{
    let (sender, inbox) = sync_channel(limits.waiting_max);
    let thread = std::thread::Builder::new().name("punctual-journal".into());
    let thread = thread.spawn(move || run(GroupCommit::new(journal, limits, apply), &inbox))?;
    Ok((Submitter { sender: sender.clone() }, WriterThread { sender, thread }))
}

/// Hands requests to the writer. Clones share it.
pub struct Submitter<C> {
    sender: SyncSender<Message<C>>,
}

impl<C> Clone for Submitter<C> {
    fn clone(&self) -> Self {
        Submitter { sender: self.sender.clone() }
    }
}

/// Why a request was not taken. It is handed back.
#[derive(Debug)]
pub enum NotSubmitted<C> {
    /// Too many wait already. Try again when one of them is answered.
    Busy(Request<C>),
    /// The writer has been stopped.
    Stopped(Request<C>),
}

impl<C: Completion> Submitter<C> {
    /// Hands a request over, and waits while too many do.
    pub fn submit(&self, request: Request<C>) -> Result<(), NotSubmitted<C>> {
        let sent = self.sender.send(Message::Write(request));
        sent.map_err(|unsent| NotSubmitted::Stopped(unsent.0.into_request()))
    }

    /// Hands a request over without waiting.
    pub fn try_submit(&self, request: Request<C>) -> Result<(), NotSubmitted<C>> {
        self.sender.try_send(Message::Write(request)).map_err(|unsent| match unsent {
            TrySendError::Full(message) => NotSubmitted::Busy(message.into_request()),
            TrySendError::Disconnected(message) => NotSubmitted::Stopped(message.into_request()),
        })
    }

    /// Has [`Journal::release_before`] called by the writer.
    pub fn release_before(&self, sequence: Sequence) {
        // A writer that has been stopped releases nothing, and nobody needs it.
        let _ = self.sender.send(Message::Release(sequence));
    }
}

impl<C> Message<C> {
    fn into_request(self) -> Request<C> {
        match self {
            Message::Write(request) => request,
            Message::Release(_) | Message::Stop => unreachable!("only requests are handed back"),
        }
    }
}

/// The thread of a writer.
pub struct WriterThread<D: Disk, C> {
    sender: SyncSender<Message<C>>,
    thread: JoinHandle<Journal<D>>,
}

impl<D: Disk, C> WriterThread<D, C> {
    /// Has everything written that was submitted before, ends the thread and hands back the journal. A panic of
    /// `apply` or of a completion goes on here.
    pub fn stop(self) -> Journal<D> {
        // A thread that is gone already cannot be told.
        let _ = self.sender.send(Message::Stop);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn run<D, A, C>(mut group: GroupCommit<D, A, C>, inbox: &Receiver<Message<C>>) -> Journal<D>
where
    D: Disk,
    A: FnMut(Sequence, Records<'_>),
    C: Completion,
{
    let mut go_on = true;
    while go_on {
        let Ok(first) = inbox.recv() else { break };
        go_on = take(&mut group, first);
        while go_on && let Ok(next) = inbox.try_recv() {
            go_on = take(&mut group, next);
        }
        group.commit();
    }
    refuse_the_rest(inbox);
    group.into_journal()
}

/// Says whether there is more to come.
fn take<D, A, C>(group: &mut GroupCommit<D, A, C>, message: Message<C>) -> bool
where
    D: Disk,
    A: FnMut(Sequence, Records<'_>),
    C: Completion,
{
    match message {
        Message::Write(request) => {
            if let Err(request) = group.offer(request) {
                group.commit();
                let taken = group.offer(request);
                assert!(taken.is_ok(), "an empty group takes every request");
            }
        }
        Message::Release(sequence) => {
            group.release_before(sequence);
        }
        Message::Stop => return false,
    }
    true
}

fn refuse_the_rest<C: Completion>(inbox: &Receiver<Message<C>>) {
    while let Ok(message) = inbox.try_recv() {
        if let Message::Write(request) = message {
            request.waiting.complete(Err(AppendError::Stopped));
        }
    }
}
