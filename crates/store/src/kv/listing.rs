//! Pages for people: ranges of many partitions, read in pieces and merged.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use punctual_core::{EndedTask, PartitionId, Place, RowKey, Task};

use super::keys::{Key, QUEUE_PREFIX, Table, WINDOW_PREFIX};
use super::reads::prefixes;
use super::rows::decode;
use super::{OrderedKv, keys};
use crate::paging::{LOOKED_MAX, first_key, page_key};
use crate::place::hour_of;
use crate::{Filter, Listed, Page, PageKey, StoreError};

/// How many rows of one source are read at once, at least and at most.
const PIECE_MIN: usize = 4;
const PIECE_MAX: usize = 100;
/// How many reads are under way together: each goes to a thread that may wait for the disk, and back.
const READS_AT_ONCE: usize = 8;

pub(super) async fn list<K: OrderedKv>(
    kv: &K,
    partitions: u16,
    filter: &Filter,
    from: Option<PageKey>,
    limit: usize,
) -> Result<Page, StoreError> {
    let partitions = (0..partitions).map(PartitionId);
    let found = partitions.map(|partition| {
        let first = first_key(filter, from, partition);
        sources_of(kv, partition, filter, first)
    });
    let found: Vec<Vec<Source>> = stream::iter(found).buffered(READS_AT_ONCE).try_collect().await?;
    let mut sources: Vec<Source> = found.into_iter().flatten().collect();
    // Tasks spread evenly over partitions, so that most sources give a page no more than their share. Reading more from
    // each would make a page of a hundred cost thousands of rows.
    let share = 2 * limit.saturating_add(1) / sources.len().max(1);
    sources.iter_mut().for_each(|source| source.piece = share.clamp(PIECE_MIN, PIECE_MAX));
    let first: Vec<_> = sources.iter_mut().map(|source| source.head(kv)).collect();
    let first: Vec<Option<PageKey>> = stream::iter(first).buffered(READS_AT_ONCE).try_collect().await?;
    let first = first.into_iter().enumerate();
    let mut heads: BinaryHeap<_> = first.filter_map(|(n, key)| Some(Reverse((key?, n)))).collect();
    let (mut page, mut looked) = (Page::default(), 0);
    while let Some(Reverse((key, n))) = heads.pop() {
        if filter.until.is_some_and(|until| key.at >= until) {
            break;
        }
        let row = sources[n].read.pop_front().map(|(_, row)| row).filter(|row| takes(filter, row));
        // A next page begins with a row that is asked for: where others lie is nobody's business.
        if (row.is_some() && page.tasks.len() == limit) || looked == LOOKED_MAX {
            page.next = Some(key);
            break;
        }
        looked += 1;
        page.tasks.extend(row);
        heads.extend(sources[n].head(kv).await?.map(|key| Reverse((key, n))));
    }
    Ok(page)
}

fn takes(filter: &Filter, row: &Listed) -> bool {
    match row {
        Listed::Live(task) => filter.takes(task),
        Listed::Ended(ended) => filter.takes_ended(ended),
    }
}

/// A range of rows in the order of pages.
struct Source {
    partition: PartitionId,
    table: Table,
    from: Bytes,
    until: Bytes,
    read: VecDeque<(PageKey, Listed)>,
    /// How many rows are read next. It doubles each time: whoever reads on wants many.
    piece: usize,
}

/// The ranges of a partition that hold what is asked for: windows and parked rows, or queues of the history.
async fn sources_of<K: OrderedKv>(
    kv: &K,
    partition: PartitionId,
    filter: &Filter,
    first: RowKey,
) -> Result<Vec<Source>, StoreError> {
    let (table, length) =
        if filter.ended { (Table::Ended, QUEUE_PREFIX) } else { (Table::Windows, WINDOW_PREFIX) };
    let range = Key::table(partition, table);
    let range = filter.queue.map_or(range.clone(), |queue| range.queue(queue));
    let found = prefixes(kv, range.clone().done(), &range.end(), length).await?;
    let source = |table, from, until| Source {
        partition,
        table,
        from,
        until,
        read: VecDeque::new(),
        piece: PIECE_MAX,
    };
    let begin = |prefix: &Bytes| {
        let key = Key::from(prefix);
        let key = if filter.ended { key.hour(hour_of(first.wake_at)) } else { key };
        key.row(first).done()
    };
    let found = found.iter().filter(|prefix| filter.takes_queue(keys::queue_of(prefix)));
    let mut sources: Vec<Source> =
        found.map(|prefix| source(table, begin(prefix), keys::after_prefix(prefix))).collect();
    if !filter.ended {
        let order = Key::table(partition, Table::ParkedOrder);
        sources.push(source(Table::ParkedOrder, order.clone().row(first).done(), order.end()));
    }
    Ok(sources)
}

impl Source {
    /// The next row's place in the order, read when it is not there yet.
    async fn head<K: OrderedKv>(&mut self, kv: &K) -> Result<Option<PageKey>, StoreError> {
        while self.read.is_empty() && self.from < self.until {
            let piece = self.piece;
            self.piece = (2 * piece).min(PIECE_MAX);
            self.read_on(kv, piece).await?;
        }
        Ok(self.read.front().map(|(key, _)| *key))
    }

    async fn read_on<K: OrderedKv>(&mut self, kv: &K, piece: usize) -> Result<(), StoreError> {
        let pairs = kv.scan(&self.from, &self.until, piece).await?;
        self.from = match pairs.last() {
            Some((last, _)) if pairs.len() == piece => keys::just_after(last),
            _ => self.until.clone(),
        };
        if self.table == Table::ParkedOrder {
            return self.read_parked(kv, &pairs).await;
        }
        for (_, value) in &pairs {
            self.push(value)?;
        }
        Ok(())
    }

    /// The order of parked rows names their places; the rows are elsewhere, and may have left since.
    async fn read_parked<K: OrderedKv>(
        &mut self,
        kv: &K,
        pairs: &[(Bytes, Bytes)],
    ) -> Result<(), StoreError> {
        let places: Result<Vec<Place>, StoreError> = pairs.iter().map(|(_, place)| decode(place)).collect();
        let rows: Vec<Bytes> = places?.into_iter().map(|place| keys::place(self.partition, place)).collect();
        for value in kv.get_many(&rows).await?.iter().flatten() {
            self.push(value)?;
        }
        Ok(())
    }

    fn push(&mut self, value: &Bytes) -> Result<(), StoreError> {
        let (key, row) = if self.table == Table::Ended {
            let ended: EndedTask = decode(value)?;
            (crate::place::birth_key(&ended.task.id), Listed::Ended(ended))
        } else {
            let task: Task = decode(value)?;
            (task.key(), Listed::Live(task))
        };
        self.read.push_back((page_key(self.partition, key), row));
        Ok(())
    }
}
