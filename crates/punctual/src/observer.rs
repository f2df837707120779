//! What the shell does, as it does it: for metrics, and for tests that wait for events.

use bytes::Bytes;
use punctual_core::{Attempt, Change, Fence, Outcome, PartitionId, QueueId, Token};

use crate::clock::{ClockStep, OddStart};

/// Something the shell did or noticed.
#[derive(Debug)]
pub enum Note<'a> {
    /// These changes are on stable storage.
    Recorded(Fence, &'a [Change]),
    /// An attempt is about to start.
    Started(&'a Attempt),
    /// An attempt was reported on.
    Reported(Token, &'a Outcome),
    /// A partition is ours.
    PartitionTaken(Fence),
    /// A partition is somebody else's.
    PartitionLost(PartitionId),
    /// Something went wrong in a partition, or nobody knows what was recorded: it is taken over anew.
    PartitionReloaded(PartitionId),
    /// A partition was given up in good order.
    PartitionReleased(PartitionId),
    /// So many hours of a queue's history were dropped.
    HistoryDropped(Fence, QueueId, usize),
    /// The wall clock was set.
    ClockStepped(ClockStep),
    /// The wall clock does not go with the time that was last trusted on this store. The text says what to do.
    OddStart(OddStart),
    /// The store did not do as asked; it is asked again.
    StoreTrouble(&'a str),
}

/// Whoever wants to know. Called from the loop: be quick.
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    fn observe(&self, note: Note<'_>);

    /// What is owed to somebody because of this change: a name, and what is needed to settle it. It is written together
    /// with the change, so that no crash can part them, and stays until [`Scheduler::settle`] takes it away. It comes
    /// back in [`Note::Recorded`]; whoever takes a partition over finds what is left with `Store::schedules`. The name
    /// begins with [`Change::OWED`].
    ///
    /// [`Scheduler::settle`]: crate::Scheduler::settle
    fn owed(&self, _change: &Change) -> Option<(Box<str>, Bytes)> {
        None
    }
}

/// Nobody wants to know.
pub struct Unobserved;

impl Observer for Unobserved {
    fn observe(&self, _note: Note<'_>) {}
}

impl<F: Fn(Note<'_>) + Send + Sync + 'static> Observer for F {
    fn observe(&self, note: Note<'_>) {
        self(note);
    }
}
