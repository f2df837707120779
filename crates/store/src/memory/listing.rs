//! Pages for people: the ordered rows of many windows or buckets, merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use punctual_core::{EndedTask, PartitionId, RowKey, Task, Timestamp};

use super::partition::Partition;
use crate::paging::{LOOKED_MAX, first_key, page_key};
use crate::place::hour_of;
use crate::{Filter, Listed, Page, PageKey};

/// A page of the live tasks, or of the ended ones.
pub(super) fn list(partitions: &[Partition], filter: &Filter, from: Option<PageKey>, limit: usize) -> Page {
    let numbered = (0..).map(PartitionId).zip(partitions);
    let starts = numbered.map(|(id, partition)| (id, partition, first_key(filter, from, id)));
    if filter.ended {
        let sources = starts.flat_map(|(id, partition, from)| ended_sources(filter, id, partition, from));
        page(sources, limit, filter.until, |row| filter.takes_ended(row).then(|| Listed::Ended(row.clone())))
    } else {
        let sources = starts.flat_map(|(id, partition, from)| live_sources(filter, id, partition, from));
        page(sources, limit, filter.until, |row| filter.takes(row).then(|| Listed::Live(row.clone())))
    }
}

type Source<'a, T> = Box<dyn Iterator<Item = (PageKey, &'a T)> + 'a>;

fn live_sources<'a>(
    filter: &'a Filter,
    id: PartitionId,
    partition: &'a Partition,
    from: RowKey,
) -> impl Iterator<Item = Source<'a, Task>> {
    let keyed = move |task: &'a Task| (page_key(id, task.key()), task);
    let windows = partition.rows.windows().map(|(window, _)| window);
    let windows = windows.filter(|window| filter.takes_queue(window.queue));
    let windows = windows
        .map(move |window| -> Source<'a, Task> { Box::new(partition.live_in(window, from).map(keyed)) });
    let parked = partition.rows.parked(from).filter(|task| partition.is_live(task)).map(keyed);
    windows.chain([Box::new(parked) as Source<'a, Task>])
}

fn ended_sources<'a>(
    filter: &'a Filter,
    id: PartitionId,
    partition: &'a Partition,
    from: RowKey,
) -> impl Iterator<Item = Source<'a, EndedTask>> {
    let asked = partition
        .history
        .buckets()
        .filter(move |(bucket, _)| bucket.hour >= hour_of(from.wake_at) && filter.takes_queue(bucket.queue));
    asked.map(move |(_, bucket)| -> Source<'a, EndedTask> {
        Box::new(bucket.rows.range(from..).map(move |(key, row)| (page_key(id, *key), &**row)))
    })
}

/// Merges the sources and takes what matches, until the page is full or enough was looked at.
fn page<'a, T: 'a>(
    sources: impl Iterator<Item = Source<'a, T>>,
    limit: usize,
    until: Option<Timestamp>,
    take: impl Fn(&T) -> Option<Listed>,
) -> Page {
    let mut sources: Vec<_> = sources.map(Iterator::peekable).collect();
    let first_keys =
        sources.iter_mut().enumerate().filter_map(|(n, rows)| Some(Reverse((rows.peek()?.0, n))));
    let mut heads: BinaryHeap<_> = first_keys.collect();
    let mut page = Page::default();
    let mut looked = 0;
    while let Some(Reverse((key, n))) = heads.pop() {
        if until.is_some_and(|until| key.at >= until) {
            break;
        }
        let row = sources[n].next().and_then(|(_, row)| take(row));
        // A next page begins with a row that is asked for: where others lie is nobody's business.
        if (row.is_some() && page.tasks.len() == limit) || looked == LOOKED_MAX {
            page.next = Some(key);
            break;
        }
        looked += 1;
        page.tasks.extend(row);
        heads.extend(sources[n].peek().map(|(key, _)| Reverse((*key, n))));
    }
    page
}
