//! A node driven by hand: everything it asks for happens at once, on one thread, without a store or a clock.
//!
//! What is measured here is what the node itself costs. Rounds go as in the library's loop: events, `advance`,
//! effects, one batch of changes; only that the batch is recorded, and the attempts are over, before the next round.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual_core::{
    Answer, Ask, AskNo, BootTime, Change, Created, Draft, Effect, Effects, Epoch, Event, Fence, Inheritance,
    Limits, Node, Now, Obstacle, OnConflict, Outcome, PartitionId, Priority, QueueId, QueueSettings, Route,
    Settings, Spec, Target, Timestamp, Token,
};

/// The queue that nothing starts in.
pub const PAUSED: QueueId = QueueId(2);
/// The queue of everything else.
pub const OPEN: QueueId = QueueId(1);

const HANDLER: &str = "nothing";

/// Who records a node's changes.
pub trait Recorder {
    /// Writes them; they are on record when this returns.
    fn record(&mut self, batch: &[(Fence, Vec<Change>)]);
}

/// Says that everything is recorded, and keeps nothing.
pub struct Echo;

impl Recorder for Echo {
    fn record(&mut self, _batch: &[(Fence, Vec<Change>)]) {}
}

/// How attempts go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempts {
    /// They succeed as soon as they start.
    Succeed,
    /// They give up as soon as they start.
    GiveUp,
    /// They go on for ever.
    Hang,
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Tasks that were created.
    pub created: u64,
    /// Attempts that were started.
    pub started: u64,
    /// Tasks that have ended, and whose end is recorded.
    pub ended: u64,
    /// Changes that were recorded.
    pub changes: u64,
    /// Those of them that raise a low-water mark.
    pub marks: u64,
    /// Batches in which they were recorded.
    pub records: u64,
    /// Times the store was asked to read: by window, under an obstacle, or by identity.
    pub reads: u64,
}

impl Tally {
    /// What has happened since then.
    pub fn since(self, before: Tally) -> Tally {
        Tally {
            created: self.created - before.created,
            started: self.started - before.started,
            ended: self.ended - before.ended,
            changes: self.changes - before.changes,
            marks: self.marks - before.marks,
            records: self.records - before.records,
            reads: self.reads - before.reads,
        }
    }

    fn note(&mut self, changes: &[Change]) {
        self.changes += changes.len() as u64;
        for change in changes {
            match change {
                Change::Ended { .. } => self.ended += 1,
                Change::LowWater(..) => self.marks += 1,
                _ => {}
            }
        }
    }
}

/// A node, and a world around it in which everything happens at once.
pub struct World<R> {
    node: Node,
    recorder: R,
    now: Now,
    attempts: Attempts,
    tally: Tally,
    effects: Effects,
    started: Vec<Token>,
    next_ask: u64,
}

impl<R: Recorder> World<R> {
    /// A node that owns all its partitions, under epoch 1, and has room for all that the benchmarks give it.
    pub fn new(partitions: u16, recorder: R) -> World<R> {
        let limits = Limits {
            running_max: 1_000_000,
            window_max: 1_000_000,
            loaded_max: 4_000_000,
            ..Limits::default()
        };
        World::with_limits(partitions, limits, recorder)
    }

    /// The same, with these limits.
    pub fn with_limits(partitions: u16, limits: Limits, recorder: R) -> World<R> {
        let mut settings = Settings { limits, nodes: 1, ..Settings::default() };
        settings.receivers.insert(Obstacle::handler(HANDLER));
        settings.queues.set(PAUSED, QueueSettings { paused: true, ..QueueSettings::default() });
        let now = Now { wall: Timestamp::from_secs(1_000_000_000), boot: BootTime::from_micros(1_000_000) };
        let mut node = Node::new(partitions, Arc::new(settings));
        let mut effects = Effects::new();
        node.trust_until(now, BootTime::from_micros(u64::MAX));
        for partition in (0..partitions).map(PartitionId) {
            let fence = Fence { partition, epoch: Epoch(1) };
            node.take_over(now, fence, Inheritance::default(), &mut effects);
        }
        let attempts = Attempts::Succeed;
        let mut world = World {
            node,
            recorder,
            now,
            attempts,
            tally: Tally::default(),
            effects,
            started: Vec::new(),
            next_ask: 0,
        };
        // What is due when an ownership begins is recorded before it starts. The benchmarks come after that.
        world.pass(Duration::from_secs(1));
        world
    }

    /// What time it is in this world.
    pub fn now(&self) -> Now {
        self.now
    }

    /// What has happened so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// How many tasks the node holds in memory.
    pub fn loaded(&self) -> usize {
        self.node.loaded()
    }

    /// How attempts go from now on.
    pub fn set_attempts(&mut self, attempts: Attempts) {
        self.attempts = attempts;
    }

    /// Somebody asks for these tasks: one request for each partition.
    pub fn ask(&mut self, drafts: Vec<(PartitionId, Vec<Draft>)>) {
        for (partition, drafts) in drafts {
            self.next_ask += 1;
            let event = Event::Asked(AskNo(self.next_ask), Ask::Create(drafts));
            self.node.ask(self.now, partition, event, &mut self.effects);
        }
    }

    /// Rounds until there is nothing left to do at this moment.
    pub fn settle(&mut self) {
        while self.round() {}
    }

    /// Time passes, and what is due happens.
    pub fn pass(&mut self, time: Duration) {
        self.now = Now { wall: self.now.wall + time, boot: self.now.boot + time };
        self.settle();
    }

    /// One round of the loop. Says whether anything happened.
    fn round(&mut self) -> bool {
        self.node.advance(self.now, &mut self.effects);
        let acted = !self.effects.is_empty();
        self.carry_out();
        self.report();
        let recorded = self.record();
        acted || recorded
    }

    fn carry_out(&mut self) {
        for (_, effect) in self.effects.drain(..) {
            match effect {
                Effect::StartAttempt(attempt) => {
                    self.tally.started += 1;
                    self.started.push(attempt.token);
                }
                Effect::Answer(_, Answer::Created(created)) => {
                    let is_new = |created: &&Created| matches!(created, Created::New(_));
                    self.tally.created += created.iter().filter(is_new).count() as u64;
                }
                Effect::LoadTasks { .. } | Effect::LoadParked { .. } | Effect::FindTasks(..) => {
                    self.tally.reads += 1;
                }
                other => unreachable!("nothing goes wrong in this world: {other:?}"),
            }
        }
    }

    fn report(&mut self) {
        let outcome = match self.attempts {
            Attempts::Succeed => Outcome::Succeeded(Bytes::new()),
            Attempts::GiveUp => Outcome::GaveUp("no".into()),
            Attempts::Hang => return self.started.clear(),
        };
        for token in self.started.drain(..) {
            self.node.report(self.now, token, outcome.clone(), &mut self.effects);
        }
    }

    fn record(&mut self) -> bool {
        let Some(batch) = self.node.take_batch() else { return false };
        self.recorder.record(&batch);
        self.node.batch_done();
        self.tally.records += 1;
        for (fence, changes) in &batch {
            self.tally.note(changes);
            self.node.handle(self.now, *fence, Event::ChangesRecorded, &mut self.effects);
        }
        true
    }
}

/// In which lanes the tasks run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lanes {
    /// In none.
    None,
    /// Each in its own.
    Own,
    /// So many, in turn.
    Shared(u64),
}

/// Makes tasks that differ only in their lane and their time.
pub struct Maker {
    partitions: u16,
    queue: QueueId,
    lanes: Lanes,
    handler: Arc<str>,
    made: u64,
}

impl Maker {
    /// Tasks of that queue, spread evenly over the partitions, or as their lanes say.
    pub fn new(partitions: u16, queue: QueueId, lanes: Lanes) -> Maker {
        Maker { partitions, queue, lanes, handler: HANDLER.into(), made: 0 }
    }

    /// So many tasks, by partition. `due` says when each is due, by its number.
    pub fn make(&mut self, count: usize, due: impl Fn(u64) -> Timestamp) -> Vec<(PartitionId, Vec<Draft>)> {
        let ids = (0..self.partitions).map(PartitionId);
        let mut drafts: Vec<(PartitionId, Vec<Draft>)> = ids.map(|id| (id, Vec::new())).collect();
        for _ in 0..count {
            let draft = self.draft(due(self.made));
            self.made += 1;
            drafts[usize::from(draft.route.partition(self.partitions).0)].1.push(draft);
        }
        drafts.retain(|(_, drafts)| !drafts.is_empty());
        drafts
    }

    fn draft(&self, at: Timestamp) -> Draft {
        let mut spec = Spec::new(Target::Handler(self.handler.clone()), at);
        spec.payload = Bytes::from_static(b"{\"invoice\":4711,\"customer\":\"ana\"}");
        spec.lane = match self.lanes {
            Lanes::None => None,
            Lanes::Own => Some(format!("lane-{}", self.made).into()),
            Lanes::Shared(lanes) => Some(format!("lane-{}", self.made % lanes).into()),
        };
        let route = spec.lane.as_deref().map_or(Route::anywhere(self.made as u32), Route::of);
        let (queue, on_conflict) = (self.queue, OnConflict::default());
        Draft { route, queue, priority: Priority::default(), spec: Arc::new(spec), on_conflict }
    }
}
