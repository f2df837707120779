//! A store of tasks in a folder of this machine.

use std::sync::Arc;

use futures_util::FutureExt;
use punctual_core::{Change, Fence, Task};
use tokio::sync::Mutex;

use super::author::{Author, Bounds, OnItsWay, Refused};
use super::checkpoint::{self, Checkpoint};
use super::cold::ColdTier;
use super::disk::Disk;
use super::draft::{Draft, Fetched};
use super::frame::Identity;
use super::gauges::{Gauges, JournalGauges};
use super::hand::Hand;
use super::journal::{Class, Journal, OpenError, Options, Recovery};
use super::key::Key;
use super::kv::{FRAME_BYTES, JournaledKv, OP_BYTES};
use super::shared::{Layers, Shared, Written};
use crate::kv::{ChangeWriter, KvStore, place_key};
use crate::{Recorded, StoreError, Wrapper};

/// A frame larger than this is not begun: the changes of more partitions go into the next one.
const FRAME_TARGET: usize = 8 << 20;
/// More than this of one fence may not fit into the rest of a segment, with what cannot be known before.
const FENCE_BYTES_MAX: usize = 32 << 20;
/// What a change takes in the journal beyond what its task carries, at most.
const CHANGE_BYTES: usize = 640;

/// Tasks in a folder: a journal in front of sorted tables. Clones share it.
pub struct JournaledStore<D: Disk, C> {
    rows: KvStore<JournaledKv<D, C>>,
    kv: JournaledKv<D, C>,
}

impl<D: Disk, C> Clone for JournaledStore<D, C> {
    fn clone(&self) -> Self {
        JournaledStore { rows: self.rows.clone(), kv: self.kv.clone() }
    }
}

/// Who does the slow work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hands {
    /// Threads of their own.
    Threads,
    /// Whoever calls, for simulations.
    Inline,
}

impl<D: Disk + Sync, C: ColdTier> JournaledStore<D, C> {
    /// Opens the store on a disk and a cold tier that belong together, or makes it.
    pub async fn open(
        disk: D,
        cold: C,
        partitions: u16,
        (journal, bounds): (Options, Bounds),
        hands: Hands,
    ) -> Result<JournaledStore<D, C>, StoreError> {
        let kv = JournaledStore::open_kv(disk, cold, partitions, (journal, bounds), hands)?;
        JournaledStore::on(kv, partitions).await
    }

    /// The slow part of opening: everything is read from the disk.
    pub(super) fn open_kv(
        disk: D,
        cold: C,
        partitions: u16,
        (options, bounds): (Options, Bounds),
        hands: Hands,
    ) -> Result<JournaledKv<D, C>, StoreError> {
        let mut layers = Layers::above(&cold, partitions)?;
        let opened = Journal::open(disk, options, layers.next, |_, records| layers.replay(records));
        let (journal, recovery) = opened?;
        layers.next = recovery.next;
        tie(&cold, journal.identity(), &recovery)?;
        let shared = Arc::new(Shared::new(cold, layers, hands));
        let frame_bytes_max = journal.frame_bytes_max();
        let gauges = Arc::new(JournalGauges::new(&options));
        let (hand, checkpoint) = match hands {
            Hands::Inline => (Hand::inline(journal, gauges.clone()), Checkpoint::inline()),
            Hands::Threads => {
                let hand = Hand::writer(journal, gauges.clone()).map_err(no_thread)?;
                let checkpoint = Checkpoint::thread(&shared, &hand).map_err(no_thread)?;
                (hand, checkpoint)
            }
        };
        let author = Author::new(shared.clone(), hand, checkpoint, (bounds, frame_bytes_max));
        Ok(JournaledKv { shared, author: Arc::new(Mutex::new(author)), gauges })
    }

    /// The store on what was opened, or a new one.
    pub(super) async fn on(
        kv: JournaledKv<D, C>,
        partitions: u16,
    ) -> Result<JournaledStore<D, C>, StoreError> {
        Ok(JournaledStore { rows: KvStore::open(kv.clone(), partitions).await?, kv })
    }

    /// Whether it can do nothing more until it is opened again.
    pub fn has_failed(&self) -> bool {
        self.kv.shared.check().is_err()
    }

    /// How often the tables were read.
    pub fn cold_reads(&self) -> u64 {
        self.kv.shared.cold_reads()
    }

    /// How many checkpoints were made since it was opened.
    pub fn checkpoints(&self) -> u64 {
        self.kv.shared.checkpoints()
    }

    /// How many frames were written to the journal since it was opened, and their bytes.
    pub fn journal_written(&self) -> Written {
        self.kv.shared.written()
    }

    /// How full it is.
    pub fn gauges(&self) -> Gauges {
        let (reserve_bytes, reserve_wanted_bytes) = self.kv.gauges.reserve_bytes();
        let memory_bytes = {
            let layers = self.kv.shared.read();
            layers.recent.bytes() + layers.sealed.as_ref().map_or(0, |sealed| sealed.bytes())
        };
        Gauges {
            journal_bytes: self.kv.gauges.used_bytes(),
            reserve_bytes,
            reserve_wanted_bytes,
            memory_bytes: memory_bytes as u64,
            tables_bytes: self.kv.shared.cold.disk_bytes(),
        }
    }

    pub(super) fn shared(&self) -> Arc<Shared<C>> {
        self.kv.shared.clone()
    }

    /// Writes one frame, and says what becomes of it once it is durable.
    async fn record_some(
        &self,
        author: &mut Author<D, C>,
        batch: &[(Fence, Vec<Change>)],
    ) -> Result<(Vec<Recorded>, OnItsWay<C>), Recorded> {
        let Ok((bytes, fetched)) = self.bytes_of_frame(batch) else { return Err(Recorded::Unknown) };
        let class = match author.make_room(Class::New, bytes).await {
            Ok(()) => Class::New,
            Err(Refused::Full) if author.make_room(Class::End, bytes).await.is_ok() => Class::End,
            // What is new is refused for good, and the rest is written without it.
            Err(refused) => return Err(answer_of(&refused)),
        };
        let record = |draft: &mut Draft<'_, C>| {
            draft.fetched = fetched;
            batch.iter().map(|(fence, changes)| record_one(draft, *fence, changes, class)).collect()
        };
        author.write(class, record).map_err(|refused| answer_of(&refused))
    }

    /// Changes of one fence that may not fit into a frame. Half of them may be there after a crash: nobody was told.
    async fn record_in_pieces(
        &self,
        author: &mut Author<D, C>,
        fence: Fence,
        changes: &[Change],
    ) -> Recorded {
        let mut rest = changes;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|change| {
                let is_room = bytes < frame_target(author);
                bytes += CHANGE_BYTES + carried_by(change);
                is_room
            });
            let (piece, after) = rest.split_at(fits.count().max(1));
            let answer = match self.record_some(author, &[(fence, piece.to_vec())]).await {
                Ok((answers, on_its_way)) => match on_its_way.durable().await {
                    Ok(()) => answers.first().copied().unwrap_or(Recorded::Unknown),
                    Err(refused) => answer_of(&refused),
                },
                Err(answer) => answer,
            };
            match answer {
                Recorded::Done => rest = after,
                answer if rest.len() == changes.len() => return answer,
                _ => return Recorded::Unknown,
            }
        }
        Recorded::Done
    }

    /// Seals the layer that is written to, if it is time. If somebody else writes now, they do it.
    fn seal_if_large(&self) {
        if let Ok(mut author) = self.kv.author.try_lock() {
            author.seal_if_large();
        }
    }

    /// What a frame of these changes takes, at most, and the rows that were fetched from the tables to know it.
    fn bytes_of_frame(&self, batch: &[(Fence, Vec<Change>)]) -> Result<(usize, Fetched), StoreError> {
        let (mut bytes, mut fetched) = (FRAME_BYTES, Fetched::default());
        for (fence, changes) in batch {
            bytes += bytes_of(changes);
            for change in changes {
                // The row is written anew with it.
                if let Change::Began { place, .. } = change {
                    let key = Key::from(&place_key(fence.partition, *place)[..]);
                    let (length, row) = self.kv.shared.fetch(&key)?;
                    bytes += length;
                    fetched.extend(row.map(|row| (key, row)));
                }
            }
        }
        Ok((bytes, fetched))
    }
}

impl<D: Disk + Sync, C: ColdTier> Wrapper for JournaledStore<D, C> {
    type Inner = KvStore<JournaledKv<D, C>>;

    fn inner(&self) -> &Self::Inner {
        &self.rows
    }

    async fn record(&self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
        let (mut recorded, mut frames) = (Vec::with_capacity(batch.len()), Vec::new());
        let mut author = self.kv.author.lock().await;
        while recorded.len() < batch.len() {
            let rest = &batch[recorded.len()..];
            if bytes_of(&rest[0].1) > FENCE_BYTES_MAX.min(author.frame_bytes_max * 2 / 5) {
                recorded.push(self.record_in_pieces(&mut author, rest[0].0, &rest[0].1).await);
                continue;
            }
            let frame = first_frame(rest, frame_target(&author));
            match self.record_some(&mut author, frame).await {
                Ok((some, on_its_way)) => {
                    frames.push((recorded.len(), some.len(), on_its_way));
                    recorded.extend(some);
                }
                Err(answer) => recorded.extend(frame.iter().map(|_| answer)),
            }
        }
        // Others can write while these are on their way.
        drop(author);
        for (from, count, on_its_way) in frames {
            if let Err(refused) = on_its_way.durable().await {
                recorded[from..from + count].fill(answer_of(&refused));
            }
        }
        self.seal_if_large();
        recorded
    }
}

/// What is answered for changes that were not written.
fn answer_of(refused: &Refused) -> Recorded {
    match refused {
        Refused::Full | Refused::TooLarge(_) => Recorded::Full,
        Refused::Failed(_) => Recorded::Unknown,
    }
}

/// Ties new tables to their journal.
fn tie(cold: &impl ColdTier, journal: Identity, recovery: &Recovery) -> Result<(), StoreError> {
    check_tie(cold, journal, recovery)?;
    if checkpoint::read_journal(cold)?.is_none() {
        checkpoint::write_journal(cold, journal)?;
    }
    Ok(())
}

/// Refuses tables and a journal that do not belong together.
pub(super) fn check_tie(
    cold: &impl ColdTier,
    journal: Identity,
    recovery: &Recovery,
) -> Result<(), StoreError> {
    let corrupt = |what: &str| Err(StoreError::Corrupt(what.into()));
    match checkpoint::read_journal(cold)? {
        Some(_) if recovery.segments == 0 => corrupt("the tables are there, and the journal is missing"),
        Some(tied) if tied != journal => corrupt("the tables and the journal are not of the same folder"),
        None if recovery.frames > 0 => corrupt("the journal is there, and its tables are missing"),
        _ => Ok(()),
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> StoreError {
        match error {
            OpenError::Locked | OpenError::Failed(_) => StoreError::Unavailable(Box::new(error)),
            OpenError::Newer { .. } | OpenError::Damaged { .. } | OpenError::NotUnderstood { .. } => {
                StoreError::Corrupt(Box::new(error))
            }
        }
    }
}

/// Segments may be small: what goes into a frame must fit, with what is added at last.
fn frame_target<D: Disk, C>(author: &Author<D, C>) -> usize {
    FRAME_TARGET.min(author.frame_bytes_max / 2)
}

/// As many fences as make one frame.
fn first_frame(batch: &[(Fence, Vec<Change>)], target: usize) -> &[(Fence, Vec<Change>)] {
    let mut bytes = 0;
    let fits = batch.iter().take_while(|(_, changes)| {
        let is_room = bytes < target;
        bytes += bytes_of(changes);
        is_room
    });
    &batch[..fits.count().max(1)]
}

fn record_one<C: ColdTier>(
    draft: &mut Draft<'_, C>,
    fence: Fence,
    changes: &[Change],
    class: Class,
) -> Result<Recorded, StoreError> {
    if !draft.admits(fence)? {
        return Ok(Recorded::Fenced);
    }
    if class == Class::End && changes.iter().any(Change::is_new) {
        return Ok(Recorded::Full);
    }
    for change in changes {
        if draft.write_hot(fence.partition, change)? {
            continue;
        }
        if matches!(change, Change::Revived(_)) {
            // It takes an end out of its bucket again, which may have been written a moment ago.
            draft.write_buckets()?;
        }
        let mut writer = ChangeWriter { rows: &mut *draft, partition: fence.partition };
        writer.write(change).now_or_never().expect("a draft waits for nothing")?;
    }
    Ok(Recorded::Done)
}

/// What changes take in the journal, at most.
fn bytes_of(changes: &[Change]) -> usize {
    changes.iter().map(|change| CHANGE_BYTES + carried_by(change)).sum()
}

fn carried_by(change: &Change) -> usize {
    match change {
        Change::Accepted(task) | Change::Revived(task) | Change::Refiled { task, .. } => task_bytes(task),
        Change::Ended { task, end, .. } => {
            task_bytes(task) + end.result.len() + end.error.as_ref().map_or(0, |error| error.len())
        }
        Change::Schedule(name, row) => name.len() + row.as_ref().map_or(0, bytes::Bytes::len),
        Change::Began { .. } | Change::Held { .. } | Change::Cleared(_) | Change::LowWater(..) => 0,
    }
}

fn task_bytes(task: &Task) -> usize {
    task.carried_bytes() + punctual_core::Limits::KEY_MAX + OP_BYTES
}

fn no_thread(error: std::io::Error) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}
