//! Tasks in memory, each in one phase, found by slot or by number.

use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

use crate::id::Seq;
use crate::message::Token;
use crate::task::Task;
use crate::time::BootTime;
use crate::wheel::TimerKey;

/// Names a task in memory, until it leaves.
pub type Slot = u32;

/// A task in memory.
pub struct Entry {
    pub task: Task,
    pub phase: Phase,
}

/// What a task in memory is doing. A task is started from `Offered` only, and from nowhere else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing yet: it is being placed.
    Placed,
    /// It waits for its time.
    Waiting(TimerKey),
    /// It is due, and waits for the head of its lane.
    Behind,
    /// It is due and heads its lane, and waits for an attempt of another that was left over in it.
    HeldUp,
    /// It is due, and waits for the gate.
    Offered,
    /// Its attempt runs, or is about to.
    Running(Lease),
    /// Something that decides about it is being recorded. Nothing else may happen to it until then.
    Settling(Option<Token>),
}

/// What whoever runs an attempt holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    pub token: Token,
    pub until: BootTime,
    pub timer: TimerKey,
}

impl Entry {
    /// The attempt that runs.
    pub fn token(&self) -> Option<Token> {
        match self.phase {
            Phase::Running(lease) => Some(lease.token),
            _ => None,
        }
    }

    /// Whether its time has come and something else keeps it from starting.
    pub fn is_kept_waiting(&self) -> bool {
        matches!(self.phase, Phase::Behind | Phase::HeldUp | Phase::Offered)
    }

    /// Whether it takes up room of its window. What runs, waits behind another or came from under an
    /// obstacle does not, so that none of these can keep a queue from moving on.
    pub fn takes_room(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_) | Phase::Offered) && self.task.parked.is_none()
    }
}

/// All tasks in memory.
#[derive(Default)]
pub struct Entries {
    slots: Vec<Option<Entry>>,
    free: Vec<Slot>,
    by_seq: FxHashMap<Seq, Slot>,
}

impl Entries {
    pub fn insert(&mut self, task: Task) -> Slot {
        let seq = task.id.seq;
        let entry = Some(Entry { task, phase: Phase::Placed });
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                (self.slots.len() - 1) as Slot
            }
        };
        let before = self.by_seq.insert(seq, slot);
        assert!(before.is_none(), "task {seq:?} is in memory twice, in {before:?} and {slot}");
        slot
    }

    pub fn remove(&mut self, slot: Slot) -> Entry {
        let entry = self.slots[slot as usize].take().expect("a slot is removed once");
        self.by_seq.remove(&entry.task.id.seq);
        self.free.push(slot);
        entry
    }

    pub fn get(&self, slot: Slot) -> Option<&Entry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub fn find(&self, seq: Seq) -> Option<Slot> {
        self.by_seq.get(&seq).copied()
    }

    pub fn len(&self) -> usize {
        self.by_seq.len()
    }

    /// In order of slot, which is the same from run to run.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Entry)> {
        self.slots.iter().enumerate().filter_map(|(slot, entry)| Some((slot as Slot, entry.as_ref()?)))
    }
}

impl Index<Slot> for Entries {
    type Output = Entry;

    fn index(&self, slot: Slot) -> &Entry {
        self.slots[slot as usize].as_ref().expect("a slot in use has an entry")
    }
}

impl IndexMut<Slot> for Entries {
    fn index_mut(&mut self, slot: Slot) -> &mut Entry {
        self.slots[slot as usize].as_mut().expect("a slot in use has an entry")
    }
}
