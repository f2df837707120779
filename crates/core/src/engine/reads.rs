//! Reads in flight, and what changed since they began: an old page must not bring back what has moved on.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use crate::id::Seq;
use crate::message::{Amend, AskNo, Draft, FindNo};

/// When a read began, counted in things that happened.
pub type ReadClock = u64;

/// What a look-up is for.
pub enum Pending {
    Create(AskNo, Vec<Draft>, ReadClock),
    Amend(AskNo, Amend, ReadClock),
}

/// Reads in flight, and the tasks that left memory or changed place meanwhile.
#[derive(Default)]
pub struct Reads {
    clock: ReadClock,
    /// How many reads began at each moment and have not ended.
    begun: BTreeMap<ReadClock, usize>,
    touched: FxHashMap<Seq, ReadClock>,
    /// The same in order of time, to forget what no read in flight can have missed.
    touched_in_order: VecDeque<(ReadClock, Seq)>,
    finds: FxHashMap<FindNo, Pending>,
    next_find: u64,
}

impl Reads {
    /// A read begins; hand the clock back when it ends.
    pub fn begin(&mut self) -> ReadClock {
        *self.begun.entry(self.clock).or_default() += 1;
        self.clock
    }

    /// A read ended. Ask [`Reads::missed`] first.
    pub fn end(&mut self, clock: ReadClock) {
        let left = self.begun.get_mut(&clock).expect("a read ends once");
        *left -= 1;
        if *left == 0 {
            self.begun.remove(&clock);
        }
        let oldest = self.begun.keys().next().copied().unwrap_or(ReadClock::MAX);
        while let Some(&(at, seq)) = self.touched_in_order.front().filter(|(at, _)| *at <= oldest) {
            self.touched_in_order.pop_front();
            if self.touched.get(&seq) == Some(&at) {
                self.touched.remove(&seq);
            }
        }
    }

    /// This task left memory or changed place: what a read in flight says of it is out of date.
    pub fn touch(&mut self, seq: Seq) {
        if self.begun.is_empty() {
            return;
        }
        self.clock += 1;
        self.touched.insert(seq, self.clock);
        self.touched_in_order.push_back((self.clock, seq));
    }

    /// Whether a read that began at `clock` may have missed what happened to this task.
    pub fn missed(&self, clock: ReadClock, seq: Seq) -> bool {
        self.touched.get(&seq).is_some_and(|&at| at > clock)
    }

    /// Registers a look-up.
    pub fn find(&mut self, pending: impl FnOnce(ReadClock) -> Pending) -> FindNo {
        let clock = self.begin();
        self.next_find += 1;
        let no = FindNo(self.next_find);
        self.finds.insert(no, pending(clock));
        no
    }

    /// What an answered look-up was for. The caller ends the read.
    pub fn found(&mut self, no: FindNo) -> Option<Pending> {
        self.finds.remove(&no)
    }

    /// How many requests wait for a look-up.
    pub fn asks(&self) -> usize {
        self.finds.len()
    }

    /// The requests that wait for a look-up, when nobody will look any more.
    pub fn give_up(&mut self) -> Vec<AskNo> {
        let mut asks: Vec<AskNo> = self
            .finds
            .drain()
            .map(|(_, pending)| match pending {
                Pending::Create(ask, ..) | Pending::Amend(ask, ..) => ask,
            })
            .collect();
        asks.sort_unstable();
        asks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_has_missed_what_happened_after_it_began_and_nothing_else() {
        let mut reads = Reads::default();
        reads.touch(Seq(1));
        let first = reads.begin();
        reads.touch(Seq(2));
        let second = reads.begin();
        reads.touch(Seq(3));
        assert!(!reads.missed(first, Seq(1)));
        assert!(reads.missed(first, Seq(2)) && reads.missed(first, Seq(3)));
        assert!(!reads.missed(second, Seq(2)) && reads.missed(second, Seq(3)));
        reads.end(first);
        assert!(reads.missed(second, Seq(3)));
        reads.end(second);
        assert!(reads.touched.is_empty() && reads.touched_in_order.is_empty());
    }
}
