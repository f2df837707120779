//! What should happen next: the domain types, the timing wheel, the engine and the gate. Pure.
//!
//! Nothing here reads a clock, draws a random number, waits, writes or fails: facts and `now` go in,
//! effects come out. `ARCHITECTURE.md` has the picture and the path of a task.

pub mod change;
pub mod check;
pub mod engine;
pub mod facts;
pub mod gate;
pub mod id;
pub mod limits;
pub mod message;
pub mod node;
pub mod pruning;
pub mod queue;
pub mod retry;
pub mod task;
pub mod time;
pub mod wheel;

pub use change::Change;
pub use check::Refusal;
pub use engine::{Engine, Settings};
pub use facts::{Found, Held, Loaded, Pruned, Query, Retention, Standing, WindowStanding};
pub use gate::{Conduct, Gate, Verdict};
pub use id::{Epoch, Fence, PartitionId, Priority, QueueId, Route, Seq, TaskId};
pub use limits::Limits;
pub use message::{
    Amend, Amendment, Answer, Ask, AskNo, Attempt, Created, Draft, Effect, Event, FindNo, Inheritance, Offer,
    Outcome, Token,
};
pub use node::{Effects, Node, Trust};
pub use pruning::{Prune, Pruning};
pub use queue::{OnConflict, OnExhausted, Past, QueueSettings, Queues, Rate};
pub use retry::{RetryPolicy, Waits};
pub use task::{
    Begun, End, EndState, EndedTask, Identity, LaneId, Obstacle, Place, RowKey, Spec, Target, Task,
    WaitState, WindowId,
};
pub use time::{BootTime, Now, Timestamp, Wake};
