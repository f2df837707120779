//! One loop per node: wait, decide, act.
//!
//! The loop owns the node's engines and its gate; nothing else touches them, so nothing is locked. Store calls and
//! attempts run beside it and come back as events. Everything that decides is in `punctual-core`.

mod act;
mod alarm;
mod attempt;
mod command;
mod overdue;
mod owed;
mod prune;
mod quiet;
mod runners;
mod stop;
mod takeover;
mod trusted_time;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, BoxFuture};
use futures_util::stream::FuturesUnordered;
use punctual_core::{
    Answer, AskNo, Attempt, BootTime, Change, Effects, Event, Fence, FindNo, Found, Inheritance, Loaded,
    Node, Now, Obstacle, Outcome, PartitionId, Prune, Pruned, Pruning, QueueId, Settings, Task, TaskId,
    Token, Wake, WindowId,
};
use punctual_store::{Meta, Recorded, Store, StoreError};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;
use crate::executor::Executor;
use crate::observer::{Note, Observer};
use crate::view::Quiet;

pub use crate::door::Entries;
use alarm::{Alarm, sleep};
use command::Asked;
pub use command::{Command, Ended, EndedOrForgotten};
use overdue::Overdue;
use runners::{Report, Runners};
use stop::Stopping;
use trusted_time::TrustedTime;
pub use workers::Reserve;
use workers::Workers;

/// How many events are taken in before effects are carried out: a batch for the gate and for the store.
const EVENTS_PER_ROUND: usize = 1_024;
/// So many waiters are not looked through for those who have gone.
const WAITERS_MIN: usize = 1_024;
/// With something to wait for, the wall clock is looked at so often: it may have been set.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What a loop is made of.
pub struct Parts<S> {
    /// Where tasks wait.
    pub store: Arc<S>,
    /// How they run.
    pub executor: Arc<dyn Executor>,
    /// Who watches.
    pub observer: Arc<dyn Observer>,
    /// What time it is.
    pub clock: Clock,
    /// Bounds, queues and receivers to begin with.
    pub settings: Settings,
    /// This node's name in the store.
    pub name: Box<str>,
    /// Attempts and store calls run inside the loop's own future, so that whoever stops polling it stops
    /// everything: for simulations.
    pub inline: bool,
    /// Where reports go whose partition has gone to another node.
    pub forward_to: Option<mpsc::Sender<(Token, Outcome)>>,
}

/// One node at work.
pub struct Shell<S> {
    store: Arc<S>,
    executor: Arc<dyn Executor>,
    observer: Arc<dyn Observer>,
    clock: Clock,
    alarm: Alarm,
    settings: Settings,
    name: Box<str>,
    inline: bool,
    forward_to: Option<mpsc::Sender<(Token, Outcome)>>,
    meta: Meta,

    node: Node,
    commands: mpsc::Receiver<Command>,
    runners: Runners,
    /// Attempts that begin when this round is over.
    starting: Vec<Attempt>,
    /// What was reported on, while it is taken in; its room is used again.
    reports: Vec<Report>,
    /// Store calls, and attempts that run inline.
    calls: FuturesUnordered<BoxFuture<'static, Done>>,
    effects: Effects,

    next_ask: u64,
    asks: FxHashMap<AskNo, Asked>,
    inline_attempts: FxHashMap<Token, AbortHandle>,
    /// Who waits for the end of a task.
    waiters: FxHashMap<TaskId, Vec<oneshot::Sender<Ended>>>,
    /// When so many tasks are waited for, those who stopped waiting are forgotten.
    waiters_max: usize,
    /// Of which version each queue's settings are.
    queue_versions: FxHashMap<QueueId, u64>,
    /// Tasks that are waited for and can expire.
    overdue: Overdue,
    workers: Workers,
    /// Partitions being taken over.
    taking: FxHashSet<PartitionId>,
    /// Reports for partitions being taken over: nobody is there yet to hear them.
    early_reports: Vec<(Token, Outcome)>,
    /// How often each partition was reloaded since something of it was last recorded.
    reloads: FxHashMap<PartitionId, u32>,
    /// Nothing is recorded before this: the store had no room even for what ends tasks.
    full_until: Option<BootTime>,
    /// Who waits until no partition is being taken over.
    awaiting_owned: Vec<oneshot::Sender<()>>,
    /// Who waits until nothing is left to do at this time.
    awaiting_quiet: Vec<oneshot::Sender<Quiet>>,
    /// When history is to be dropped.
    pruning: Pruning,
    stopping: Option<Stopping>,
    /// Nobody can send commands any more.
    deserted: bool,
    /// How often others could have taken our partitions without our knowing.
    lapses: u64,
    trusted_time: TrustedTime,
}

/// What is recorded together.
type Batch = Vec<(Fence, Vec<Change>)>;

/// Something that ran beside the loop is done.
enum Done {
    Recorded(Arc<Batch>, Vec<Recorded>),
    Loaded(Fence, WindowId, Loaded),
    Parked(Fence, Obstacle, Vec<Task>),
    Found(Fence, FindNo, Vec<Option<Found>>),
    Taken(Fence, Box<Inheritance>, u64),
    NotTaken(PartitionId),
    Released(Fence),
    Reported(Token, Outcome),
    Looked(TaskId, Option<Found>),
    Pruned(Prune, Result<Pruned, StoreError>),
    Overdue(TaskId, Option<Answer>),
    TimeNoted(bool),
    StillTrying,
}

/// Why the loop woke.
enum Woken {
    Commands(Vec<Command>),
    Reports,
    Done(Done),
    Time,
    NobodyAsks,
}

impl<S: Store> Shell<S> {
    /// A loop that is ready to run, and where its commands go. It owns nothing until it is told to claim.
    pub async fn new(parts: Parts<S>) -> Result<(Shell<S>, mpsc::Sender<Command>), StoreError> {
        let meta = parts.store.meta().await?;
        let trusted_time = trusted_time::compare(&*parts.store, &parts.clock, &*parts.observer).await?;
        let (command_to, commands) = mpsc::channel(parts.settings.limits.asked_max);
        let runners = Runners::new(parts.executor.clone(), parts.settings.limits.payload_max);
        let shell = Shell {
            node: Node::new(meta.partitions, Arc::new(parts.settings.clone())),
            store: parts.store,
            executor: parts.executor,
            observer: parts.observer,
            alarm: Alarm::new(&parts.clock),
            clock: parts.clock,
            settings: parts.settings,
            name: parts.name,
            inline: parts.inline,
            forward_to: parts.forward_to,
            meta,
            commands,
            runners,
            starting: Vec::new(),
            reports: Vec::new(),
            calls: FuturesUnordered::new(),
            effects: Vec::new(),
            next_ask: 0,
            asks: FxHashMap::default(),
            inline_attempts: FxHashMap::default(),
            waiters: FxHashMap::default(),
            waiters_max: WAITERS_MIN,
            queue_versions: FxHashMap::default(),
            overdue: Overdue::default(),
            workers: Workers::default(),
            taking: FxHashSet::default(),
            early_reports: Vec::new(),
            reloads: FxHashMap::default(),
            full_until: None,
            awaiting_owned: Vec::new(),
            awaiting_quiet: Vec::new(),
            pruning: Pruning::default(),
            stopping: None,
            deserted: false,
            lapses: 0,
            trusted_time,
        };
        Ok((shell, command_to))
    }

    /// Runs until it is told to stop, or nobody can tell it anything any more.
    pub async fn run(mut self) {
        while !self.has_stopped() {
            let woken = self.wait().await;
            let now = self.read_clock();
            self.decide(now, woken);
            self.take_in_more(now);
            self.ask_about_overdue(now);
            self.node.advance(now, &mut self.effects);
            self.serve_workers(now);
            self.note_for_quiet();
            self.act(now);
            self.prune(now);
            self.tell_when_quiet(now);
        }
        self.stop_all_attempts();
        self.note_time_at_the_end().await;
    }

    /// Waits for whatever comes first. Biased, so that a run can be repeated from its seed.
    async fn wait(&mut self) -> Woken {
        let now = self.read_clock();
        let delay = self.delay(now);
        let mut commands = Vec::new();
        tokio::select! {
            biased;
            Some(done) = self.calls.next(), if !self.calls.is_empty() => Woken::Done(done),
            () = self.runners.reported(&mut self.reports) => Woken::Reports,
            count = self.commands.recv_many(&mut commands, EVENTS_PER_ROUND), if !self.deserted => {
                if count == 0 { Woken::NobodyAsks } else { Woken::Commands(commands) }
            }
            () = self.alarm.at(now.boot, delay) => Woken::Time,
        }
    }

    fn delay(&self, now: Now) -> Duration {
        let mut wake = self.node.wake_at().or(self.overdue.wake()).or(self.workers.wake());
        if let Some(stopping) = &self.stopping {
            wake = wake.or(stopping.wake());
        }
        wake = wake.or(Wake { wall: None, boot: self.full_until.filter(|until| *until > now.boot) });
        let max = if wake.wall.is_some() { WAIT_MAX } else { Duration::from_secs(3600) };
        // History can wait: it is no reason to look at the wall clock every second.
        let max = self.prune_delay(now).map_or(max, |delay| delay.min(max));
        wake.delay(now).unwrap_or(max).min(max)
    }

    fn decide(&mut self, now: Now, woken: Woken) {
        match woken {
            Woken::Commands(commands) => commands.into_iter().for_each(|command| self.obey(now, command)),
            Woken::Reports => self.take_in_reports(now),
            Woken::Done(done) => self.done(now, done),
            Woken::Time => self.continue_stopping(now),
            Woken::NobodyAsks => self.stop_when_deserted(now),
        }
    }

    /// Whatever else has already happened goes into the same round.
    fn take_in_more(&mut self, now: Now) {
        self.runners.take_reports(&mut self.reports);
        self.take_in_reports(now);
        for _ in 0..EVENTS_PER_ROUND {
            let Ok(command) = self.commands.try_recv() else { break };
            self.obey(now, command);
        }
    }

    fn take_in_reports(&mut self, now: Now) {
        let mut reports = std::mem::take(&mut self.reports);
        for (token, outcome) in reports.drain(..) {
            self.reported(now, token, outcome);
        }
        self.reports = reports;
    }

    fn reported(&mut self, now: Now, token: Token, outcome: Outcome) {
        if self.taking.contains(&token.id.partition(self.meta.partitions)) {
            return self.early_reports.push((token, outcome));
        }
        if self.inline {
            self.inline_attempts.remove(&token);
        }
        self.observer.observe(Note::Reported(token, &outcome));
        self.node.report(now, token, outcome, &mut self.effects);
        self.continue_stopping(now);
    }

    fn done(&mut self, now: Now, done: Done) {
        let out = &mut self.effects;
        match done {
            Done::Loaded(fence, window, loaded) => {
                self.node.handle(now, fence, Event::TasksLoaded(window, loaded), out);
            }
            Done::Parked(fence, obstacle, tasks) => {
                self.node.handle(now, fence, Event::ParkedLoaded(obstacle, tasks), out);
            }
            Done::Found(fence, no, found) => self.node.handle(now, fence, Event::TasksFound(no, found), out),
            Done::Recorded(batch, answers) => self.recorded(now, batch, answers),
            Done::Reported(token, outcome) => self.reported(now, token, outcome),
            Done::Taken(fence, inheritance, lapses) => self.taken(now, fence, *inheritance, lapses),
            Done::NotTaken(partition) => self.not_taken(now, partition),
            Done::Released(fence) => self.released(now, fence),
            Done::Looked(id, found) => self.looked(id, found),
            Done::Pruned(prune, answer) => self.pruned(now, prune, answer),
            Done::Overdue(id, answer) => self.overdue_answered(now, id, answer),
            Done::TimeNoted(done) => self.trusted_time.noted(done),
            Done::StillTrying => {}
        }
    }

    fn read_clock(&mut self) -> Now {
        let (now, step) = self.clock.read();
        if let Some(step) = step {
            self.observer.observe(Note::ClockStepped(step));
            self.file_timers_anew(now);
        }
        now
    }

    /// After a step back each engine must look at the clock again, or it would sleep until the old time returns.
    fn file_timers_anew(&mut self, now: Now) {
        let fences: Vec<Fence> = self.node.fences().collect();
        for fence in fences {
            self.node.handle(now, fence, Event::TimePassed, &mut self.effects);
        }
    }
}
