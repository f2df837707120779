//! Requests that wait until something else about the same task is recorded.
//!
//! They stand in lines, one for each thing that is waited for, and when it has happened only the first of its line is
//! asked again: it will mostly make the others wait once more. So a thousand requests about one task are asked again a
//! thousand times. Asking all of them after each record would be half a million.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::Engine;
use super::admit::identities_of;
use super::entry::Phase;
use crate::id::Seq;
use crate::message::{Ask, AskNo, Effect};
use crate::task::Identity;
use crate::time::Now;

/// What a request waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Awaited {
    /// Another create of this identity is between look-up and record.
    Identity(Identity),
    /// Something that decides about this task is being recorded. A create that waits for it keeps its identities, so
    /// that those behind it need not move to this line too.
    Task(Seq),
}

/// Those that wait, in the order in which they were asked.
#[derive(Default)]
pub struct Deferred {
    lines: FxHashMap<Awaited, VecDeque<(AskNo, Ask)>>,
    waiting: usize,
    /// What has happened since the lines were last looked at.
    settled: Vec<Awaited>,
    /// How often anybody had to wait.
    times: u64,
}

impl Deferred {
    pub fn len(&self) -> usize {
        self.waiting
    }

    pub fn times(&self) -> u64 {
        self.times
    }

    pub fn wait(&mut self, awaited: Awaited, no: AskNo, ask: Ask) {
        self.lines.entry(awaited).or_default().push_back((no, ask));
        self.waiting += 1;
        self.times += 1;
    }

    /// It has happened: the line that waited for it gets its turn.
    pub fn settle(&mut self, awaited: Awaited) {
        if !self.lines.is_empty() && self.lines.contains_key(&awaited) {
            self.settled.push(awaited);
        }
    }

    /// Everybody who waits, when nobody will be asked again.
    pub fn give_up(&mut self) -> Vec<AskNo> {
        let mut asks: Vec<AskNo> = self.lines.drain().flat_map(|(_, line)| line).map(|(no, _)| no).collect();
        asks.sort_unstable();
        self.waiting = 0;
        asks
    }

    fn next(&mut self, awaited: Awaited) -> Option<(AskNo, Ask)> {
        let line = self.lines.get_mut(&awaited)?;
        let first = line.pop_front();
        if line.is_empty() {
            self.lines.remove(&awaited);
        }
        self.waiting -= usize::from(first.is_some());
        first
    }
}

impl Engine {
    /// Those who waited for what is recorded now get their turn.
    pub(super) fn ask_again(&mut self, now: Now, out: &mut Vec<Effect>) {
        for awaited in std::mem::take(&mut self.deferred.settled) {
            self.ask_line(now, awaited, out);
        }
    }

    /// Asks one after the other, until one of them makes the others wait again.
    pub(super) fn ask_line(&mut self, now: Now, awaited: Awaited, out: &mut Vec<Effect>) {
        while !self.is_awaited(awaited)
            && let Some((no, ask)) = self.deferred.next(awaited)
        {
            // A task that has left memory is looked up; the others have their turn when it is found.
            let is_looked_up = matches!(&ask, Ask::Amend(amend) if self.entries.find(amend.id.seq).is_none());
            if let (Awaited::Task(_), Ask::Create(drafts)) = (awaited, &ask) {
                for identity in identities_of(drafts) {
                    self.identities.remove(&identity);
                }
            }
            self.take_up(now, no, ask, out);
            if is_looked_up {
                return;
            }
        }
    }

    fn is_awaited(&self, awaited: Awaited) -> bool {
        match awaited {
            Awaited::Identity(identity) => self.identities.contains(&identity),
            Awaited::Task(seq) => self.is_settling(seq),
        }
    }

    pub(super) fn is_settling(&self, seq: Seq) -> bool {
        let slot = self.entries.find(seq);
        slot.is_some_and(|slot| matches!(self.entries[slot].phase, Phase::Settling(_)))
    }
}
