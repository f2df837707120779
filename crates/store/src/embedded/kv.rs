//! The journal, the layers and the tables as one ordered key-value store.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Mutex;

use super::author::{Author, Refused};
use super::cold::ColdTier;
use super::disk::Disk;
use super::draft::Draft;
use super::gauges::JournalGauges;
use super::journal::Class;
use super::shared::Shared;
use crate::StoreError;
use crate::kv::{Guard, OrderedKv, Rows, Write, is_ownership};

/// What one write takes in the journal beyond its bytes, at most.
pub(super) const OP_BYTES: usize = 16;
/// What a frame takes beyond its records, at most.
pub(super) const FRAME_BYTES: usize = 256;

/// An ordered key-value store in a folder.
pub struct JournaledKv<D: Disk, C> {
    pub(super) shared: Arc<Shared<C>>,
    pub(super) author: Arc<Mutex<Author<D, C>>>,
    pub(super) gauges: Arc<JournalGauges>,
}

impl<D: Disk, C> Clone for JournaledKv<D, C> {
    fn clone(&self) -> Self {
        JournaledKv { shared: self.shared.clone(), author: self.author.clone(), gauges: self.gauges.clone() }
    }
}

impl<D: Disk + Sync, C: ColdTier> OrderedKv for JournaledKv<D, C> {
    fn write_max(&self) -> usize {
        usize::MAX
    }

    async fn get(&self, key: &Bytes) -> Result<Option<Bytes>, StoreError> {
        Ok(self.get_many(std::slice::from_ref(key)).await?.pop().flatten())
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.shared.get_many(keys).await
    }

    async fn scan(
        &self,
        from: &Bytes,
        until: &Bytes,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        self.shared.scan(from, until, limit).await
    }

    async fn write(&self, guards: &[Guard], writes: Vec<Write>) -> Result<bool, StoreError> {
        let class = class_of(&writes);
        let bytes = FRAME_BYTES + writes.iter().map(bytes_of).sum::<usize>();
        let mut author = self.author.lock().await;
        // What is compared here is durable: whoever loses must not lose to something that a crash undoes.
        self.shared.is_settled().await?;
        author.make_room(class, bytes).await?;
        let (is_written, on_its_way) = author.write(class, |draft| write_if(draft, guards, writes))?;
        on_its_way.durable().await?;
        author.seal_if_large();
        Ok(is_written)
    }
}

impl From<Refused> for StoreError {
    fn from(refused: Refused) -> StoreError {
        match refused {
            Refused::Full => StoreError::Full,
            Refused::TooLarge(error) => StoreError::Unavailable(Box::new(error)),
            Refused::Failed(error) => error,
        }
    }
}

/// Taking a partition over, and taking things away, must be possible on a full disk. What is cut from a bucket of the
/// history comes with the bucket's new size.
fn class_of(writes: &[Write]) -> Class {
    let makes_more = |write: &Write| matches!(write, Write::Put(key, _) if !is_ownership(key));
    let cuts = |write: &Write| matches!(write, Write::DeleteRange(..));
    if writes.iter().any(makes_more) && !writes.iter().any(cuts) { Class::New } else { Class::End }
}

fn bytes_of(write: &Write) -> usize {
    OP_BYTES
        + match write {
            Write::Put(key, value) => key.len() + value.len(),
            Write::Delete(key) => key.len(),
            Write::DeleteRange(from, until) => from.len() + until.len(),
        }
}

fn write_if<C: ColdTier>(
    draft: &mut Draft<'_, C>,
    guards: &[Guard],
    writes: Vec<Write>,
) -> Result<bool, StoreError> {
    for (key, value) in guards {
        if draft.read(key)? != *value {
            return Ok(false);
        }
    }
    for write in writes {
        match write {
            Write::Put(key, value) => draft.put_bytes(key, value),
            Write::Delete(key) => draft.delete(key),
            Write::DeleteRange(from, until) => draft.clear(&from, &until),
        }
    }
    Ok(true)
}
