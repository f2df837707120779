//! What a store is asked to write: facts that stay true, and may be written twice without harm.

use bytes::Bytes;

use crate::id::TaskId;
use crate::task::{Begun, End, Obstacle, Place, Task, WaitState, WindowId};
use crate::time::Timestamp;

/// One fact about one partition. Changes made under one fence are applied in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A task is new: its row, and its identity row when it has a unique key.
    Accepted(Task),
    /// A task's row changed: retried, moved, changed, parked, unparked, blocked, replaced.
    Refiled {
        /// Where the row lay before.
        from: Place,
        /// Why it waited, as the row said before.
        was: WaitState,
        /// The row as it is now; its revision is higher than before.
        task: Task,
    },
    /// An attempt began and goes on. Says nothing that a crash could not also say; it is what lets
    /// a new owner see that the task was running.
    Began {
        /// Whose.
        id: TaskId,
        /// Where its row lies.
        place: Place,
        /// How many attempts have begun with this one.
        attempts: u32,
        /// How often in a row its partition failed while it was running.
        crashes: u16,
        /// Under which ownership, and whether a new owner must wait for it.
        begun: Begun,
    },
    /// A task ended. The end is written first and the row is removed after it; a row whose end
    /// is written is never loaded again.
    Ended {
        /// Where its row lay.
        from: Place,
        /// The task as it last was; its state says why it waited, as the row said.
        task: Task,
        /// How it ended.
        end: End,
    },
    /// A dead task is to be tried again: its end is taken back, and this is its row.
    Revived(Task),
    /// The obstacle stands: a lane is held, or tasks are parked under it.
    Held {
        /// Which.
        obstacle: Obstacle,
        /// The task that holds the lane although its row lies elsewhere in the order.
        holder: Option<TaskId>,
    },
    /// Nothing is parked under the obstacle, and nothing holds it.
    Cleared(Obstacle),
    /// Nothing that has not ended lies, or will ever lie, before this time in this window.
    LowWater(WindowId, Timestamp),
    /// A row of the partition's own by its name, opaque here; `None` removes it. A schedule's, or one that says what is
    /// owed to somebody because of the change behind it (names that begin with [`Change::OWED`]).
    Schedule(Box<str>, Option<Bytes>),
}

impl Change {
    /// What the names of rows begin with that say what is owed.
    pub const OWED: &str = "owed/";

    /// Whether it asks for more work, and is refused when the disk is full. Everything else is written again without
    /// it, on room kept back: a dead task that is tried again was accepted before, and a schedule's row says how far
    /// it has come. Whoever asks for those cannot take them back, and everything behind them would wait.
    pub fn is_new(&self) -> bool {
        matches!(self, Change::Accepted(_))
    }
}
