//! The store has no room for more. What is new is refused; what ends tasks goes on, on room kept back for it.

use super::{After, Engine};
use crate::change::Change;
use crate::message::Created;

impl Engine {
    /// Nothing of the changes last taken was written. New tasks never existed; the rest is written again.
    pub(super) fn changes_refused(&mut self, changes: Vec<Change>) {
        let mut waiting = self.in_flight.take().expect("changes are refused only after they were taken");
        for after in &mut waiting {
            if let After::Accept(_, creation) = after {
                creation.tasks.clear();
                creation.created.iter_mut().for_each(refuse);
            }
        }
        let kept = changes.into_iter().filter(|change| !change.is_new());
        self.changes.splice(..0, kept);
        self.after.splice(..0, waiting);
        self.unrecorded_from = self.after.iter().find_map(After::first_seq).unwrap_or(self.next_seq);
    }
}

fn refuse(created: &mut Created) {
    if let Created::New(_) = created {
        *created = Created::Full;
    }
}
