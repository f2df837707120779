//! Whoever writes: one frame after the other, each applied to the layers and then made durable.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::sync::oneshot;

use super::checkpoint::Checkpoint;
use super::cold::ColdTier;
use super::disk::Disk;
use super::draft::Draft;
use super::frame::{Batch, FrameBuffer};
use super::hand::{Hand, Written};
use super::journal::{AppendError, Class, Room};
use super::layer::Layer;
use super::shared::{Layers, Shared};
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
        Bounds { layer_bytes: 32 << 20, journal_bytes: 128 << 20 }
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
    frame: FrameBuffer,
    room: Room,
    /// A frame whose writer gave up waiting: it is written all the same, and before the next one.
    on_its_way: Option<oneshot::Receiver<Written>>,
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
            frame: FrameBuffer::default(),
            room: Room::default(),
            on_its_way: None,
            since_seal: 0,
        }
    }

    /// Makes ready for a frame of at most so many bytes: it can be written then, however full the disk is.
    pub async fn make_room(&mut self, class: Class, bytes: usize) -> Result<(), Refused> {
        if let Some(written) = &mut self.on_its_way {
            let written = written.await;
            self.on_its_way = None;
            match self.take_back(written) {
                // Whoever wrote it was told nothing.
                Ok(()) | Err(Refused::Full | Refused::TooLarge(_)) => {}
                Err(failed @ Refused::Failed(_)) => return Err(failed),
            }
        }
        self.shared.check()?;
        self.checkpoint.try_again(&self.shared, &mut self.hand);
        if self.shared.read().recent.bytes() >= self.bounds.layer_bytes
            && !self.shared.until_not_sealed().await?
            && class == Class::New
        {
            // Ends go on: the segments kept back for them bound how much memory that takes.
            return Err(Refused::Full);
        }
        if self.room.of(class) >= bytes {
            return Ok(());
        }
        match self.hand.make_room(class, bytes).await {
            Ok(room) => self.room = room,
            Err(AppendError::Full) => return Err(Refused::Full),
            Err(error @ AppendError::TooLarge { .. }) => return Err(Refused::TooLarge(error)),
            Err(error) => return Err(Refused::Failed(self.fail(&error))),
        }
        Ok(())
    }

    /// Applies what `work` writes and makes it durable; room for it was made. If the disk finds at last that it has
    /// none, it is taken back.
    pub async fn write<T>(
        &mut self,
        class: Class,
        work: impl FnOnce(&mut Draft<'_, C>) -> Result<T, StoreError>,
    ) -> Result<T, Refused> {
        let shared = self.shared.clone();
        let result = {
            let mut layers = shared.write();
            layers.recent.begin();
            let mut draft = Draft::new(&mut layers, &shared, (&mut self.ops, &mut self.arena));
            let result = work(&mut draft).and_then(|result| Ok((result, draft.finish()?)));
            // Half of it is applied, and nothing of it in the journal.
            let (result, has_written) = result.map_err(|error| self.fail(&error))?;
            if !has_written {
                return Ok(result);
            }
            self.batch.clear();
            self.batch.push(&self.ops);
            layers.next = layers.next.next();
            result
        };
        self.since_seal += self.batch.bytes().len();
        self.append(class).await?;
        if let Some((layer, next)) = self.seal_if_large() {
            self.checkpoint.send_down(&self.shared, &mut self.hand, layer, next);
        }
        Ok(result)
    }

    async fn append(&mut self, class: Class) -> Result<(), Refused> {
        self.frame.clear();
        self.frame.push(&self.batch);
        let next = { self.shared.read().next };
        self.on_its_way = Some(self.hand.append(&self.shared, class, std::mem::take(&mut self.frame), next));
        let written = self.on_its_way.as_mut().expect("just sent").await;
        self.on_its_way = None;
        self.take_back(written)?;
        self.shared.count_frame(self.batch.bytes().len());
        Ok(())
    }

    fn take_back(&mut self, written: Result<Written, oneshot::error::RecvError>) -> Result<(), Refused> {
        let written = written.map_err(|_| self.fail(&"the journal's thread has ended"))?;
        self.frame = written.frame;
        self.room = Room::default();
        match written.result {
            Ok(room) => self.room = room,
            Err(AppendError::Full) => {
                self.shared.take_back();
                return Err(Refused::Full);
            }
            Err(error) => return Err(Refused::Failed(self.fail(&error))),
        }
        Ok(())
    }

    /// Starts a new layer when this one is large, unless the one before it is still on its way. What is in it is durable,
    /// and whoever gives up waiting for that leaves no layer behind that nobody takes down.
    fn seal_if_large(&mut self) -> Option<(Arc<Layer>, super::frame::Sequence)> {
        let is_large = |layers: &Layers| {
            layers.recent.bytes() >= self.bounds.layer_bytes
                || (self.since_seal >= self.bounds.journal_bytes && !layers.recent.is_empty())
        };
        let is_due = |layers: &Layers| is_large(layers) && layers.sealed.is_none();
        if !is_due(&self.shared.read()) {
            return None;
        }
        self.since_seal = 0;
        let layers = &mut *self.shared.write();
        let mut sealed = std::mem::take(&mut layers.recent);
        sealed.keep();
        let sealed = Arc::new(sealed);
        layers.sealed = Some(sealed.clone());
        Some((sealed, layers.next))
    }

    fn fail(&self, why: &impl ToString) -> StoreError {
        let why = why.to_string();
        self.shared.fail(&why);
        StoreError::Unknown(Cause::from(why))
    }
}
