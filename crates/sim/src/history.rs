//! Everything that happened in a run, in true time, seen from outside: what the checkers judge by.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use punctual::Settled;
use punctual_core::{Answer, Change};
use punctual_core::{
    Created, EndState, Epoch, Fence, Found, Outcome, PartitionId, Priority, QueueId, QueueSettings, Spec,
    TaskId, Timestamp, Token,
};
use xxhash_rust::xxh3::Xxh3;

/// When, in the order in which things happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Moment {
    /// True time.
    pub at: Timestamp,
    /// The order among things of the same time.
    pub order: u64,
}

/// Names a node's process: a restart is another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Process {
    /// Which node.
    pub node: usize,
    /// Which life of it.
    pub life: u32,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A user asked for a task.
    CreateCalled {
        /// Which request.
        no: u64,
        /// In which queue.
        queue: QueueId,
        /// How urgent.
        priority: Priority,
        /// For what.
        spec: Arc<Spec>,
    },
    /// … and was told this; `None`: nothing certain.
    CreateAnswered {
        /// Which request.
        no: u64,
        /// What became of it.
        created: Option<Created>,
    },
    /// … and was turned away: it is as if it had never been asked.
    CreateRefused {
        /// Which request.
        no: u64,
    },
    /// A user asked for a change of a task.
    AmendCalled {
        /// Which request.
        no: u64,
        /// Which task.
        id: TaskId,
        /// What for.
        what: Amending,
    },
    /// … and was told this; `None`: nothing certain.
    AmendAnswered {
        /// Which request.
        no: u64,
        /// What became of it.
        answer: Option<Answer>,
    },
    /// An attempt began.
    Started {
        /// Where.
        process: Process,
        /// Which.
        token: Token,
        /// What that machine's wall clock showed.
        wall: Timestamp,
        /// What it was told to do.
        spec: Arc<Spec>,
        /// How long it may take.
        timeout: Duration,
    },
    /// An attempt is over: it returned, was stopped, or died with its process.
    Stopped {
        /// Which.
        token: Token,
        /// What it returned; `None`: it did not get so far.
        outcome: Option<Outcome>,
    },
    /// A process heard how an attempt ended.
    Reported {
        /// Which process.
        process: Process,
        /// Which attempt.
        token: Token,
        /// How.
        outcome: Outcome,
    },
    /// A worker asked for tasks.
    ReserveCalled {
        /// Which request.
        no: u64,
    },
    /// … and was answered, or told that nobody is there any more.
    ReserveAnswered {
        /// Which request.
        no: u64,
    },
    /// A worker that holds an attempt was told that it has more time.
    Prolonged {
        /// Which attempt.
        token: Token,
        /// Until then at least.
        until: Timestamp,
    },
    /// A worker that holds an attempt was told that it has no more time.
    NotProlonged {
        /// Which attempt.
        token: Token,
    },
    /// A worker said how an attempt went.
    ReportCalled {
        /// Which report.
        no: u64,
        /// Which attempt.
        token: Token,
        /// How.
        outcome: Outcome,
    },
    /// … and was told this; `None`: nothing certain.
    ReportAnswered {
        /// Which report.
        no: u64,
        /// What became of it.
        settled: Option<Settled>,
    },
    /// So many nodes share the work.
    Nodes(u32),
    /// A queue has these settings from now on.
    QueueSet {
        /// Which.
        queue: QueueId,
        /// What they are.
        settings: Box<QueueSettings>,
    },
    /// The store took these changes whole.
    Written {
        /// Under which fence.
        fence: Fence,
        /// What.
        changes: Vec<Change>,
    },
    /// The store took some of these changes, and nobody knows which.
    Torn(Vec<Change>),
    /// The store gave a partition to somebody.
    Claimed {
        /// Which.
        partition: PartitionId,
        /// Under this epoch.
        epoch: Epoch,
    },
    /// So long history is kept in this run.
    Keeps(Keeps),
    /// A node's wall clock was set, and is off by so much now.
    ClockSet {
        /// Which node.
        node: usize,
        /// In microseconds; ahead when positive.
        error_micros: i64,
    },
    /// The store dropped a task that had ended.
    Dropped {
        /// Which.
        id: TaskId,
        /// How it had ended, and when, by the clock of whoever ended it.
        end: (EndState, Timestamp),
    },
    /// So many tasks were still in the history long after the last of them had ended.
    HistoryLeft(usize),
    /// A process has taken a partition over, and serves it from now on, if nobody was quicker.
    Taken {
        /// Which process.
        process: Process,
        /// Which partition, under which ownership.
        fence: Fence,
    },
    /// A process serves a partition no longer, and knows it.
    Left {
        /// Which process.
        process: Process,
        /// Which partition.
        partition: PartitionId,
        /// It begins it anew.
        anew: bool,
    },
    /// A process died, or was paused, or could not say that it lives.
    Silenced(Process),
    /// Faults are over: from here on everything must come to its end.
    Calm,
    /// How a task ended, as the store says when all is over.
    Final {
        /// Which.
        id: TaskId,
        /// How.
        end: Option<EndState>,
    },
    /// Somebody looked a task up, or waited for its end.
    Seen {
        /// Which.
        id: TaskId,
        /// When they asked.
        asked: Moment,
        /// What they were shown; `None`: that there is no such task.
        found: Option<Box<Found>>,
    },
    /// A low-water mark was written above something that lives.
    MarkPassed(String),
    /// Something in a process panicked that should not have.
    Panicked(String),
    /// How many tasks a process held in memory.
    Measured {
        /// Which.
        process: Process,
        /// So many.
        loaded: usize,
        /// So many partitions it owned.
        owned: usize,
    },
}

/// How long history is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keeps {
    /// What finished.
    pub succeeded: Duration,
    /// What died.
    pub dead: Duration,
    /// Unique keys.
    pub identities: Duration,
}

/// What a user wants of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amending {
    /// Cancel.
    Cancel,
    /// Another time.
    Move(Timestamp),
    /// Another payload, which has this mark, and perhaps another target.
    Change(u32),
    /// Now.
    Run,
    /// Again.
    Retry,
}

/// Everything that happened.
#[derive(Default)]
pub struct History {
    log: Mutex<Vec<(Moment, Happening)>>,
}

impl History {
    /// Notes that something happened.
    pub fn note(&self, at: Timestamp, happening: Happening) {
        let mut log = self.log();
        let order = log.len() as u64;
        log.push((Moment { at, order }, happening));
    }

    /// The moment that comes next.
    pub fn moment(&self, at: Timestamp) -> Moment {
        Moment { at, order: self.log().len() as u64 }
    }

    /// All of it, in order.
    pub fn log(&self) -> MutexGuard<'_, Vec<(Moment, Happening)>> {
        self.log.lock().expect("nothing panics while it holds the log")
    }

    /// One number for all of it: two runs of one seed must agree.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3::new();
        for (moment, happening) in self.log().iter() {
            hash.update(format!("{moment:?} {happening:?}").as_bytes());
        }
        hash.digest()
    }
}
