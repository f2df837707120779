//! What is recorded together: the changes of all partitions, or of every second one when there are many.
//! Decision record: `docs/decisions/0018-two-batches-under-way.md`.

use super::Node;
use crate::change::Change;
use crate::engine::Engine;
use crate::id::{Fence, PartitionId};

/// How much there is to record.
enum Much {
    /// What there is goes together.
    No,
    /// It is worth a record beside the one under way.
    ForOne,
    /// Half of it is.
    ForTwo,
}

impl Node {
    /// The changes of all partitions since the last batch; of half of them when there are many, so that a store can work
    /// on one batch while it waits for the disk with the other. Say how each went with [`Node::handle`]
    /// (`ChangesRecorded`) or [`Node::forget`] for each partition, then [`Node::batch_done`].
    pub fn take_batch(&mut self) -> Option<Vec<(Fence, Vec<Change>)>> {
        let half = match (self.recording, self.is_much_to_record()) {
            (0, Much::ForTwo) => Some(self.half),
            (0, _) | (1, Much::ForOne | Much::ForTwo) => None,
            _ => return None,
        };
        let mut batch =
            half.map(|half| self.take_changes(|partition| partition.0 % 2 == half)).unwrap_or_default();
        if batch.is_empty() {
            batch = self.take_changes(|_| true);
        }
        if batch.is_empty() {
            return None;
        }
        self.half = 1 - half.unwrap_or(1);
        self.recording += 1;
        Some(batch)
    }

    fn take_changes(&mut self, of: impl Fn(PartitionId) -> bool) -> Vec<(Fence, Vec<Change>)> {
        let engines = self.engines.take_touched(of);
        engines.filter_map(|engine| Some((engine.fence(), engine.take_changes()?))).collect()
    }

    fn is_much_to_record(&self) -> Much {
        let unrecorded: usize = self.engines.touched().map(Engine::unrecorded).sum();
        match unrecorded / self.settings.limits.half_batch_min.max(1) {
            0 => Much::No,
            1 => Much::ForOne,
            _ => Much::ForTwo,
        }
    }

    /// A batch in flight is accounted for.
    pub fn batch_done(&mut self) {
        self.recording -= 1;
    }
}
