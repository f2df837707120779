//! Takes a sealed layer down into the tables, and lets the journal forget it.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;

use super::background::give_way;
use super::cold::{ColdTier, Entry};
use super::disk::Disk;
use super::frame::{Identity, Sequence};
use super::hand::Hand;
use super::key::Key;
use super::layer::Layer;
use super::merge;
use super::shared::Shared;
use crate::StoreError;

/// The rows of a checkpoint lie behind all others. Numbers are never used for anything else again.
const CHECKPOINT: [u8; 2] = [255, 0];
const UNSEEN: [u8; 2] = [255, 1];
const JOURNAL: [u8; 2] = [255, 2];
/// Rows of tasks lie before this.
pub const ROWS_END: [u8; 1] = [255];

/// How long the thread waits before it looks again whether the tables have room.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Who takes layers down.
pub struct Checkpoint {
    /// `None`: at once, in simulations.
    thread: Option<Thread>,
    /// Without a thread: the layer that the tables had no room for.
    waiting: Option<Sealed>,
}

struct Thread {
    /// `None` when it is to end. One layer is on its way at a time.
    layers: Option<SyncSender<Sealed>>,
    thread: Option<JoinHandle<()>>,
}

/// A layer on its way, and the first frame that is not in it.
struct Sealed {
    layer: Arc<Layer>,
    next: Sequence,
}

impl Checkpoint {
    /// Layers are taken down at once.
    pub fn inline() -> Checkpoint {
        Checkpoint { thread: None, waiting: None }
    }

    /// Layers are taken down by a thread.
    pub fn thread<D: Disk, C: ColdTier>(
        shared: &Arc<Shared<C>>,
        hand: &Hand<D>,
    ) -> std::io::Result<Checkpoint> {
        let (layers, told) = sync_channel::<Sealed>(1);
        let (shared, release) = (shared.clone(), hand.releaser());
        let work = move || {
            give_way();
            while let Ok(sealed) = told.recv() {
                let mut went = take_down(&shared, &sealed);
                while went == Went::NoRoom {
                    // Nobody sends another layer before this one is down: whatever else comes is the end.
                    if !matches!(told.recv_timeout(LOOK_AGAIN), Err(RecvTimeoutError::Timeout)) {
                        return;
                    }
                    went = take_down(&shared, &sealed);
                }
                if let (Went::Down, Some(release)) = (went, &release) {
                    release(sealed.next);
                }
            }
        };
        let thread = std::thread::Builder::new().name("punctual-checkpoint".into()).spawn(work)?;
        let thread = Thread { layers: Some(layers), thread: Some(thread) };
        Ok(Checkpoint { thread: Some(thread), waiting: None })
    }

    /// Takes a layer down whose last frame is durable.
    pub fn send_down<D: Disk, C: ColdTier>(
        &mut self,
        shared: &Arc<Shared<C>>,
        hand: &mut Hand<D>,
        layer: Arc<Layer>,
        next: Sequence,
    ) {
        let sealed = Sealed { layer, next };
        match &self.thread {
            Some(thread) => _ = thread.layers.as_ref().map(|layers| layers.send(sealed)),
            None => {
                self.waiting = Some(sealed);
                self.try_again(shared, hand);
            }
        }
    }

    /// Without a thread: takes the layer down that there was no room for.
    pub fn try_again<D: Disk, C: ColdTier>(&mut self, shared: &Arc<Shared<C>>, hand: &mut Hand<D>) {
        let Some(sealed) = self.waiting.take() else { return };
        match take_down(shared, &sealed) {
            Went::Down => hand.release_before(sealed.next),
            Went::NoRoom => self.waiting = Some(sealed),
            Went::Wrong => {}
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.layers = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// How it went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Went {
    /// It is in the tables.
    Down,
    /// It will be, when there is room.
    NoRoom,
    /// The store has failed.
    Wrong,
}

fn take_down<C: ColdTier>(shared: &Shared<C>, sealed: &Sealed) -> Went {
    let notes = notes(sealed.next, &shared.read().unseen);
    let mut entries = merge::to_ingest(&sealed.layer, &shared.cold).chain(notes.into_iter().map(Ok));
    let has_room = shared.cold.has_room(sealed.layer.bytes() as u64);
    match if has_room { shared.cold.ingest(&mut entries) } else { Err(StoreError::Full) } {
        Ok(()) => {
            shared.checkpointed(&sealed.layer);
            Went::Down
        }
        Err(StoreError::Full) => {
            shared.cold_is_full();
            Went::NoRoom
        }
        Err(error) => {
            shared.fail(&format!("a checkpoint could not be written: {error}"));
            Went::Wrong
        }
    }
}

/// What the next start must know: where the journal is to be read from, and which numbers were given.
pub fn notes(next: Sequence, unseen: &[u64]) -> Vec<Entry> {
    let number = |number: u64| Some(Bytes::copy_from_slice(&number.to_be_bytes()));
    let mut notes = vec![(Key::from(&CHECKPOINT[..]), number(next.0))];
    for (partition, seq) in unseen.iter().enumerate() {
        let partition = (partition as u16).to_be_bytes();
        notes.push((Key::from(&[UNSEEN, partition].concat()[..]), number(*seq)));
    }
    notes
}

/// Notes that the tables belong to this journal, which has begun.
pub fn write_journal(cold: &impl ColdTier, journal: Identity) -> Result<(), StoreError> {
    let value = Bytes::copy_from_slice(&journal.0.to_be_bytes());
    cold.ingest(&mut std::iter::once(Ok((Key::from(&JOURNAL[..]), Some(value)))))
}

/// The journal that the tables belong to. None if it has not begun: they are new, or a copy.
pub fn read_journal(cold: &impl ColdTier) -> Result<Option<Identity>, StoreError> {
    Ok(cold.get(&JOURNAL)?.map(|value| Identity(number(&value))))
}

/// Where the journal is to be read from.
pub fn read_next(cold: &impl ColdTier) -> Result<Option<Sequence>, StoreError> {
    Ok(cold.get(&CHECKPOINT)?.map(|value| Sequence(number(&value))))
}

/// Which numbers were given, by partition.
pub fn read_unseen(cold: &impl ColdTier, partitions: u16) -> Result<Vec<u64>, StoreError> {
    let unseen = |partition: u16| {
        let value = cold.get(&[UNSEEN, partition.to_be_bytes()].concat())?;
        Ok(value.map_or(0, |value| number(&value)))
    };
    (0..partitions).map(unseen).collect()
}

fn number(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
