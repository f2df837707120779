//! The coordination map as rows: one growing version for all keys, and expired entries swept by later writes.

use bytes::Bytes;
use punctual_core::Timestamp;

use super::rows::{MapRow, VersionRow, decode};
use super::txn::{Rows, Txn};
use super::{OrderedKv, SCAN_MAX, keys};
use crate::expiry::{SWEEP_AFTER, SWEPT_MAX};
use crate::{MapEntry, StoreError, Swap};

pub(super) async fn get<K: OrderedKv>(
    kv: &K,
    now: Timestamp,
    key: &str,
) -> Result<Option<MapEntry>, StoreError> {
    let row = kv.get(&keys::map(key).done()).await?;
    let row: Option<MapRow> = row.map(|row| decode(&row)).transpose()?;
    Ok(row.and_then(|row| live(now, row)))
}

fn live(now: Timestamp, row: MapRow) -> Option<MapEntry> {
    let is_live = row.expires_at.is_none_or(|at| now.as_micros() < at);
    is_live.then_some(MapEntry { value: row.value, version: row.version })
}

pub(super) async fn entries<K: OrderedKv>(
    kv: &K,
    now: Timestamp,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<(Box<str>, MapEntry)>, StoreError> {
    let (first, until) = (keys::map(prefix).done(), keys::map(prefix).end());
    let mut from = after.map_or(first.clone(), |after| keys::just_after(&keys::map(after).done())).max(first);
    let mut found = Vec::new();
    while found.len() < limit {
        let page = kv.scan(&from, &until, SCAN_MAX.min(limit)).await?;
        let Some((last, _)) = page.last() else { break };
        from = keys::just_after(last);
        for (key, value) in &page {
            let key = keys::map_key(key).ok_or_else(|| StoreError::Corrupt("a key is no text".into()))?;
            found.extend(live(now, decode(value)?).map(|entry| (key.into(), entry)));
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// Tried until nobody interferes: that somebody did means that they got on.
pub(super) async fn compare_and_set<K: OrderedKv>(
    kv: &K,
    now: Timestamp,
    key: &str,
    expected: Option<u64>,
    value: Option<Bytes>,
    expires_at: Option<Timestamp>,
) -> Result<Swap, StoreError> {
    loop {
        let mut txn = Txn::new(kv);
        let row_key = keys::map(key).done();
        let row: Option<MapRow> = txn.row(&row_key).await?;
        let old_expiry = row.as_ref().and_then(|row| row.expires_at);
        let present = row.and_then(|row| live(now, row));
        if present.as_ref().map(|entry| entry.version) != expected {
            return Ok(Swap::Conflict(present));
        }
        sweep(kv, &mut txn, now).await?;
        if let Some(at) = old_expiry {
            txn.delete(keys::map_expiry(Timestamp::from_micros(at), key));
        }
        let swap = match value.clone() {
            Some(value) => Swap::Done(Some(set(&mut txn, key, value, expires_at).await?)),
            None => {
                txn.delete(row_key);
                Swap::Done(None)
            }
        };
        if txn.commit().await? {
            return Ok(swap);
        }
    }
}

async fn set<K: OrderedKv>(
    txn: &mut Txn<'_, K>,
    key: &str,
    value: Bytes,
    expires_at: Option<Timestamp>,
) -> Result<u64, StoreError> {
    let latest: Option<VersionRow> = txn.row(&keys::MAP_VERSION).await?;
    let version = latest.map_or(0, |row| row.version) + 1;
    txn.put(keys::MAP_VERSION, &VersionRow { version });
    if let Some(at) = expires_at {
        txn.put_bytes(keys::map_expiry(at, key), Bytes::copy_from_slice(key.as_bytes()));
    }
    let row = MapRow { value, version, expires_at: expires_at.map(Timestamp::as_micros) };
    txn.put(keys::map(key).done(), &row);
    Ok(version)
}

/// Removes a few entries that expired long ago.
async fn sweep<K: OrderedKv>(kv: &K, txn: &mut Txn<'_, K>, now: Timestamp) -> Result<(), StoreError> {
    let (from, until) = keys::map_expiries(now - SWEEP_AFTER);
    for (expiry, key) in kv.scan(&from, &until, SWEPT_MAX).await? {
        let key = std::str::from_utf8(&key).map_err(|error| StoreError::Corrupt(error.into()))?;
        let row_key = keys::map(key).done();
        let row: Option<MapRow> = txn.row(&row_key).await?;
        let expires_at = row.and_then(|row| row.expires_at).map(Timestamp::from_micros);
        if expires_at.is_some_and(|at| keys::map_expiry(at, key) == expiry) {
            txn.delete(row_key);
        }
        txn.delete(expiry);
    }
    Ok(())
}
