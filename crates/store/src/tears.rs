//! A store that is not atomic across rows, played on purpose: a write is cut where the simulator says.

use std::future::Future;

use punctual_core::{Change, Fence};

use crate::{Recorded, Store};

/// How much of one fence's changes takes effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tear {
    /// All of it, and the answer says so.
    Whole,
    /// Only so many rows are written or removed, in the order of the changes; the answer is unknown,
    /// also when that was enough for all of them.
    After(usize),
}

/// A store whose writes can be cut between two rows.
///
/// A driver that writes atomically can take the method as it is: then a torn write is all or nothing.
pub trait TearableStore: Store {
    /// Records like [`Store::record`], but cuts the changes of each fence where its tear says.
    fn record_torn(
        &self,
        batch: &[(Fence, Vec<Change>)],
        tears: &[Tear],
    ) -> impl Future<Output = Vec<Recorded>> + Send {
        async move {
            let kept = batch.iter().zip(tears).filter(|(_, tear)| **tear != Tear::After(0));
            let kept: Vec<_> = kept.map(|(item, _)| item.clone()).collect();
            let mut answers = self.record(&kept).await.into_iter();
            let answer = |tear: &Tear| match tear {
                Tear::Whole => answers.next().unwrap_or(Recorded::Unknown),
                Tear::After(0) => Recorded::Unknown,
                Tear::After(_) => match answers.next() {
                    Some(Recorded::Fenced) => Recorded::Fenced,
                    _ => Recorded::Unknown,
                },
            };
            tears.iter().map(answer).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use punctual_core::{PartitionId, QueueId, Timestamp};

    use super::*;
    use crate::conformance::{History, Owner, View};
    use crate::{MemoryStore, Retention};

    const PARTITION: PartitionId = PartitionId(1);
    const EVERYTHING: Retention = Retention {
        finished_before: Timestamp::MAX,
        dead_before: Timestamp::MAX,
        identity_before: Timestamp::MIN,
        bytes_max: None,
    };

    /// A store with a past, and a batch that is cut after so many rows. Breaks when nothing was cut.
    async fn check_cut(seed: u64, row_ops: usize) -> ControlFlow<()> {
        let store = MemoryStore::new(4);
        let owner = Owner::claim(&store, PARTITION).await;
        let mut history = History::new(seed, PARTITION);
        for _ in 0..60 {
            owner.record(vec![history.change()]).await;
        }
        let mut states = vec![history.clone()];
        let batch: Vec<Change> = std::iter::repeat_with(|| {
            let change = history.change();
            states.push(history.clone());
            change
        })
        .take(6)
        .collect();
        let torn = [(owner.fence, batch.clone())];
        let answers = store.record_torn(&torn, &[Tear::After(row_ops)]).await;
        assert_eq!(answers, [Recorded::Unknown]);

        let seen = View::read(&owner, &history).await;
        let as_if = states.iter().rposition(|state| state.view_for(&history) == seen);
        let as_if = as_if.expect("a cut write looks as if it stopped between two changes");
        if seed.is_multiple_of(2) {
            owner.record(batch).await;
            View::read(&owner, &history).await.expect_equal(&history.view());
        } else {
            go_on(&owner, states[as_if].clone()).await;
        }
        if as_if == 6 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// What the cut left behind stays hidden, whatever the next owner does.
    async fn go_on(owner: &Owner<'_, MemoryStore>, read_back: History) {
        let mut history = read_back.taken_over();
        for _ in 0..40 {
            owner.record(history.batch()).await;
        }
        let seen = View::read(owner, &history).await;
        seen.expect_equal(&history.view());
        for queue in 1..=3 {
            let pruned = owner.store.prune(owner.fence, QueueId(queue), EVERYTHING, 1_000).await;
            assert!(!pruned.expect("pruned").more);
        }
        View::read(owner, &history).await.expect_equal(&seen.pruned());
    }

    #[tokio::test]
    async fn a_write_cut_anywhere_looks_as_if_it_stopped_between_two_changes() {
        for seed in 0..100 {
            let mut row_ops = 0;
            while check_cut(seed, row_ops).await.is_continue() {
                row_ops += 1;
            }
            assert!(row_ops >= 3, "six changes write more than {row_ops} rows");
        }
    }
}
