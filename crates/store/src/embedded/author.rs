//! Whoever writes: one frame after the other, each applied to the layers and then made durable.
//!
//! While a frame is on its way to the disk the next one can be made: what it finds in the layers is what the one before it
//! left there. If that one finds no room at last, both are taken back.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::sync::oneshot;

use super::checkpoint::Checkpoint;
use super::cold::ColdTier;
use super::disk::Disk;
use super::draft::Draft;
use super::frame::Batch;
use super::hand::Hand;
use super::journal::{AppendError, Class, Room};
use super::shared::{Seen, Shared};
use crate::{Cause, StoreError};

/// When layers are sealed and go down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// A layer with so many bytes is sealed.
    pub layer_bytes: usize,
    /// So is one whose frames take so many bytes: they are read again at the next start.
    pub journal_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { layer_bytes: 64 << 20, journal_bytes: 128 << 20 }
    }
}

/// The one who writes.
pub struct Author<D: Disk, C> {
    pub shared: Arc<Shared<C>>,
    /// Before the hand, which cannot end while this may tell it something.
    pub checkpoint: Checkpoint,
    pub hand: Hand<D>,
    pub bounds: Bounds,
    /// No frame is longer.
    pub frame_bytes_max: usize,
    batch: Batch,
    /// The record in the making.
    ops: Vec<u8>,
    arena: BytesMut,
    /// What is left of the room that was made.
    room: Room,
    /// How often frames had been taken back when it was made.
    room_since: u64,
    /// Bytes of frames since the last seal.
    since_seal: usize,
}

/// Why nothing was written, and nothing changed.
#[derive(Debug)]
pub enum Refused {
    /// The disk is full.
    Full,
    /// It does not fit into a segment, however empty the disk is.
    TooLarge(AppendError),
    /// The store has failed.
    Failed(StoreError),
}

/// What was written, until it is durable. It becomes so whether or not somebody waits.
#[must_use]
pub struct OnItsWay<C> {
    shared: Arc<Shared<C>>,
    what: What,
}

enum What {
    /// A frame.
    Frame(oneshot::Receiver<Result<(), AppendError>>),
    /// Nothing; but what was seen may not be durable yet.
    Seen(Seen),
}

impl<C: ColdTier> OnItsWay<C> {
    /// Waits until it is durable.
    pub async fn durable(self) -> Result<(), Refused> {
        match self.what {
            What::Seen(seen) if self.shared.is_durable(seen).await? => Ok(()),
            What::Seen(_) => Err(Refused::Full),
            What::Frame(written) => match written.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(AppendError::Full)) => Err(Refused::Full),
                Ok(Err(error)) => Err(Refused::Failed(StoreError::Unknown(Box::new(error)))),
                Err(_) => {
                    let why = "the journal's thread has ended";
                    self.shared.fail(why);
                    Err(Refused::Failed(StoreError::Unknown(why.into())))
                }
            },
        }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Refused {
        Refused::Failed(error)
    }
}

impl<D: Disk, C: ColdTier> Author<D, C> {
    pub fn new(
        shared: Arc<Shared<C>>,
        hand: Hand<D>,
        checkpoint: Checkpoint,
        (bounds, frame_bytes_max): (Bounds, usize),
    ) -> Self {
        Author {
            shared,
            checkpoint,
            hand,
            bounds,
            frame_bytes_max,
            batch: Batch::default(),
            ops: Vec::new(),
            arena: BytesMut::new(),
            room: Room::default(),
            room_since: 0,
            since_seal: 0,
        }
    }

    /// Makes ready for a frame of at most so many bytes: it can be written then, however full the disk is.
    pub async fn make_room(&mut self, class: Class, bytes: usize) -> Result<(), Refused> {
        self.shared.check()?;
        self.checkpoint.try_again(&self.shared, &mut self.hand);
        if self.is_due_to_seal() {
            self.shared.is_settled().await?;
            self.seal_if_large();
        }
        if self.shared.read().recent.bytes() >= self.bounds.layer_bytes
            && !self.shared.until_not_sealed().await?
            && class == Class::New
        {
            // Ends go on: the segments kept back for them bound how much memory that takes.
            return Err(Refused::Full);
        }
        let taken_back = { self.shared.read().taken_back };
        if self.room_since == taken_back && self.room.of(class) >= bytes {
            return Ok(());
        }
        match self.hand.make_room(class, bytes).await {
            Ok(room) => (self.room, self.room_since) = (room, taken_back),
            Err(AppendError::Full) => return Err(Refused::Full),
            Err(error @ AppendError::TooLarge { .. }) => return Err(Refused::TooLarge(error)),
            Err(error) => return Err(Refused::Failed(self.fail(&error))),
        }
        Ok(())
    }

    /// Applies what `work` writes and sends it on its way; room for it was made. If the disk finds at last that it has
    /// none, it is taken back.
    pub fn write<T>(
        &mut self,
        class: Class,
        work: impl FnOnce(&mut Draft<'_, C>) -> Result<T, StoreError>,
    ) -> Result<(T, OnItsWay<C>), Refused> {
        let shared = self.shared.clone();
        let durable = shared.durable_before();
        let (result, sequence) = {
            let mut layers = shared.write();
            let (sequence, seen) = (layers.next, layers.seen());
            layers.recent.begin(sequence, durable);
            let mut draft = Draft::new(&mut layers, &shared, (&mut self.ops, &mut self.arena));
            let result = work(&mut draft).and_then(|result| Ok((result, draft.finish()?)));
            // Half of it is applied, and nothing of it in the journal.
            let (result, has_written) = result.map_err(|error| self.fail(&error))?;
            if !has_written {
                drop(layers);
                return Ok((result, OnItsWay { shared, what: What::Seen(seen) }));
            }
            self.batch.clear();
            self.batch.push(&self.ops);
            layers.next = sequence.next();
            (result, sequence)
        };
        self.since_seal += self.batch.bytes().len();
        let mut frame = self.hand.frame();
        frame.push(&self.batch);
        self.room = self.room.after(frame.frame_bytes());
        let written = self.hand.append(&shared, class, frame, sequence);
        Ok((result, OnItsWay { shared, what: What::Frame(written) }))
    }

    /// Starts a new layer when this one is large and all in it is durable, unless the one before it is still on its way.
    pub fn seal_if_large(&mut self) {
        let durable = self.shared.durable_before();
        if !self.is_due_to_seal() || durable < self.shared.read().next {
            return;
        }
        self.since_seal = 0;
        let (sealed, next) = {
            let layers = &mut *self.shared.write();
            let mut sealed = std::mem::take(&mut layers.recent);
            sealed.keep();
            let sealed = Arc::new(sealed);
            layers.sealed = Some(sealed.clone());
            (sealed, layers.next)
        };
        self.checkpoint.send_down(&self.shared, &mut self.hand, sealed, next);
    }

    fn is_due_to_seal(&self) -> bool {
        let layers = self.shared.read();
        let is_large = layers.recent.bytes() >= self.bounds.layer_bytes
            || (self.since_seal >= self.bounds.journal_bytes && !layers.recent.is_empty());
        is_large && layers.sealed.is_none()
    }

    fn fail(&self, why: &impl ToString) -> StoreError {
        let why = why.to_string();
        self.shared.fail(&why);
        StoreError::Unknown(Cause::from(why))
    }
}
