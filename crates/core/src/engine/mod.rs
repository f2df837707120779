//! One partition's decisions: what waits, what may start, what happens when it ends.
//!
//! ```text
//!          admit ──▶ (recorded) ──▶ accept ──▶ wait ──▶ dispatch ──▶ (granted, runs) ──▶ finish
//!                                     │  ▲                │   ▲                            │
//!                     far: the store ◀┘  └─ load          └─▶ park ◀── lane held, …        └─▶ retry: accept
//! ```
//!
//! Facts go in as [`Event`]s, orders come out as [`Effect`]s and [`Change`]s; `now` is an argument. At most one
//! batch of changes is being recorded at a time; what may happen only after it is kept in `after`.

mod accept;
mod admit;
mod amend;
mod begun;
mod deferred;
mod dispatch;
mod entry;
mod expire;
mod finish;
mod hand_over;
mod lane;
mod lease;
mod park;
mod reads;
mod refuse;
mod window;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::change::Change;
use crate::id::{Fence, Seq};
use crate::limits::Limits;
use crate::message::{Answer, Ask, AskNo, Effect, Event, Token};
use crate::queue::Queues;
use crate::task::{Identity, Obstacle, Task, WaitState, WindowId};
use crate::time::{BootTime, Now, Timestamp, Wake};
use crate::wheel::Wheel;

use admit::Creation;
use begun::JustBegun;
use deferred::{Awaited, Deferred};
use entry::{Entries, Slot};
use park::{Hold, Unparking};
use reads::{Pending, Reads};
use window::Windows;

/// What all partitions of a node share. Replaced as a whole when something in it changes.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Bounds.
    pub limits: Limits,
    /// Queues.
    pub queues: Queues,
    /// Handlers that somebody has registered, as obstacles that do not stand.
    pub receivers: FxHashSet<Obstacle>,
    /// How many nodes share the work: limits of queues that are not pinned are shared among them.
    pub nodes: u32,
}

/// One partition's decisions.
pub struct Engine {
    fence: Fence,
    settings: Arc<Settings>,
    next_seq: Seq,

    /// Tasks in memory, whatever they are doing.
    entries: Entries,
    /// Those that wait for their time.
    wheel: Wheel<Slot>,
    /// Those that run, by when their lease ends. Boot time, written as a timestamp.
    leases: Wheel<Slot>,
    /// Those that are due and kept waiting, by when they expire. What has no `expires_at` is not in here.
    deadlines: BTreeSet<(Timestamp, Slot)>,
    windows: Windows,

    /// What keeps tasks from starting, and who holds it. An entry here is all that a held lane costs.
    holds: FxHashMap<Obstacle, Hold>,
    /// Obstacles whose parked tasks are being read, or have some in memory.
    unparking: FxHashMap<Obstacle, Unparking>,
    /// Due tasks in memory that wait for the head of their lane, in order.
    behind: FxHashMap<Obstacle, Vec<Slot>>,
    behind_total: usize,
    /// Tasks that failed while another headed their lane, and when they may be tried again. Lost with the ownership:
    /// the next owner tries them again as soon as they head their lane.
    retries_as_head: FxHashMap<Seq, Timestamp>,
    /// The task that waits for something else from now on, and what its row still says: that is written next.
    was: Option<(Seq, WaitState)>,
    /// Lanes whose next task may start only when its window has been read up to it.
    unread_lanes: FxHashMap<WindowId, Vec<Obstacle>>,
    /// Obstacles whose parked tasks wait for room in memory.
    unpark_later: BTreeSet<Obstacle>,
    /// Windows that are read on when what was read before is recorded.
    load_later: BTreeSet<WindowId>,
    /// Windows that hold twice what they should.
    overfull: Vec<WindowId>,

    reads: Reads,
    /// Identities between look-up and record: a second create of the same waits.
    identities: FxHashSet<Identity>,
    deferred: Deferred,

    changes: Vec<Change>,
    after: Vec<After>,
    /// Attempts that began a moment ago, in that order. Those that are over are forgotten when the ones before them are.
    just_begun: VecDeque<JustBegun>,
    /// Attempts that are to be noted: recorded if they still run when the next batch is cut.
    began: Vec<Slot>,
    /// What waits for the batch in flight.
    in_flight: Option<Vec<After>>,
    /// Tasks numbered from here on are not recorded yet, and no read may bring them in.
    unrecorded_from: Seq,

    /// When this ownership began. What was due before it may have been running when the last one ended.
    owned_since: Timestamp,
    /// Tasks that were being handled when the partition failed on this node, and at how many failures. Forgotten when
    /// something about them is recorded: their row has the count by then.
    suspects: BTreeMap<Seq, u16>,
    leaving: bool,
    released: bool,
    /// The task being handled: named if we fail, so that it can be set aside.
    handling: Option<Seq>,
    /// Reused, so that a tick allocates nothing.
    due: Vec<Slot>,
}

/// What may happen only after a change is on stable storage.
enum After {
    /// These tasks exist.
    Accept(AskNo, Creation),
    /// Somebody may be told.
    Answer(AskNo, Answer),
    /// The row lies at its new place: wait there.
    Refiled(Slot),
    /// The same, and its lane goes on without it.
    Moved(Slot),
    /// The row lies under an obstacle.
    Parked(Slot),
    /// The row of a lane's blocked head lies where it expires.
    Blocked(Slot),
    /// The task has ended.
    Ended(Slot),
    /// The start is recorded: now it may begin.
    Start(Slot),
}

impl Engine {
    /// The partition and the ownership this engine decides under.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// What happened; orders are appended to `out`.
    pub fn handle(&mut self, now: Now, event: Event, out: &mut Vec<Effect>) {
        // A wall clock that was set back: what waits is filed anew, and fires when its time comes again.
        let set_back = now.wall < self.wheel.now();
        if set_back {
            self.wheel.reset(now.wall);
        }
        // What is due comes before what happens now: a late loop must not let a new task overtake an old one.
        if !self.leaving && self.wheel.wake_at().is_some_and(|at| at <= now.wall) {
            self.wake_due_tasks(now, out);
        }
        match event {
            Event::Asked(no, ask) => self.asked(now, no, ask, out),
            Event::ChangesRecorded => self.changes_recorded(now, out),
            Event::ChangesRefused(changes) => self.changes_refused(changes),
            Event::TasksLoaded(window, loaded) => self.tasks_loaded(now, window, loaded, out),
            Event::ParkedLoaded(obstacle, tasks) => self.parked_loaded(now, obstacle, tasks, out),
            Event::TasksFound(no, found) => self.tasks_found(now, no, found, out),
            Event::OfferGranted(offer, time_to_run) => self.offer_granted(now, offer, time_to_run, out),
            Event::OfferRefused(offer, obstacle) => self.offer_refused(now, offer, obstacle, out),
            Event::AttemptEnded(token, outcome) => self.attempt_ended(now, token, outcome, out),
            Event::LeaseTouched(token, more) => self.lease_touched(now, token, more),
            Event::DebtSettled(name) => self.changes.push(Change::Schedule(name, None)),
            Event::ObstacleEased(obstacle) => self.obstacle_eased(obstacle, out),
            Event::SettingsChanged => self.settings_changed(now, out),
            Event::TimePassed => self.time_passed(now, out),
            Event::HandOverRequested => self.hand_over(now, out),
        }
        self.handling = None;
        if set_back {
            self.wait_again(now, out);
        }
        self.trim_overfull_windows(out);
        self.unpark_waiting(out);
        self.release_when_quiet(out);
    }

    /// New settings apply from the next event on; send [`Event::SettingsChanged`] after this.
    pub fn set_settings(&mut self, settings: Arc<Settings>) {
        self.settings = settings;
    }

    /// How many changes could be recorded next. Attempts that have begun meanwhile may be some more.
    pub fn unrecorded(&self) -> usize {
        if self.in_flight.is_some() { 0 } else { self.changes.len() }
    }

    /// The changes to record next, if there are any and none are in flight. The caller says
    /// [`Event::ChangesRecorded`] when they are on stable storage, and takes the partition over anew if
    /// that is not known.
    pub fn take_changes(&mut self) -> Option<Vec<Change>> {
        if self.in_flight.is_some() {
            return None;
        }
        self.note_begun_attempts();
        self.mark_low_water();
        if self.changes.is_empty() && self.after.is_empty() {
            return None;
        }
        let (after, changes) = (room_for(self.after.len()), room_for(self.changes.len()));
        self.in_flight = Some(std::mem::replace(&mut self.after, Vec::with_capacity(after)));
        Some(std::mem::replace(&mut self.changes, Vec::with_capacity(changes)))
    }

    /// When time next makes a difference.
    pub fn wake_at(&self) -> Wake {
        if self.leaving {
            return Wake::default();
        }
        let boot = self.leases.wake_at().map(|at| BootTime::from_micros(at.as_micros() as u64));
        let wake = Wake { wall: self.wheel.wake_at(), boot }.or(self.windows.wake_at());
        wake.or(Wake { wall: self.first_deadline(), boot: self.next_to_note() })
    }

    /// How many tasks are held in memory.
    pub fn loaded(&self) -> usize {
        self.entries.len()
    }

    /// How many obstacles stand: lanes held, handlers missing, destinations full.
    pub fn obstacles(&self) -> usize {
        self.holds.len()
    }

    /// How often a request had to wait for another about the same task.
    pub fn deferrals(&self) -> u64 {
        self.deferred.times()
    }

    /// The attempt that runs for this task.
    pub fn running(&self, seq: Seq) -> Option<Token> {
        self.entries.find(seq).and_then(|slot| self.entries[slot].token())
    }

    /// How many bytes this task carries, if it is in memory.
    pub fn carried(&self, seq: Seq) -> usize {
        self.entries.find(seq).map_or(0, |slot| self.entries[slot].task.spec.payload.len())
    }

    /// What the next engine of this partition must know: the tasks that were being handled when it failed on this
    /// node, and how often. If this engine has just panicked, that counts.
    pub fn take_suspects(&mut self) -> BTreeMap<Seq, u16> {
        let mut suspects = std::mem::take(&mut self.suspects);
        if let Some(seq) = self.handling.take() {
            let failures = suspects.entry(seq).or_default();
            *failures = failures.saturating_add(1);
        }
        suspects
    }

    fn asked(&mut self, now: Now, no: AskNo, ask: Ask, out: &mut Vec<Effect>) {
        if self.leaving {
            return out.push(Effect::Answer(no, Answer::NotOwner));
        }
        if self.reads.asks() + self.deferred.len() >= self.settings.limits.asked_max {
            return out.push(Effect::Answer(no, Answer::Overloaded));
        }
        self.take_up(now, no, ask, out);
    }

    fn take_up(&mut self, now: Now, no: AskNo, ask: Ask, out: &mut Vec<Effect>) {
        match ask {
            Ask::Create(drafts) => self.create(now, no, drafts, out),
            Ask::Amend(amend) => self.amend(now, no, amend, out),
            Ask::Touch(token, more) => self.touch(now, no, token, more, out),
        }
    }

    fn changes_recorded(&mut self, now: Now, out: &mut Vec<Effect>) {
        let done = self.in_flight.take().expect("changes are recorded only after they were taken");
        self.unrecorded_from = self.after.iter().find_map(After::first_seq).unwrap_or(self.next_seq);
        for after in done {
            match after {
                After::Accept(no, creation) => self.created(now, no, creation, out),
                After::Answer(no, answer) => out.push(Effect::Answer(no, answer)),
                After::Refiled(slot) => self.refiled(now, slot, out),
                After::Moved(slot) => self.moved(now, slot, out),
                After::Parked(slot) => self.parked(now, slot, out),
                After::Blocked(slot) => self.blocked(now, slot, out),
                After::Ended(slot) => self.ended(now, slot, out),
                After::Start(slot) => self.begin_recorded(now, slot, out),
            }
        }
        self.load_waiting(now, out);
        self.ask_again(now, out);
    }

    fn tasks_found(
        &mut self,
        now: Now,
        no: crate::message::FindNo,
        found: Vec<Option<crate::facts::Found>>,
        out: &mut Vec<Effect>,
    ) {
        match self.reads.found(no) {
            Some(Pending::Create(ask, drafts, clock)) => {
                self.identities_found(now, ask, drafts, clock, found, out)
            }
            Some(Pending::Amend(ask, amend, clock)) => {
                let id = amend.id;
                self.task_found(now, ask, amend, clock, found, out);
                self.ask_line(now, Awaited::Task(id.seq), out);
            }
            None => {}
        }
    }

    fn settings_changed(&mut self, now: Now, out: &mut Vec<Effect>) {
        self.close_paused_windows(out);
        self.consider_all_windows(now, out);
        self.ease_obstacles(out);
    }

    fn time_passed(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.leaving {
            return;
        }
        self.expire_leases(now, out);
        self.note_what_lasts(now);
        self.load_due_windows(now, out);
        self.expire_overdue(now, out);
        self.wake_due_tasks(now, out);
    }
}

impl After {
    fn first_seq(&self) -> Option<Seq> {
        match self {
            After::Accept(_, creation) => creation.tasks.first().map(|task: &Task| task.id.seq),
            _ => None,
        }
    }
}

/// Boot time as the lease wheel files it.
fn on_wheel(boot: BootTime) -> Timestamp {
    Timestamp::from_micros(i64::try_from(boot.as_micros()).unwrap_or(i64::MAX)).min(Timestamp::MAX)
}

/// Room for the next batch, which will be about as large as the last one: growing to it step by step would copy it
/// several times. An idle partition keeps little, and one with a task now and then nothing: the first step takes four.
fn room_for(last: usize) -> usize {
    if last < 4 { 0 } else { last.min(256) }
}
