//! What goes over the wire, as `docs/protocol.md` has it.
//!
//! What a server reads refuses unknown fields; what a client reads overlooks them, so that an older client understands a
//! newer server. What a task carries is kept as it was written ([`Json`]).

mod body;
mod call_at;
mod change;
mod clock;
mod create;
mod event;
mod hold;
mod items;
mod json;
mod key;
mod nearest;
mod problem;
mod queue;
mod retry;
#[cfg(feature = "openapi")]
mod schema;
mod select;
mod span;
mod task;
mod text;
mod time;
mod two_way;
mod work;

pub use body::{BodyFault, Nothing, read};
pub use call_at::{CallAt, CallStatus, ScheduledCall};
pub use change::Change;
pub use clock::{AdvanceClock, Advanced, Clock, ClockKind};
pub use create::{BATCH_MAX, CreateResult, Creation, NewTasks, Results, TaskId};
pub use event::{Event, EventData, EventKind, EventQuery, NewNotification, Notification, NotificationPage};
pub use hold::{HeldQueue, Hold};
pub use items::Items;
pub use json::{Base64, Json};
pub use key::{Key, KeyPage, MadeKey, NewKey, RotateKey, Scope, UnknownScope};
pub use nearest::{UnknownField, nearest, unknown_field};
pub use problem::{FieldError, Problem, code};
pub use queue::{
    Conflict, Flow, HttpTarget, Lane, LaneName, LanePage, LaneQuery, OnExhausted, Past, Queue, QueuePage,
    QueueSettings, QueueStats, QueueTarget, Rate, Retention, Success,
};
pub use retry::{Retry, RetryPreset, RetryRule};
pub use select::{
    ByFilter, Cancelled, Changed, Filter, MoveByFilter, PageQuery, Patch, Progress, ResultQuery, TaskPage,
    TaskProblem, TaskQuery, TaskResult, View, ViewQuery,
};
pub use span::{Span, SpanProblem};
pub use task::{Http, NewTask, OnConflict, State, TargetKind, Task, UnknownState};
pub use time::{Moment, Time, TimeKind, TimeProblem, check_zone};
pub use work::{
    Ack, AckItem, Batch, Bury, BuryItem, Kick, KickItem, Nack, NackItem, PeekQuery, Release, ReleaseItem,
    ReportResult, Reserve, Reserved, ReservedTask, Touch, TouchItem, Touched,
};
