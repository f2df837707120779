//! Bugs planted on purpose, each of the kind that real schedulers have had. A checker that misses one is no checker.

use std::time::Duration;

use bytes::Bytes;
use punctual_core::{
    Change, Draft, End, EndState, Fence, Limits, Loaded, OnExhausted, Outcome, Place, Priority,
    QueueSettings, Retention, Spec, Standing, Task, Timestamp, WaitState, Waits,
};

use crate::settings::PULLED;
use crate::targets::marked;
use crate::workers::MUCH_TIME;

/// A bug to plant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Bug {
    /// An accepted task is acknowledged and not written.
    AcceptedIsNotWritten,
    /// The end of a task is acknowledged and not written: it runs again after a restart.
    EndIsNotWritten,
    /// A cancel is acknowledged and not written.
    CancelIsNotWritten,
    /// The store takes writes under an old epoch.
    StoreIgnoresFences,
    /// A retrying head's hold on its lane is not written: after a restart its lane overtakes it.
    HeldLaneIsNotWritten,
    /// A new owner does not read which lanes are held.
    TakeoverForgetsHeldLanes,
    /// A new owner looks back only a little (the two-hour look-back of a scheduler we know, scaled down).
    TakeoverLooksBackOneSecond,
    /// A page that is full loses its last row.
    FullPageLosesItsLastRow,
    /// The low-water mark is written too high.
    LowWaterIsTooHigh,
    /// Rows are filed a second before their time.
    RowsAreFiledEarly,
    /// Of several tasks parked behind a lane's head, the first is passed over.
    ParkedPageSkipsItsFirstRow,
    /// A unique key is not looked up.
    IdentityIsNotLookedUp,
    /// Retries begin again at attempt 1, so that two attempts share a fence.
    AttemptsAreNotWritten,
    /// A paused node goes on starting tasks when it wakes, without asking whether it still owns them.
    ZombieTrustsItself,
    /// A hand-over does not say what still runs.
    HandOverForgetsWhatRuns,
    /// A node's clock is ahead of what its own machine shows.
    ClockRunsAhead,
    /// History is dropped before its time.
    HistoryIsDroppedEarly,
    /// Unique keys are forgotten as soon as their tasks have ended.
    IdentitiesAreForgottenEarly,
    /// History is never dropped, and the store says that there is none.
    HistoryIsNeverDropped,
    /// A node keeps in memory whatever is near, however much it is.
    LimitsAreIgnored,
    /// The store names a task twice in one page, which cannot be.
    PagesRepeatATask,
    /// A take-over reads through everything that ever was, and takes its time.
    TakeoverReadsEverything,
    /// A node runs one attempt more than it may.
    OneSlotTooMany,
    /// A queue runs as much at once as there are slots, whatever it was told.
    QueueLimitIsIgnored,
    /// A queue starts as fast as it can.
    RateIsIgnored,
    /// A paused queue goes on.
    PauseIsIgnored,
    /// A destination gets whatever there is for it.
    DestinationLimitIsIgnored,
    /// A destination that fails is called all the same.
    BreakerNeverOpens,
    /// A task is tried once more than it may be.
    OneAttemptTooMany,
    /// A task is given up one attempt too soon.
    OneAttemptTooFew,
    /// Retries come in half the time.
    WaitsAreTooShort,
    /// A retry is filed where its task lay before: a new owner starts it at once.
    RetryWaitsAreNotWritten,
    /// A target that asks for time is not heard.
    RetryAfterIsIgnored,
    /// A head that has run out of attempts dies, and its lane goes on, whatever its queue says.
    LanesNeverBlock,
    /// A move is acknowledged and not written.
    MoveIsNotWritten,
    /// A change is acknowledged, and the old payload is written.
    ChangeIsNotWritten,
    /// Whoever has a task run now is told that it was done, and nothing is.
    RunIsOnlyAnswered,
    /// A task that is tried again by a user is not given its attempts again.
    RetryKeepsTheCount,
    /// A task that was read from the store has no deadline any more.
    LoadedTasksForgetTheirDeadline,
    /// A task expires a second too soon.
    DeadlinesAreBroughtForward,
    /// A task that has expired can still be cancelled, says the store.
    ExpiredIsCalledCancelled,
    /// That a task succeeded is written, and what it returned is not.
    ResultsAreNotWritten,
    /// What has ended is not found any more.
    FindMissesWhatHasEnded,
    /// A node's clock is behind what its own machine shows.
    ClockRunsBehind,
    /// Tasks are read so slowly that they are due before they come.
    LoadsTakeLongerThanTheyLookAhead,
    /// What is most urgent goes last.
    PrioritiesAreTurnedRound,
    /// What was being written when the power went is said to be written.
    PowerCutIsCalledDone,
    /// What a worker holds is not written with its lease: a new owner gives it to another.
    WorkerLeaseIsNotWritten,
    /// A worker that asks for more time is told that it has it, and nothing is done.
    TouchIsIgnored,
    /// A worker that asks for more time is told that it has it, and a new owner never hears of it.
    TouchIsNotWritten,
    /// A report counts for whatever attempt runs.
    LateReportIsTaken,
    /// A worker that is done is told that this is on record, and nothing is.
    ReportIsOnlyAnswered,
    /// What is given to a worker is given to another one too.
    ReservedTwice,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 53] = [
        Bug::AcceptedIsNotWritten,
        Bug::EndIsNotWritten,
        Bug::CancelIsNotWritten,
        Bug::StoreIgnoresFences,
        Bug::HeldLaneIsNotWritten,
        Bug::TakeoverForgetsHeldLanes,
        Bug::TakeoverLooksBackOneSecond,
        Bug::FullPageLosesItsLastRow,
        Bug::LowWaterIsTooHigh,
        Bug::RowsAreFiledEarly,
        Bug::ParkedPageSkipsItsFirstRow,
        Bug::IdentityIsNotLookedUp,
        Bug::AttemptsAreNotWritten,
        Bug::ZombieTrustsItself,
        Bug::HandOverForgetsWhatRuns,
        Bug::ClockRunsAhead,
        Bug::HistoryIsDroppedEarly,
        Bug::IdentitiesAreForgottenEarly,
        Bug::HistoryIsNeverDropped,
        Bug::LimitsAreIgnored,
        Bug::PagesRepeatATask,
        Bug::TakeoverReadsEverything,
        Bug::OneSlotTooMany,
        Bug::QueueLimitIsIgnored,
        Bug::RateIsIgnored,
        Bug::PauseIsIgnored,
        Bug::DestinationLimitIsIgnored,
        Bug::BreakerNeverOpens,
        Bug::OneAttemptTooMany,
        Bug::OneAttemptTooFew,
        Bug::WaitsAreTooShort,
        Bug::RetryWaitsAreNotWritten,
        Bug::RetryAfterIsIgnored,
        Bug::LanesNeverBlock,
        Bug::MoveIsNotWritten,
        Bug::ChangeIsNotWritten,
        Bug::RunIsOnlyAnswered,
        Bug::RetryKeepsTheCount,
        Bug::LoadedTasksForgetTheirDeadline,
        Bug::DeadlinesAreBroughtForward,
        Bug::ExpiredIsCalledCancelled,
        Bug::ResultsAreNotWritten,
        Bug::FindMissesWhatHasEnded,
        Bug::ClockRunsBehind,
        Bug::LoadsTakeLongerThanTheyLookAhead,
        Bug::PrioritiesAreTurnedRound,
        Bug::PowerCutIsCalledDone,
        Bug::WorkerLeaseIsNotWritten,
        Bug::TouchIsIgnored,
        Bug::TouchIsNotWritten,
        Bug::LateReportIsTaken,
        Bug::ReportIsOnlyAnswered,
        Bug::ReservedTwice,
    ];

    /// The bug of that name.
    pub fn named(name: &str) -> Option<Bug> {
        Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name)
    }

    /// What reaches the store instead.
    pub fn bend_batch(self, batch: &[(Fence, Vec<Change>)]) -> Vec<(Fence, Vec<Change>)> {
        let bend = |changes: &Vec<Change>| changes.iter().filter_map(|change| self.bend(change)).collect();
        batch.iter().map(|(fence, changes)| (*fence, bend(changes))).collect()
    }

    fn bend(self, change: &Change) -> Option<Change> {
        match (self, change) {
            (Bug::AcceptedIsNotWritten, Change::Accepted(task)) if one_in(task, 7) => None,
            (Bug::EndIsNotWritten, Change::Ended { task, end, .. })
                if end.state == EndState::Succeeded && one_in(task, 5) =>
            {
                None
            }
            (Bug::CancelIsNotWritten, Change::Ended { end, .. }) if end.state == EndState::Cancelled => None,
            (Bug::HeldLaneIsNotWritten, Change::Held { holder: Some(_), .. }) => None,
            (Bug::LowWaterIsTooHigh, Change::LowWater(window, at)) => {
                Some(Change::LowWater(*window, *at + Duration::from_secs(5)))
            }
            (Bug::RowsAreFiledEarly, Change::Refiled { from, was, task }) => {
                let mut task = task.clone();
                let early = task.wake_at - Duration::from_secs(1);
                task.wake_at = early.max(Timestamp::MIN);
                Some(Change::Refiled { from: *from, was: *was, task })
            }
            (Bug::AttemptsAreNotWritten, Change::Refiled { from, was, task }) => {
                let task = Task { attempts: 0, forgiven: 0, ..task.clone() };
                Some(Change::Refiled { from: *from, was: *was, task })
            }
            (Bug::RetryWaitsAreNotWritten, Change::Refiled { from, was, task })
                if task.state == WaitState::Retrying =>
            {
                let (Place::Window(_, key) | Place::Parked(_, key)) = from;
                let task = Task { wake_at: key.wake_at, ..task.clone() };
                Some(Change::Refiled { from: *from, was: *was, task })
            }
            (Bug::MoveIsNotWritten, Change::Refiled { task, .. })
                if task.spec.first_at.is_some() && task.spec.at == task.wake_at =>
            {
                None
            }
            (Bug::ChangeIsNotWritten, Change::Refiled { from, was, task }) => {
                let spec = Spec { payload: marked(&task.spec.payload, 0), ..(*task.spec).clone() };
                Some(Change::Refiled {
                    from: *from,
                    was: *was,
                    task: Task { spec: spec.into(), ..task.clone() },
                })
            }
            (Bug::ExpiredIsCalledCancelled, Change::Ended { from, task, end })
                if end.state == EndState::Expired =>
            {
                let end = End { state: EndState::Cancelled, ..end.clone() };
                Some(Change::Ended { from: *from, task: task.clone(), end })
            }
            (Bug::ResultsAreNotWritten, Change::Ended { from, task, end }) => {
                let end = End { result: Bytes::new(), ..end.clone() };
                Some(Change::Ended { from: *from, task: task.clone(), end })
            }
            (Bug::WorkerLeaseIsNotWritten, Change::Began { id, .. }) if id.queue == PULLED => None,
            (Bug::TouchIsNotWritten, Change::Began { begun, .. })
                if begun.lease.is_some_and(|lease| lease >= MUCH_TIME) =>
            {
                None
            }
            (Bug::HandOverForgetsWhatRuns, Change::Began { begun, .. }) if begun.lease.is_some() => None,
            _ => Some(change.clone()),
        }
    }

    /// What a node goes by instead.
    pub fn bend_limits(self, limits: &mut Limits) {
        match self {
            Bug::LimitsAreIgnored => {
                limits.window_max = 100_000;
                limits.loaded_max = 100_000;
                limits.look_ahead = Duration::from_secs(3_600);
            }
            Bug::OneSlotTooMany => limits.running_max += 1,
            Bug::DestinationLimitIsIgnored => limits.destination_running_max = 1_000,
            Bug::BreakerNeverOpens => limits.breaker_failures = 1_000,
            _ => {}
        }
    }

    /// What a node takes for a queue's settings instead.
    pub fn bend_queue(self, queue: &mut QueueSettings) {
        match self {
            Bug::QueueLimitIsIgnored => queue.running_max = None,
            Bug::RateIsIgnored => queue.rate = None,
            Bug::PauseIsIgnored => queue.paused = false,
            Bug::OneAttemptTooMany => queue.retry.attempts_max += 1,
            Bug::OneAttemptTooFew => queue.retry.attempts_max -= 1,
            Bug::WaitsAreTooShort => halve(&mut queue.retry.waits),
            Bug::LanesNeverBlock => queue.on_exhausted = OnExhausted::DeadLetter,
            _ => {}
        }
    }

    /// What is asked for instead.
    pub fn bend_draft(self, mut draft: Draft) -> Draft {
        if self == Bug::DeadlinesAreBroughtForward {
            let expires_at = draft.spec.expires_at.map(|at| at - Duration::from_secs(1));
            draft.spec = Spec { expires_at, ..(*draft.spec).clone() }.into();
        }
        if self == Bug::PrioritiesAreTurnedRound && draft.spec.lane.is_none() {
            let level = Priority::LAST.level() - draft.priority.level();
            draft.priority = Priority::new(level).unwrap_or_default();
        }
        draft
    }

    /// What is heard of an attempt instead.
    pub fn bend_outcome(self, outcome: Outcome) -> Outcome {
        match (self, outcome) {
            (Bug::RetryAfterIsIgnored, Outcome::Failed { error, .. } | Outcome::Refused { error, .. }) => {
                Outcome::Failed { error, retry_after: None }
            }
            (_, outcome) => outcome,
        }
    }

    /// What a new owner is told instead.
    pub fn bend_standing(self, now: Timestamp, standing: &mut Standing) {
        if self == Bug::TakeoverLooksBackOneSecond {
            for window in &mut standing.windows {
                window.low_water = window.low_water.max(now - Duration::from_secs(1));
            }
        }
    }

    /// What is dropped instead.
    pub fn bend_retention(self, retention: &mut Retention) {
        match self {
            Bug::HistoryIsDroppedEarly => {
                retention.finished_before = retention.finished_before + Duration::from_secs(1);
            }
            Bug::IdentitiesAreForgottenEarly => retention.identity_before = Timestamp::MAX,
            _ => {}
        }
    }

    /// What a load brings instead.
    pub fn bend_loaded(self, limit: usize, loaded: &mut Loaded) {
        if self == Bug::FullPageLosesItsLastRow && loaded.tasks.len() == limit && limit > 1 {
            let at = limit - 2;
            loaded.tasks.remove(at);
        }
        if self == Bug::LoadedTasksForgetTheirDeadline {
            for task in &mut loaded.tasks {
                task.spec = Spec { expires_at: None, ..(*task.spec).clone() }.into();
            }
        }
        if self == Bug::PagesRepeatATask && loaded.tasks.first().is_some_and(|task| one_in(task, 9)) {
            loaded.tasks.extend(loaded.tasks.first().cloned());
        }
    }
}

fn halve(waits: &mut Waits) {
    match waits {
        Waits::Growing { min, max, .. } => (*min, *max) = (*min / 2, *max / 2),
        Waits::Listed(waits) => waits.to_mut().iter_mut().for_each(|wait| *wait /= 2),
    }
}

fn one_in(task: &Task, n: u64) -> bool {
    task.id.seq.0.is_multiple_of(n)
}
