//! The closed lists of what can happen (events, in the past tense) and what is to be done (effects, as orders).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::change::Change;
use crate::facts::{Found, Held, Loaded, Query, Standing};
use crate::id::{Epoch, Fence, PartitionId, Priority, QueueId, Route, Seq, TaskId};
use crate::queue::OnConflict;
use crate::task::{EndState, Obstacle, RowKey, Spec, Task, WaitState, WindowId};
use crate::time::Timestamp;

/// Names a user's request until it is answered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AskNo(pub u64);

/// Names a look-up until its answer comes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FindNo(pub u64);

/// A task that somebody wants: checked, and routed to this partition, but not yet numbered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// Decided the partition.
    pub route: Route,
    /// The queue.
    pub queue: QueueId,
    /// The queue's own for a task with a lane. The engine relies on all tasks of a lane having the same, so that one
    /// window has them in order: whoever keeps queues must not change theirs.
    pub priority: Priority,
    /// What is asked for.
    pub spec: Arc<Spec>,
    /// What to do when it is there already.
    pub on_conflict: OnConflict,
}

/// What users ask of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Create tasks; answered for each in turn.
    Create(Vec<Draft>),
    /// Change one task.
    Amend(Amend),
    /// Whoever runs an attempt asks for so much time from now on. Answered when a new owner would know of it.
    Touch(Token, Duration),
}

/// Something is to be done to one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Amend {
    /// Which.
    pub id: TaskId,
    /// What.
    pub amendment: Amendment,
    /// Refuse unless its revision is still this.
    pub if_revision: Option<u32>,
}

impl Amend {
    /// Whatever the task's revision is.
    pub fn any(id: TaskId, amendment: Amendment) -> Amend {
        Amend { id, amendment, if_revision: None }
    }

    /// Why nothing is done to a task of another revision than the one that is meant.
    pub(crate) fn outdated(&self, revision: u32) -> Option<Answer> {
        let is_meant = self.if_revision.is_none_or(|expected| expected == revision);
        (!is_meant).then_some(Answer::Outdated { revision })
    }
}

/// What can be done to a task that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Amendment {
    /// It is no longer wanted.
    Cancel,
    /// It is due at another time.
    Move(Timestamp),
    /// It is to do something else: payload, target, retry, deadlines. Lane and unique key stay.
    Replace {
        /// What it is to do.
        spec: Arc<Spec>,
        /// When it is due, if at another time.
        at: Option<Timestamp>,
    },
    /// It is due now.
    Run,
    /// It is to be tried again, with a fresh count of attempts: a blocked head or a dead task.
    Retry,
    /// It is to end, if its `expires_at` has passed. (So does whatever else is asked of such a task; this asks for
    /// nothing else.)
    Expire,
}

/// What users are told. Nothing is answered before it is on stable storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// To `Create`, for each draft in turn.
    Created(Vec<Created>),
    /// The amendment is recorded; this is the task as it is now.
    Amended(Box<Task>),
    /// To `Cancel`: it was cancelled, and will not start again.
    Cancelled,
    /// To `Touch`: it has the time that it asked for.
    Prolonged,
    /// To `Touch`: its time was over before.
    Late,
    /// Nothing was changed: this attempt is running.
    Running {
        /// Its number.
        attempt: u32,
    },
    /// Nothing was changed: it has ended.
    Ended(EndState),
    /// There is no such task.
    NotFound,
    /// Nothing was changed: the task's revision is this by now.
    Outdated {
        /// The present revision.
        revision: u32,
    },
    /// Nothing was changed: too many requests are waiting. Try again later.
    Overloaded,
    /// Nothing was changed: this node does not own the partition. Ask its owner.
    NotOwner,
    /// It may or may not have happened: look before you repeat it.
    Unknown,
}

/// What became of one draft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Created {
    /// A new task.
    New(TaskId),
    /// A task of the same identity was there and waits; the draft took its place.
    Replaced(TaskId),
    /// A task of the same identity was there and stays.
    Kept(TaskId, WaitState),
    /// A task of the same identity has ended, and will not run again; nobody minds.
    Ended(TaskId, EndState),
    /// Refused: a task of the same identity is there, or was, and may not be replaced.
    Conflict(TaskId),
    /// Refused: its time is too far in the past.
    Past,
    /// Refused: the store has no room for more.
    Full,
}

/// Proof of which attempt is meant: each is named once, and later ones are higher.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token {
    /// Of which task.
    pub id: TaskId,
    /// Under which ownership it was started.
    pub epoch: Epoch,
    /// Its number.
    pub attempt: u32,
}

/// An attempt to be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Names it in the report.
    pub token: Token,
    /// What is to be done.
    pub spec: Arc<Spec>,
    /// Why its task has waited, as the row says.
    pub was: WaitState,
    /// Where the report goes first.
    pub partition: PartitionId,
    /// How long it may take.
    pub timeout: Duration,
    /// Another may have been made before it: it is not the first, or the task was due before this ownership began, and
    /// an owner that is gone may have started it without a trace.
    pub may_be_repeated: bool,
}

/// How an attempt ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It did what it should.
    Succeeded(Bytes),
    /// It did not; try again as the retry policy says, but not before `retry_after`.
    Failed {
        /// What went wrong.
        error: Arc<str>,
        /// What the target asked for.
        retry_after: Option<Duration>,
    },
    /// Its target is well, and would not do it: tried again as after a failure, but nothing is wrong with the target.
    Refused {
        /// What it said.
        error: Arc<str>,
        /// What the target asked for.
        retry_after: Option<Duration>,
        /// It has too much to do, and asks for less.
        is_busy: bool,
    },
    /// It did not, and never will.
    GaveUp(Arc<str>),
    /// It was stopped by us, or handed back: not an attempt at all.
    Interrupted,
    /// Whoever got it does not know the handler.
    NoReceiver,
}

/// What happened to a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A user asked for something.
    Asked(AskNo, Ask),
    /// The changes last taken are on stable storage.
    ChangesRecorded,
    /// There is no room for the changes last taken, which are these, and nothing of them was written.
    ChangesRefused(Vec<Change>),
    /// A piece of a window was read.
    TasksLoaded(WindowId, Loaded),
    /// Tasks parked under an obstacle were read.
    ParkedLoaded(Obstacle, Vec<Task>),
    /// A look-up was answered.
    TasksFound(FindNo, Vec<Option<Found>>),
    /// The gate let this offer through, for a worker that asked for so much time, or for the usual time.
    OfferGranted(Offer, Option<Duration>),
    /// The gate will not let this offer through for a while: it is to be filed under that obstacle.
    OfferRefused(Offer, Obstacle),
    /// An attempt was reported on.
    AttemptEnded(Token, Outcome),
    /// A live attempt has so much time from now on, because whoever runs it gets it only now.
    LeaseTouched(Token, Duration),
    /// What was owed to somebody is settled: its row can go.
    DebtSettled(Box<str>),
    /// What kept tasks from starting may be gone.
    ObstacleEased(Obstacle),
    /// Settings of queues or the set of receivers changed.
    SettingsChanged,
    /// Time passed.
    TimePassed,
    /// The partition is to be given up.
    HandOverRequested,
}

/// What a new owner is told when it begins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inheritance {
    /// Windows, and attempts that may still run elsewhere.
    pub standing: Standing,
    /// The obstacles that stand; holders are known to be alive.
    pub held: Vec<Held>,
    /// Attempts of an earlier ownership that still run on this very node, or whose report is
    /// not recorded yet.
    pub live: Vec<(Token, Task)>,
    /// Tasks that were being handled when the partition failed on this node, and at how many failures. The node itself
    /// remembers these.
    pub suspects: BTreeMap<Seq, u16>,
}

/// What is to be done for a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Answer a request.
    Answer(AskNo, Answer),
    /// Read a piece of a window.
    LoadTasks {
        /// Which.
        window: WindowId,
        /// From this row on.
        from: RowKey,
        /// Up to, not including, this time.
        until: Timestamp,
        /// At most so many.
        limit: usize,
    },
    /// Read tasks parked under an obstacle.
    LoadParked {
        /// Which.
        obstacle: Obstacle,
        /// From this row on.
        from: RowKey,
        /// At most so many.
        limit: usize,
    },
    /// Look tasks up.
    FindTasks(FindNo, Vec<Query>),
    /// Ask the gate to let this task start.
    OfferTask(Offer),
    /// The task no longer wants to start.
    WithdrawOffer(Offer),
    /// The gate let it through too late: it does not want to start any more.
    DeclineOffer(Offer),
    /// Run it, and report.
    StartAttempt(Attempt),
    /// Stop it: its time is up, and nobody waits for its report.
    StopAttempt(Token),
    /// The end of this attempt is recorded, or can never be: nothing more will be asked about it.
    ForgetAttempt(Token),
    /// An attempt of an earlier ownership may still be at work: it counts as running.
    AdoptAttempt(Token),
    /// Everything is recorded; the partition can be released.
    ReleasePartition(Fence),
    /// Something impossible happened: take the partition over anew.
    ReloadPartition,
    /// Tell the partition's present owner.
    ForwardReport(Token, Outcome),
}

/// A task that could start: what the gate chooses by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Offer {
    /// First by priority,
    pub priority: Priority,
    /// then by deadline (the end of time when it has none),
    pub start_by: Timestamp,
    /// then by time and acceptance.
    pub key: RowKey,
    /// Whose it is.
    pub partition: PartitionId,
    /// Its queue.
    pub queue: QueueId,
    /// Where it would go, for limits by destination.
    pub destination: Option<u64>,
    /// It waits for a worker to reserve it, and needs no slot of this node's.
    pub for_worker: bool,
}

impl Offer {
    /// What it is chosen by. No two offers of a node share a partition and a number, so the rest need not be compared.
    fn rank(&self) -> (Priority, Timestamp, RowKey, PartitionId) {
        (self.priority, self.start_by, self.key, self.partition)
    }
}

impl Ord for Offer {
    fn cmp(&self, other: &Offer) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Offer) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
