//! What drivers share when they list tasks: the order, the filter and how far a page looks.

use std::cmp::Ordering;

use punctual_core::{EndedTask, PartitionId, QueueId, RowKey, Task, Timestamp};

use crate::{Filter, PageKey};

/// How many rows one page looks at, whether they match or not.
pub(crate) const LOOKED_MAX: usize = 10_000;

impl Filter {
    /// Whether tasks of a queue are asked for.
    pub(crate) fn takes_queue(&self, queue: QueueId) -> bool {
        self.queue.is_none_or(|asked| asked == queue)
            && self.queues.as_ref().is_none_or(|asked| asked.binary_search(&queue).is_ok())
    }

    /// Whether a task is of the queue, lane and name asked for.
    pub(crate) fn takes(&self, task: &Task) -> bool {
        self.takes_queue(task.id.queue)
            && self.lane.as_ref().is_none_or(|lane| task.spec.lane.as_ref() == Some(lane))
            && self.name.as_ref().is_none_or(|name| task.spec.name.as_ref() == Some(name))
    }

    /// The same, for one that ended.
    pub(crate) fn takes_ended(&self, row: &EndedTask) -> bool {
        self.takes(&row.task) && self.state.is_none_or(|state| row.end.state == state)
    }
}

/// The first row of a partition that can be on the page: the order is time, partition, number.
pub(crate) fn first_key(filter: &Filter, from: Option<PageKey>, partition: PartitionId) -> RowKey {
    let asked = filter.from.map_or(RowKey::FIRST, RowKey::at);
    let paged = from.map_or(RowKey::FIRST, |from| match partition.cmp(&from.partition) {
        Ordering::Less => RowKey::at(Timestamp::from_micros(from.at.as_micros() + 1)),
        Ordering::Equal => RowKey { wake_at: from.at, seq: from.seq },
        Ordering::Greater => RowKey::at(from.at),
    });
    asked.max(paged)
}

/// Where a row stands in the order of pages.
pub(crate) fn page_key(partition: PartitionId, key: RowKey) -> PageKey {
    PageKey { at: key.wake_at, partition, seq: key.seq }
}
