//! The layers and the tier below them, as readers see them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use punctual_core::{Epoch, Task, Timestamp};
use rustc_hash::FxHashMap;
use tokio::sync::watch;

use super::cold::ColdTier;
use super::frame::{Records, Sequence};
use super::key::Key;
use super::layer::{Layer, Said};
use super::lent::Lent;
use super::store::Hands;
use super::value::Value;
use super::{checkpoint, merge, ops};
use crate::kv::{is_in_window, seq_of_row};
use crate::{Cause, StoreError};

/// What readers, the author and the checkpoint share.
pub struct Shared<C> {
    layers: RwLock<Layers>,
    pub cold: C,
    hands: Hands,
    progress: watch::Sender<Progress>,
    cold_reads: AtomicU64,
    frames: AtomicU64,
    frame_bytes: AtomicU64,
}

/// What went to the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// Frames, each made durable by one sync.
    pub frames: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

/// The rows that are in memory.
pub struct Layers {
    pub recent: Layer,
    pub sealed: Option<Arc<Layer>>,
    /// Rows that have gone down and will soon be asked for: copies, to spare a look into the tables.
    pub near: Arc<Near>,
    /// Rows that were read from the tables a while ago, for whoever changes them next.
    pub lent: Lent,
    /// How many layers have gone down: what was read from the tables before the last one did may be outdated.
    pub gone_down: u64,
    /// The frame that is written next: everything in the layers belongs to one before it.
    pub next: Sequence,
    /// By partition: a task of this number or a higher one was never heard of.
    pub unseen: Vec<u64>,
    /// When the last task ended, as far as is known: it is later than that.
    pub latest: Timestamp,
    /// By partition: the present epoch, if it is known.
    pub epochs: Vec<Option<Epoch>>,
    /// How often a frame was taken back that found no room. Whoever saw it must look again.
    pub taken_back: u64,
}

/// How far somebody saw who looked at the layers.
#[derive(Clone, Copy)]
pub struct Seen {
    /// The first frame that he did not see.
    next: Sequence,
    taken_back: u64,
    /// How many layers had gone down.
    gone_down: u64,
}

/// Tasks by the keys of their rows.
type Near = FxHashMap<Key, Arc<Task>>;

/// Copies take no more memory than this, about.
const NEAR_BYTES_MAX: usize = 16 << 20;
const NEAR_BYTES_EACH: usize = 500;

/// How far things have come.
#[derive(Clone, Default)]
struct Progress {
    /// Everything before this frame is durable.
    durable: Sequence,
    /// How many checkpoints were made.
    checkpoints: u64,
    /// The tables have no room for the layer that is on its way.
    is_cold_full: bool,
    /// As in [`Layers`].
    taken_back: u64,
    /// Why nothing goes on any more.
    failure: Option<Arc<str>>,
}

impl<C: ColdTier> Shared<C> {
    pub fn new(cold: C, layers: Layers, hands: Hands) -> Shared<C> {
        let progress = Progress { durable: layers.next, ..Progress::default() };
        let (progress, _) = watch::channel(progress);
        let [cold_reads, frames, frame_bytes] = [const { AtomicU64::new(0) }; 3];
        Shared { layers: RwLock::new(layers), cold, hands, progress, cold_reads, frames, frame_bytes }
    }

    pub fn read(&self) -> RwLockReadGuard<'_, Layers> {
        // Whoever panicked while it held them has also failed the store.
        self.layers.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, Layers> {
        self.layers.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Values as readers may see them: durable. What is not in memory is read by whoever may be held up by it.
    pub async fn get_many(self: &Arc<Self>, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let said = loop {
            let (said, seen) = {
                let layers = self.read();
                let said: Vec<Said> = keys.iter().map(|key| layers.get(&Key::from(&key[..]))).collect();
                (said, layers.seen())
            };
            if self.is_durable(seen).await? {
                break said;
            }
        };
        let missing: Vec<Bytes> = keys
            .iter()
            .zip(&said)
            .filter(|(_, said)| **said == Said::Nothing)
            .map(|(key, _)| key.clone())
            .collect();
        let mut below = Vec::new().into_iter();
        if !missing.is_empty() {
            let read = move |shared: &Self| {
                missing.iter().map(|key| shared.get_cold(key)).collect::<Result<Vec<_>, _>>()
            };
            below = self.read_below(read).await?.into_iter();
        }
        let values = said.into_iter().map(|said| match said {
            Said::Is(value) => Some(value.to_bytes()),
            Said::IsNot => None,
            Said::Nothing => below.next().flatten(),
        });
        Ok(values.collect())
    }

    /// Reads the tables where it holds up nobody else: the disk may take its time.
    async fn read_below<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.hands == Hands::Inline {
            return read(self);
        }
        let shared = self.clone();
        let read = tokio::task::spawn_blocking(move || read(&shared)).await;
        read.unwrap_or_else(|died| Err(StoreError::Unavailable(Box::new(died))))
    }

    /// How long a value is that may not be durable yet, 0 when there is none; and the value, if it had to be fetched.
    pub fn fetch(&self, key: &Key) -> Result<(usize, Option<Bytes>), StoreError> {
        let said = self.read().get(key);
        match said {
            Said::Is(value) => Ok((value.memory(), None)),
            Said::IsNot => Ok((0, None)),
            Said::Nothing => {
                let value = self.get_cold(key.as_slice())?;
                Ok((value.as_ref().map_or(0, Bytes::len), value))
            }
        }
    }

    pub fn get_cold(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.cold_reads.fetch_add(1, Ordering::Relaxed);
        self.cold.get(key)
    }

    /// The first rows of a range, durable ones only.
    pub async fn scan(
        self: &Arc<Self>,
        from: &Bytes,
        until: &Bytes,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        let (slice, sealed, seen) = loop {
            let (slice, sealed, seen) = {
                let layers = self.read();
                (layers.recent.slice(from, until, limit), layers.sealed.clone(), layers.seen())
            };
            if self.is_durable(seen).await? {
                break (slice, sealed, seen);
            }
        };
        self.cold_reads.fetch_add(1, Ordering::Relaxed);
        let (from, until) = (from.clone(), until.clone());
        self.read_below(move |shared| {
            let mut of_tables = Vec::new();
            let lends = is_in_window(&from);
            let cold = shared.cold.range(&from, &until).inspect(|row| {
                of_tables.extend(row.as_ref().ok().filter(|_| lends).cloned());
            });
            let rows = merge::scan(slice, sealed.as_deref(), cold, (&from, &until), limit)?;
            shared.lend(seen, sealed.as_deref(), of_tables);
            Ok(rows)
        })
        .await
    }

    /// Remembers rows of the tables. What was written since they were seen lies in the layers above; if one of these has
    /// gone down meanwhile, it must be the one that was on its way then, which is known.
    fn lend(&self, seen: Seen, sealed: Option<&Layer>, mut of_tables: Vec<(Bytes, Bytes)>) {
        if of_tables.is_empty() {
            return;
        }
        let mut layers = self.write();
        match (layers.gone_down - seen.gone_down, sealed) {
            (0, _) => {}
            (1, Some(gone)) => of_tables.retain(|(key, _)| gone.get(&Key::from(&key[..])) == Said::Nothing),
            _ => return,
        }
        layers.lent.note(&of_tables);
    }

    /// How often the tables were read.
    pub fn cold_reads(&self) -> u64 {
        self.cold_reads.load(Ordering::Relaxed)
    }

    /// A frame with so many bytes of records is durable, and all before it.
    pub fn written_through(&self, frame: Sequence, bytes: usize) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.frame_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.progress.send_modify(|progress| progress.durable = progress.durable.max(frame.next()));
    }

    /// Everything before this frame is durable.
    pub fn durable_before(&self) -> Sequence {
        self.progress.borrow().durable
    }

    /// Waits until what is in the layers now is durable; false if some of it was taken back.
    pub async fn is_settled(&self) -> Result<bool, StoreError> {
        let seen = { self.read().seen() };
        self.is_durable(seen).await
    }

    /// What went to the journal.
    pub fn written(&self) -> Written {
        Written {
            frames: self.frames.load(Ordering::Relaxed),
            bytes: self.frame_bytes.load(Ordering::Relaxed),
        }
    }

    /// Waits until what was seen is durable; false if it was taken back, and is to be looked at again.
    pub async fn is_durable(&self, seen: Seen) -> Result<bool, StoreError> {
        let is_back = |progress: &Progress| progress.taken_back > seen.taken_back;
        self.until(|progress| progress.durable >= seen.next || is_back(progress)).await?;
        // The frame that came in its place may be durable by now: that says nothing about what was seen.
        Ok(!is_back(&self.progress.borrow()))
    }

    /// A frame found no room, and nothing of it is in the journal: nobody shall ever have seen it, nor those after it.
    pub fn take_back(&self, from: Sequence) {
        let taken_back = {
            let mut layers = self.write();
            if layers.next <= from {
                // It went with one before it.
                return;
            }
            layers.recent.take_back(from);
            layers.next = from;
            layers.epochs.fill(None);
            layers.taken_back += 1;
            layers.taken_back
        };
        self.progress.send_modify(|progress| progress.taken_back = taken_back);
    }

    /// Waits until no layer is on its way down. Says whether that is so: if the tables have no room for it, nobody
    /// knows how long it takes.
    pub async fn until_not_sealed(&self) -> Result<bool, StoreError> {
        let is_sealed = || self.read().sealed.is_some();
        self.until(|progress| progress.is_cold_full || !is_sealed()).await?;
        Ok(!is_sealed())
    }

    async fn until(&self, reached: impl Fn(&Progress) -> bool) -> Result<(), StoreError> {
        let mut progress = self.progress.subscribe();
        let now = progress.wait_for(|progress| progress.failure.is_some() || reached(progress)).await;
        let failure = now.expect("whoever waits keeps the sender alive").failure.clone();
        failure.map_or(Ok(()), |failure| Err(failed(&failure)))
    }

    pub fn check(&self) -> Result<(), StoreError> {
        self.progress.borrow().failure.as_ref().map_or(Ok(()), |failure| Err(failed(failure)))
    }

    /// This layer is in the tables.
    pub fn checkpointed(&self, layer: &Layer) {
        let near = Arc::new(self.near_after(layer));
        let lent = { std::mem::take(&mut self.write().lent) }.untouched_by(layer);
        let done = {
            let mut layers = self.write();
            layers.gone_down += 1;
            let lent = std::mem::replace(&mut layers.lent, lent);
            (layers.sealed.take(), std::mem::replace(&mut layers.near, near), lent)
        };
        // Not under the lock: they hold many rows.
        drop(done);
        self.progress.send_modify(|progress| {
            progress.checkpoints += 1;
            progress.is_cold_full = false;
        });
    }

    /// The tables have no room for the layer that is on its way. It stays, and is tried again.
    pub fn cold_is_full(&self) {
        self.progress.send_modify(|progress| progress.is_cold_full = true);
    }

    /// Tasks that will soon be asked for, of those that a layer has taken down and those known before.
    fn near_after(&self, layer: &Layer) -> Near {
        let known = self.read().near.clone();
        let mut room = NEAR_BYTES_MAX;
        let mut fits = |task: &Task| {
            room = room.saturating_sub(NEAR_BYTES_EACH + task.carried_bytes());
            room > 0
        };
        let unchanged = known.iter().filter(|(key, _)| layer.get(key) == Said::Nothing);
        let unchanged = unchanged.map(|(key, task)| (key.clone(), task.clone()));
        let taken_down = layer.all().filter_map(|(key, value)| match value {
            Some(Value::Task(task)) => Some((key.clone(), task.clone())),
            _ => None,
        });
        unchanged.chain(taken_down).filter(|(_, task)| fits(task)).collect()
    }

    /// How many checkpoints were made since it was opened.
    pub fn checkpoints(&self) -> u64 {
        self.progress.borrow().checkpoints
    }

    /// Nothing goes on from here: nobody knows what is on the disk until it is read again.
    pub fn fail(&self, why: &str) {
        self.progress.send_modify(|progress| _ = progress.failure.get_or_insert_with(|| why.into()));
    }
}

impl Layers {
    /// Empty ones, above tables as they were left.
    pub fn above(cold: &impl ColdTier, partitions: u16) -> Result<Layers, StoreError> {
        Ok(Layers {
            recent: Layer::default(),
            sealed: None,
            near: Arc::default(),
            lent: Lent::default(),
            gone_down: 0,
            next: checkpoint::read_next(cold)?.unwrap_or(Sequence(1)),
            unseen: checkpoint::read_unseen(cold, partitions)?,
            latest: Timestamp::MIN,
            epochs: vec![None; usize::from(partitions)],
            taken_back: 0,
        })
    }

    /// What somebody sees who looks now.
    pub fn seen(&self) -> Seen {
        Seen { next: self.next, taken_back: self.taken_back, gone_down: self.gone_down }
    }

    /// Takes in a frame that was written before.
    pub fn replay(&mut self, records: Records<'_>) -> Result<(), Cause> {
        let Layers { recent, unseen, .. } = self;
        for record in records {
            let note = |key: &[u8]| {
                if let Some((partition, seq)) = seq_of_row(key)
                    && let Some(unseen) = unseen.get_mut(usize::from(partition.0))
                {
                    *unseen = (*unseen).max(seq.0.saturating_add(1));
                }
            };
            ops::replay(record, recent, note).ok_or("a record of the journal is not one of ours")?;
        }
        Ok(())
    }

    /// What the layers say about a key; `Nothing`: look into the tables.
    pub fn get(&self, key: &Key) -> Said {
        let sealed = || self.sealed.as_ref().map_or(Said::Nothing, |sealed| sealed.get(key));
        let near = || self.near.get(key).map_or(Said::Nothing, |task| Said::Is(Value::Task(task.clone())));
        let lent = || self.lent.get(key);
        self.recent.get(key).or_else(sealed).or_else(near).or_else(lent)
    }
}

fn failed(why: &str) -> StoreError {
    StoreError::Unavailable(Cause::from(format!("the store has failed and must be opened again: {why}")))
}
