//! Drops history by whole buckets, and forgets identities by whole hours, under the owner's fence.

use std::time::Duration;

use bytes::Bytes;
use punctual_core::{EndedTask, Fence, Identity, QueueId, TaskId, Timestamp};

use super::changes::CHANGE_MAX;
use super::keys::{Key, Table};
use super::rows::{BucketRow, IdentityRow, decode};
use super::txn::{Rows, Txn};
use super::{OrderedKv, SCAN_MAX, keys, read_owner};
use crate::place::{self, BucketId, hour_of};
use crate::{Pruned, Retention, StoreError};

/// How many identities one call forgets.
const FORGOTTEN_MAX: usize = 1_000;

pub(super) async fn prune<K: OrderedKv>(
    kv: &K,
    fence: Fence,
    queue: QueueId,
    retention: Retention,
    buckets_max: usize,
) -> Result<Pruned, StoreError> {
    check(kv, fence).await?;
    let mut pruned = Pruned::default();
    let buckets = buckets_of(kv, fence, queue).await?;
    pruned.bytes = buckets.iter().fold(0, |sum, (_, row)| row.bytes.saturating_add(sum));
    let bytes_max = retention.bytes_max.unwrap_or(u64::MAX);
    for (key, row) in buckets {
        let (bucket, wait) = (BucketId { queue, hour: row.hour }, past_in(&row, retention));
        let too_much = pruned.bytes.saturating_sub(bytes_max);
        if !wait.is_zero() && too_much == 0 {
            pruned.next_in = Some(pruned.next_in.map_or(wait, |other| other.min(wait)));
            continue;
        }
        if pruned.buckets == buckets_max {
            pruned.more = true;
            break;
        }
        let gone = if wait.is_zero() {
            drop_bucket(kv, fence, key, bucket, |row| past_in(row, retention).is_zero()).await?
        } else if row.bytes <= too_much {
            drop_bucket(kv, fence, key, bucket, |row| row.bytes <= too_much).await?
        } else {
            pruned.next_in = Some(pruned.next_in.map_or(wait, |other| other.min(wait)));
            cut_bucket(kv, fence, &key, bucket, too_much).await?
        };
        pruned.bytes = pruned.bytes.saturating_sub(gone);
        pruned.buckets += 1;
        if !wait.is_zero() && gone < too_much.min(row.bytes) {
            // The rest of this one is older than the next one.
            pruned.more = true;
            break;
        }
    }
    pruned.more |= forget_identities(kv, fence, queue, retention.identity_before).await?;
    if let Some(hour) = first_identities(kv, fence, queue).await? {
        let wait = place::forgotten_in(hour, retention);
        pruned.next_in = Some(pruned.next_in.map_or(wait, |other| other.min(wait)));
    }
    Ok(pruned)
}

/// What is known of a queue's buckets, the oldest first.
async fn buckets_of<K: OrderedKv>(
    kv: &K,
    fence: Fence,
    queue: QueueId,
) -> Result<Vec<(Bytes, BucketRow)>, StoreError> {
    let table = Key::table(fence.partition, Table::Buckets).queue(queue);
    let (mut from, until) = (table.clone().done(), table.end());
    let mut buckets = Vec::new();
    loop {
        let page = kv.scan(&from, &until, SCAN_MAX).await?;
        let Some((last, _)) = page.last() else { return Ok(buckets) };
        from = keys::just_after(last);
        for (key, value) in page {
            buckets.push((key, decode(&value)?));
        }
    }
}

/// The first hour in which tasks ended whose identities are remembered.
async fn first_identities<K: OrderedKv>(
    kv: &K,
    fence: Fence,
    queue: QueueId,
) -> Result<Option<u32>, StoreError> {
    let from = keys::ended_identities(fence.partition, queue, 0).done();
    let until = keys::ended_identities(fence.partition, queue, u32::MAX).done();
    let page = kv.scan(&from, &until, 1).await?;
    page.first().map(|(key, _)| keys::hour_of_ended_identity(key)).transpose()
}

async fn check<K: OrderedKv>(kv: &K, fence: Fence) -> Result<(), StoreError> {
    fenced(kv, fence).await.map(drop)
}

/// A write that happens only while the fence holds.
async fn fenced<K: OrderedKv>(kv: &K, fence: Fence) -> Result<Txn<'_, K>, StoreError> {
    let mut txn = Txn::new(kv);
    let owner = read_owner(&mut txn, fence.partition).await?;
    if owner.admits(fence) { Ok(txn) } else { Err(StoreError::Fenced) }
}

fn past_in(row: &BucketRow, retention: Retention) -> Duration {
    let at = |newest: Option<i64>| newest.map(Timestamp::from_micros);
    place::past_in(at(row.newest_finished), at(row.newest_dead), retention)
}

/// Unless something ended in it just now. Answers how many bytes are gone.
async fn drop_bucket<K: OrderedKv>(
    kv: &K,
    fence: Fence,
    key: Bytes,
    bucket: BucketId,
    may_go: impl Fn(&BucketRow) -> bool,
) -> Result<u64, StoreError> {
    loop {
        let mut txn = fenced(kv, fence).await?;
        let row: Option<BucketRow> = txn.row(&key).await?;
        let Some(row) = row.filter(&may_go) else { return Ok(0) };
        let rows = keys::bucket_rows(fence.partition, bucket);
        txn.delete(key.clone());
        txn.delete_range(rows.clone().done(), rows.end());
        if txn.commit().await? {
            return Ok(row.bytes);
        }
    }
}

/// Drops the oldest of a bucket that is too large to be kept, and too large to be dropped: so many bytes of it, or as
/// much as is read at once. Answers how many bytes are gone.
async fn cut_bucket<K: OrderedKv>(
    kv: &K,
    fence: Fence,
    key: &Bytes,
    bucket: BucketId,
    bytes: u64,
) -> Result<u64, StoreError> {
    let rows = keys::bucket_rows(fence.partition, bucket);
    let (from, end) = (rows.clone().done(), rows.end());
    loop {
        let mut txn = fenced(kv, fence).await?;
        // Whatever ends in this bucket meanwhile changes this row, and then it is done again.
        let Some(row): Option<BucketRow> = txn.row(key).await? else { return Ok(0) };
        let (mut gone, mut until) = (0, None);
        for (key, value) in kv.scan(&from, &end, SCAN_MAX).await? {
            if gone >= bytes {
                break;
            }
            let ended: EndedTask = decode(&value)?;
            gone += EndedTask::kept_bytes(&ended.task, &ended.end);
            until = Some(keys::just_after(&key));
        }
        // What an older version wrote was not counted: a bucket may be smaller than it was thought, and even empty.
        let bytes = if until.is_some() { row.bytes.saturating_sub(gone) } else { 0 };
        let gone = row.bytes - bytes;
        txn.put(key.clone(), &BucketRow { bytes, ..row });
        txn.delete_range(from.clone(), until.unwrap_or_else(|| from.clone()));
        if txn.commit().await? {
            return Ok(gone);
        }
    }
}

/// Answers whether there is more to forget.
async fn forget_identities<K: OrderedKv>(
    kv: &K,
    fence: Fence,
    queue: QueueId,
    before: Timestamp,
) -> Result<bool, StoreError> {
    let from = keys::ended_identities(fence.partition, queue, 0).done();
    let until = keys::ended_identities(fence.partition, queue, hour_of(before)).done();
    let mut forgotten = 0;
    while forgotten < FORGOTTEN_MAX {
        let page = kv.scan(&from, &until, CHANGE_MAX / 4).await?;
        if page.is_empty() {
            return Ok(false);
        }
        let mut txn = fenced(kv, fence).await?;
        for (key, value) in &page {
            forget(&mut txn, fence, key, decode(value)?, before).await?;
        }
        txn.commit().await?;
        forgotten += page.len();
    }
    Ok(!kv.scan(&from, &until, 1).await?.is_empty())
}

/// Forgets an identity, unless its task was revived or ended again later.
async fn forget<K: OrderedKv>(
    txn: &mut Txn<'_, K>,
    fence: Fence,
    key: &Bytes,
    id: TaskId,
    before: Timestamp,
) -> Result<(), StoreError> {
    let identity = key.last_chunk().map(|bytes| Identity(u128::from_be_bytes(*bytes)));
    let identity = identity.ok_or_else(|| StoreError::Corrupt("an identity's key is too short".into()))?;
    let row_key = keys::identity(fence.partition, identity);
    let row: Option<IdentityRow> = txn.row(&row_key).await?;
    let ended = row.filter(|row| row.id == id).and_then(|row| row.ended);
    if ended.is_some_and(|(_, at)| hour_of(at) < hour_of(before)) {
        txn.delete(row_key);
    }
    txn.delete(key.clone());
    Ok(())
}
