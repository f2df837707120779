//! What an owner reads: windows, obstacles, schedules, and tasks by id.

use bytes::Bytes;
use punctual_core::{EndedTask, Obstacle, PartitionId, Place, RowKey, Task, TaskId, Timestamp, WindowId};

use super::keys::{Key, Table};
use super::rows::{IdentityRow, Row, decode};
use super::txn::{Rows, Txn};
use super::{OrderedKv, SCAN_MAX, keys};
use crate::place::birth_place;
use crate::{Found, Held, Loaded, Query, Standing, StoreError, WindowStanding};

/// The rows of a range.
async fn rows<K: OrderedKv, R: Row>(
    kv: &K,
    from: &Bytes,
    until: &Bytes,
    limit: usize,
) -> Result<Vec<R>, StoreError> {
    kv.scan(from, until, limit).await?.iter().map(|(_, value)| decode(value)).collect()
}

/// The rows of a whole table, however many.
async fn table<K: OrderedKv, R: Row>(
    kv: &K,
    partition: PartitionId,
    table: Table,
) -> Result<Vec<R>, StoreError> {
    let (mut from, until) = (Key::table(partition, table).done(), Key::table(partition, table).end());
    let mut all = Vec::new();
    loop {
        let page = kv.scan(&from, &until, SCAN_MAX).await?;
        for (_, value) in &page {
            all.push(decode(value)?);
        }
        match page.last() {
            Some((last, _)) if page.len() == SCAN_MAX => from = keys::just_after(last),
            _ => return Ok(all),
        }
    }
}

/// What the keys of a table begin with, each once: found by leaping from one to the next.
pub(super) async fn prefixes<K: OrderedKv>(
    kv: &K,
    mut from: Bytes,
    until: &Bytes,
    length: usize,
) -> Result<Vec<Bytes>, StoreError> {
    let mut found = Vec::new();
    while let Some((key, _)) = kv.scan(&from, until, 1).await?.pop() {
        let prefix = key.slice(..length.min(key.len()));
        from = keys::after_prefix(&prefix);
        found.push(prefix);
    }
    Ok(found)
}

pub(super) async fn standing<K: OrderedKv>(kv: &K, partition: PartitionId) -> Result<Standing, StoreError> {
    let marks: Vec<(WindowId, Timestamp)> = table(kv, partition, Table::LowWater).await?;
    let windows = windows(kv, partition, &marks).await?;
    let ids: Vec<TaskId> = table(kv, partition, Table::Leased).await?;
    let queries: Vec<Query> = ids.into_iter().map(Query::Id).collect();
    let leased = find(kv, partition, &queries).await?.into_iter().filter_map(|found| match found {
        Some(Found::Live(task)) if task.begun.is_some_and(|begun| begun.lease.is_some()) => Some(task),
        _ => None,
    });
    Ok(Standing { windows, leased: leased.collect() })
}

/// The windows that have a mark or a row. What lies before a mark is gone: it is leapt over, for there a store may
/// have to look at all that was ever deleted.
async fn windows<K: OrderedKv>(
    kv: &K,
    partition: PartitionId,
    marks: &[(WindowId, Timestamp)],
) -> Result<Vec<WindowStanding>, StoreError> {
    let mut windows = Vec::new();
    let (mut from, until) =
        (Key::table(partition, Table::Windows).done(), Key::table(partition, Table::Windows).end());
    for (window, low_water) in marks {
        let of = || keys::window(partition, *window);
        add_unmarked(kv, &mut windows, from, of().done()).await?;
        let first: Vec<Task> = rows(kv, &of().row(RowKey::at(*low_water)).done(), &of().end(), 1).await?;
        let first = first.first().map(|task| task.wake_at);
        windows.push(WindowStanding { window: *window, low_water: *low_water, first });
        from = of().end();
    }
    add_unmarked(kv, &mut windows, from, until).await?;
    Ok(windows)
}

/// Windows with rows and without a mark.
async fn add_unmarked<K: OrderedKv>(
    kv: &K,
    windows: &mut Vec<WindowStanding>,
    mut from: Bytes,
    until: Bytes,
) -> Result<(), StoreError> {
    while let Some((key, row)) = kv.scan(&from, &until, 1).await?.pop() {
        let task: Task = decode(&row)?;
        let first = Some(task.wake_at);
        windows.push(WindowStanding { window: task.window(), low_water: Timestamp::MIN, first });
        from = keys::after_prefix(&key[..keys::WINDOW_PREFIX.min(key.len())]);
    }
    Ok(())
}

pub(super) async fn held<K: OrderedKv>(
    kv: &K,
    partition: PartitionId,
    after: Option<Obstacle>,
    limit: usize,
) -> Result<Vec<Held>, StoreError> {
    let first = || Key::table(partition, Table::Held).done();
    let from = after.map_or_else(first, |after| keys::just_after(&keys::held(partition, after)));
    rows(kv, &from, &Key::table(partition, Table::Held).end(), limit).await
}

pub(super) async fn load<K: OrderedKv>(
    kv: &K,
    partition: PartitionId,
    window: WindowId,
    from: RowKey,
    until: Timestamp,
    limit: usize,
) -> Result<Loaded, StoreError> {
    let key = |row: RowKey| keys::window(partition, window).row(row).done();
    let tasks: Vec<Task> = rows(kv, &key(from), &key(RowKey::at(until)), limit).await?;
    let rest = match tasks.last() {
        Some(last) if tasks.len() == limit => last.key().after(),
        _ => from.max(RowKey::at(until)),
    };
    let next = rows::<K, Task>(kv, &key(rest), &keys::window(partition, window).end(), 1).await?;
    Ok(Loaded { tasks, next: next.first().map(|task| task.wake_at) })
}

pub(super) async fn parked<K: OrderedKv>(
    kv: &K,
    partition: PartitionId,
    obstacle: Obstacle,
    from: RowKey,
    limit: usize,
) -> Result<Vec<Task>, StoreError> {
    let from = keys::parked(partition, obstacle).row(from).done();
    rows(kv, &from, &keys::parked(partition, obstacle).end(), limit).await
}

pub(super) async fn schedules<K: OrderedKv>(
    kv: &K,
    partition: PartitionId,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<(Box<str>, Bytes)>, StoreError> {
    let first = || Key::table(partition, Table::Schedules).done();
    let from = after.map_or_else(first, |after| keys::just_after(&keys::schedule(partition, after)));
    let pairs = kv.scan(&from, &Key::table(partition, Table::Schedules).end(), limit).await?;
    let named = |(key, row): (Bytes, Bytes)| {
        let name = keys::schedule_name(&key);
        let name = name.ok_or_else(|| StoreError::Corrupt("a schedule's name is no text".into()))?;
        Ok((name.into(), row))
    };
    pairs.into_iter().map(named).collect()
}

pub(super) async fn find<K: OrderedKv>(
    kv: &K,
    partition: PartitionId,
    queries: &[Query],
) -> Result<Vec<Option<Found>>, StoreError> {
    let mut found = Vec::with_capacity(queries.len());
    for query in queries {
        found.push(find_one(kv, partition, *query).await?);
    }
    Ok(found)
}

/// A row may move between two reads: that it is nowhere is answered only if nothing read has changed since.
async fn find_one<K: OrderedKv>(
    kv: &K,
    partition: PartitionId,
    query: Query,
) -> Result<Option<Found>, StoreError> {
    loop {
        let mut txn = Txn::new(kv);
        let found = match query {
            Query::Id(id) => find_id(&mut txn, partition, &id).await?,
            Query::Identity(identity) => {
                let row: Option<IdentityRow> = txn.row(&keys::identity(partition, identity)).await?;
                match row {
                    Some(row) => find_id(&mut txn, partition, &row.id).await?.or(forgotten(row)),
                    None => None,
                }
            }
        };
        if matches!(found, Some(Found::Live(_) | Found::Ended(_))) || txn.commit().await? {
            return Ok(found);
        }
    }
}

fn forgotten(row: IdentityRow) -> Option<Found> {
    row.ended.map(|(state, _)| Found::Forgotten { id: row.id, state })
}

async fn find_id<K: OrderedKv>(
    txn: &mut Txn<'_, K>,
    partition: PartitionId,
    id: &TaskId,
) -> Result<Option<Found>, StoreError> {
    let (moved, ended) = (keys::moved(partition, id.seq), keys::ended(partition, id));
    let birth = keys::place(partition, birth_place(id));
    txn.prefetch(vec![moved.clone(), birth.clone(), ended.clone()]).await?;
    let moved: Option<Place> = txn.row(&moved).await?;
    let place = moved.map_or(birth, |place| keys::place(partition, place));
    let row: Option<Task> = txn.row(&place).await?;
    if let Some(row) = row.filter(|row| row.id == *id) {
        return Ok(Some(Found::Live(row)));
    }
    let ended: Option<EndedTask> = txn.row(&ended).await?;
    Ok(ended.filter(|ended| ended.task.id == *id).map(Found::Ended))
}
