//! What is owed to somebody because of a change is written together with that change, so that no crash can part them.
//! Decision record: `docs/decisions/0015-debts-beside-the-change.md`.

use punctual_core::{Change, Event, Now, PartitionId};
use punctual_store::Store;

use super::{Batch, Shell};

impl<S: Store> Shell<S> {
    /// Each debt comes before its change: if a write is cut between the two, what is owed is known and the change can
    /// be looked for. The other way round, nobody would know.
    pub(super) fn write_down_debts(&self, batch: &mut Batch) {
        for (_, changes) in batch {
            let mut owed =
                changes.iter().enumerate().filter_map(|(at, change)| Some((at, self.observer.owed(change)?)));
            let Some(first) = owed.next() else { continue };
            let mut owed = std::iter::once(first).chain(owed).collect::<Vec<_>>().into_iter().peekable();
            let mut both: Vec<Change> = Vec::with_capacity(2 * changes.len());
            for (at, change) in changes.drain(..).enumerate() {
                if let Some((_, (name, row))) = owed.next_if(|(of, _)| *of == at) {
                    // A batch that the store had no room for comes again, with what was written into it before.
                    let is_there =
                        matches!(both.last(), Some(Change::Schedule(before, Some(_))) if *before == name);
                    if !is_there {
                        both.push(Change::Schedule(name, Some(row)));
                    }
                }
                both.push(change);
            }
            *changes = both;
        }
    }

    /// A partition that is not ours any more keeps its rows: whoever has it settles them again, which does no harm.
    pub(super) fn settled(&mut self, now: Now, debts: Vec<(PartitionId, Box<str>)>) {
        for (partition, name) in debts {
            self.node.ask(now, partition, Event::DebtSettled(name), &mut self.effects);
        }
    }
}
