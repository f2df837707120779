//! Offers in the order in which they are let through.
//!
//! Nearly all of them come in at the far end and leave at the near one. A heap does that with a few comparisons, where a
//! search tree takes several times as many. The few that are withdrawn from the middle are noted, and passed over when
//! they come up.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use crate::id::Priority;
use crate::message::Offer;
use crate::task::RowKey;
use crate::time::Timestamp;

/// Offers, best first.
#[derive(Default)]
pub struct Offers {
    /// In order; there are few, and empty ones stay. The first of a heap is never one that was withdrawn.
    heaps: Vec<(Rank, BinaryHeap<Next>)>,
    /// Those that are still in their heap.
    withdrawn: FxHashSet<Offer>,
}

/// Priority, and those with a `start_by` before those without: within a rank without, the first is the oldest.
type Rank = (Priority, bool);

fn rank(offer: &Offer) -> Rank {
    (offer.priority, offer.start_by == Timestamp::MAX)
}

/// An offer among those of its rank. The greatest goes first, as heaps have it.
struct Next(Offer);

impl Next {
    /// As one number, which is compared in two steps where its parts would take six: heaps compare a lot.
    fn wake_at_and_seq(&self) -> u128 {
        let RowKey { wake_at, seq } = self.0.key;
        let from_the_beginning = wake_at.as_micros().wrapping_sub(i64::MIN) as u64;
        u128::from(from_the_beginning) << 64 | u128::from(seq.0)
    }
}

impl Ord for Next {
    fn cmp(&self, other: &Next) -> Ordering {
        let by_start = other.0.start_by.cmp(&self.0.start_by);
        let by_key = || other.wake_at_and_seq().cmp(&self.wake_at_and_seq());
        by_start.then_with(by_key).then_with(|| other.0.partition.cmp(&self.0.partition))
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Next) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    /// What heaps ask: whether the other one may go before this one.
    fn le(&self, other: &Next) -> bool {
        let (ours, theirs) = (self.wake_at_and_seq(), other.wake_at_and_seq());
        match self.0.start_by == other.0.start_by && ours != theirs {
            true => theirs < ours,
            false => self.cmp(other).is_le(),
        }
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Next) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Next {}

impl Offers {
    /// Adds one that is not there.
    pub fn insert(&mut self, offer: Offer) {
        // Withdrawn, and back before its turn came.
        if !self.withdrawn.is_empty() && self.withdrawn.remove(&offer) {
            return;
        }
        let rank = rank(&offer);
        let heap = match self.heaps.binary_search_by_key(&rank, |(of, _)| *of) {
            Ok(place) => place,
            Err(place) => {
                self.heaps.insert(place, (rank, BinaryHeap::new()));
                place
            }
        };
        self.heaps[heap].1.push(Next(offer));
    }

    /// Takes one out that is there.
    pub fn remove(&mut self, offer: Offer) {
        debug_assert!(self.iter().any(|other| *other == offer), "{offer:?} is not there");
        let rank = rank(&offer);
        let heap = self.heaps.iter_mut().find(|(of, _)| *of == rank).map(|(_, heap)| heap);
        match heap {
            Some(heap) if heap.peek().is_some_and(|Next(first)| *first == offer) => {
                heap.pop();
                pass_over(heap, &mut self.withdrawn);
            }
            _ => {
                self.withdrawn.insert(offer);
                self.drop_withdrawn_when_many();
            }
        }
    }

    /// The best.
    pub fn first(&self) -> Option<&Offer> {
        self.firsts().next()
    }

    /// Takes the best out.
    pub fn pop_first(&mut self) -> Option<Offer> {
        let (_, heap) = self.heaps.iter_mut().find(|(_, heap)| !heap.is_empty())?;
        let Next(first) = heap.pop()?;
        pass_over(heap, &mut self.withdrawn);
        Some(first)
    }

    /// The best of each priority, of those with a `start_by` and of those without: one of these is the oldest of all
    /// that have none, however many there are.
    pub fn firsts(&self) -> impl Iterator<Item = &Offer> {
        self.heaps.iter().filter_map(|(_, heap)| heap.peek().map(|Next(first)| first))
    }

    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Offer> {
        let all = self.heaps.iter().flat_map(|(_, heap)| heap.iter().map(|Next(offer)| offer));
        all.filter(|offer| !self.withdrawn.contains(offer))
    }

    /// Keeps only these.
    pub fn retain(&mut self, keep: impl Fn(&Offer) -> bool) {
        let Offers { heaps, withdrawn } = self;
        for (_, heap) in heaps {
            heap.retain(|Next(offer)| keep(offer) && !withdrawn.contains(offer));
        }
        self.withdrawn.clear();
    }

    /// They take no more room than those that are there.
    fn drop_withdrawn_when_many(&mut self) {
        let all: usize = self.heaps.iter().map(|(_, heap)| heap.len()).sum();
        if 2 * self.withdrawn.len() > all {
            self.retain(|_| true);
        }
    }
}

/// What was withdrawn leaves when it comes up.
fn pass_over(heap: &mut BinaryHeap<Next>, withdrawn: &mut FxHashSet<Offer>) {
    while !withdrawn.is_empty() && heap.peek().is_some_and(|Next(first)| withdrawn.remove(first)) {
        heap.pop();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::id::{PartitionId, QueueId, Seq};

    fn offer(number: u8) -> Offer {
        let number = u64::from(number);
        Offer {
            priority: Priority::new((number % 3) as u8).expect("below ten"),
            start_by: if number.is_multiple_of(4) { Timestamp::from_micros(1) } else { Timestamp::MAX },
            key: RowKey { wake_at: Timestamp::from_micros((number / 8) as i64), seq: Seq(number) },
            partition: PartitionId(0),
            queue: QueueId(1),
            destination: None,
            for_worker: false,
        }
    }

    proptest! {
        /// Whatever comes, goes and comes back, it is what a sorted set would be.
        #[test]
        fn offers_are_a_sorted_set(steps in proptest::collection::vec((0..5u8, 0..40u8), 0..300)) {
            let (mut offers, mut model) = (Offers::default(), BTreeSet::new());
            for (step, number) in steps {
                let offer = offer(number);
                match (step, model.contains(&offer)) {
                    (0 | 1, false) => {
                        offers.insert(offer);
                        model.insert(offer);
                    }
                    (0..3, true) => {
                        offers.remove(offer);
                        model.remove(&offer);
                    }
                    (3, _) => assert_eq!(offers.pop_first(), model.pop_first()),
                    (4, _) if number < 4 => {
                        let keep = |offer: &Offer| offer.key.seq.0 % 5 != u64::from(number);
                        offers.retain(keep);
                        model.retain(keep);
                    }
                    _ => {}
                }
                assert_eq!(offers.first(), model.first());
                assert_eq!(offers.is_empty(), model.is_empty());
                assert_eq!(offers.iter().copied().collect::<BTreeSet<_>>(), model);
                let oldest = offers.firsts().filter(|first| first.start_by == Timestamp::MAX);
                let all = model.iter().filter(|first| first.start_by == Timestamp::MAX);
                assert_eq!(oldest.map(|first| first.key.wake_at).min(), all.map(|first| first.key.wake_at).min());
            }
        }
    }
}
