//! Offers that wait for one destination, in order; and whether somebody of each queue is among them.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::id::{PartitionId, QueueId};
use crate::message::Offer;

/// The line at a destination.
#[derive(Default)]
pub struct Waiting {
    offers: BTreeSet<Offer>,
    /// How many of them are of each queue that has any.
    of_queue: FxHashMap<QueueId, usize>,
}

impl Waiting {
    /// So many of the last are looked at for one whose queue has others.
    const LOOKED_AT_MAX: usize = 64;

    pub fn len(&self) -> usize {
        self.offers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    /// How many queues they are of.
    pub fn queues(&self) -> usize {
        self.of_queue.len()
    }

    pub fn has_of(&self, queue: QueueId) -> bool {
        self.of_queue.contains_key(&queue)
    }

    pub fn insert(&mut self, offer: Offer) {
        if self.offers.insert(offer) {
            *self.of_queue.entry(offer.queue).or_default() += 1;
        }
    }

    pub fn remove(&mut self, offer: &Offer) -> bool {
        let was_there = self.offers.remove(offer);
        if was_there {
            self.has_left(offer.queue);
        }
        was_there
    }

    fn has_left(&mut self, queue: QueueId) {
        let Some(count) = self.of_queue.get_mut(&queue) else { return };
        *count -= 1;
        if *count == 0 {
            self.of_queue.remove(&queue);
        }
    }

    /// Takes the best out.
    pub fn pop_first(&mut self) -> Option<Offer> {
        let first = self.offers.pop_first()?;
        self.has_left(first.queue);
        Some(first)
    }

    /// Takes the last out,
    pub fn pop_last(&mut self) -> Option<Offer> {
        let last = self.offers.pop_last()?;
        self.has_left(last.queue);
        Some(last)
    }

    /// or rather the last whose queue has others here.
    pub fn pop_last_of_many(&mut self) -> Option<Offer> {
        let mut last = self.offers.iter().rev().take(Self::LOOKED_AT_MAX);
        match last.find(|offer| self.of_queue.get(&offer.queue).is_some_and(|count| *count > 1)).copied() {
            Some(last) => self.remove(&last).then_some(last),
            None => self.pop_last(),
        }
    }

    /// Takes the best of the queue out that comes after this one, in a circle.
    pub fn pop_of_next_queue(&mut self, after: Option<QueueId>) -> Option<Offer> {
        let queues = || self.of_queue.keys().copied();
        let next = queues().filter(|queue| Some(*queue) > after).min().or_else(|| queues().min())?;
        let best = *self.offers.iter().find(|offer| offer.queue == next)?;
        self.remove(&best).then_some(best)
    }

    pub fn forget_partition(&mut self, partition: PartitionId) {
        self.offers.retain(|offer| offer.partition != partition);
        self.of_queue.clear();
        for offer in &self.offers {
            *self.of_queue.entry(offer.queue).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Priority, Seq};
    use crate::task::RowKey;
    use crate::time::Timestamp;

    fn offer(seq: u64, queue: u32) -> Offer {
        Offer {
            priority: Priority::default(),
            start_by: Timestamp::MAX,
            key: RowKey { wake_at: Timestamp::default(), seq: Seq(seq) },
            partition: PartitionId(seq as u16 % 2),
            queue: QueueId(queue),
            destination: Some(7),
            for_worker: false,
        }
    }

    #[test]
    fn queues_have_their_turn_and_the_last_of_a_queue_stays() {
        let mut waiting = Waiting::default();
        for (seq, queue) in [(1, 4), (2, 4), (3, 4), (4, 4), (5, 9), (6, 2)] {
            waiting.insert(offer(seq, queue));
        }
        assert_eq!((waiting.len(), waiting.queues(), waiting.has_of(QueueId(9))), (6, 3, true));
        assert_eq!(waiting.pop_last_of_many(), Some(offer(4, 4)), "the others are alone");
        assert_eq!(waiting.pop_of_next_queue(None), Some(offer(6, 2)));
        assert_eq!(waiting.pop_of_next_queue(Some(QueueId(2))), Some(offer(1, 4)));
        assert_eq!(waiting.pop_of_next_queue(Some(QueueId(4))), Some(offer(5, 9)));
        assert_eq!(waiting.pop_of_next_queue(Some(QueueId(9))), Some(offer(2, 4)));
        assert_eq!((waiting.len(), waiting.queues(), waiting.has_of(QueueId(9))), (1, 1, false));
        waiting.forget_partition(PartitionId(1));
        assert_eq!((waiting.is_empty(), waiting.queues(), waiting.pop_last_of_many()), (true, 0, None));
    }
}
