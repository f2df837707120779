//! The hands of the nodes: carries out effects, reads and writes the store, moves partitions.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use punctual_core::{
    Attempt, Change, Effect, Effects, Event, Fence, FindNo, Found, Loaded, Obstacle, Query, RowKey, Task,
    Timestamp, Token, WindowId,
};
use punctual_store::{Recorded, Store, StoreError, Tear, TearableStore};

use super::words::matches;
use super::world::{Holding, World};

/// Kinds of store operations, as far as scripts hold them apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Loads,
    Parked,
    Finds,
    Records,
}

impl Kind {
    pub const ALL: [(&'static str, Kind); 4] = [
        ("loads", Kind::Loads),
        ("parked", Kind::Parked),
        ("finds", Kind::Finds),
        ("records", Kind::Records),
    ];
}

/// Something asked of the store by a member.
pub struct InFlight {
    pub member: String,
    fence: Fence,
    deed: Deed,
    reply: Option<Reply>,
}

enum Deed {
    Load { window: WindowId, from: RowKey, until: Timestamp, limit: usize },
    Parked { obstacle: Obstacle, from: RowKey, limit: usize },
    Find(FindNo, Vec<Query>),
    Record(Vec<(Fence, Vec<Change>)>),
}

enum Reply {
    Loaded(Loaded),
    Parked(Vec<Task>),
    Found(Vec<Option<Found>>),
    Recorded(Vec<Recorded>),
}

impl Deed {
    fn kind(&self) -> Kind {
        match self {
            Deed::Load { .. } => Kind::Loads,
            Deed::Parked { .. } => Kind::Parked,
            Deed::Find(..) => Kind::Finds,
            Deed::Record(_) => Kind::Records,
        }
    }
}

/// The memory store answers at once: no runtime is needed.
pub fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store never waits"),
    }
}

pub fn surely<T>(future: impl Future<Output = Result<T, StoreError>>) -> T {
    at_once(future).unwrap_or_else(|_| panic!("the memory store never fails"))
}

impl World {
    pub fn carry_out(&mut self, member: &str, effects: Effects) {
        for (fence, effect) in effects {
            match effect {
                Effect::Answer(no, answer) => self.hear_answer(no, answer),
                Effect::LoadTasks { window, from, until, limit } => {
                    self.count("loads");
                    self.show("loads", &format!("load {} tasks of queue {}", limit, window.queue.0));
                    self.ask_store(member, fence, Deed::Load { window, from, until, limit });
                }
                Effect::LoadParked { obstacle, from, limit } => {
                    self.count("loads");
                    let name = self.obstacle_name(obstacle);
                    self.show("loads", &format!("load {limit} parked under {name}"));
                    self.ask_store(member, fence, Deed::Parked { obstacle, from, limit });
                }
                Effect::FindTasks(no, queries) => {
                    self.count("finds");
                    self.ask_store(member, fence, Deed::Find(no, queries));
                }
                Effect::StartAttempt(attempt) => self.start(member, fence, attempt),
                Effect::StopAttempt(token) => self.stop(token),
                Effect::ReleasePartition(fence) => self.release(member, fence),
                Effect::ReloadPartition => {
                    self.say("", "panic");
                    self.count("panics");
                    assert!(self.counts["panics"] < 50, "it panics again and again\n{}", self.transcript());
                    self.take_over(member, fence.partition);
                }
                Effect::ForwardReport(token, outcome) => self.forward(token, outcome),
                other => panic!("the node keeps {other:?} to itself"),
            }
        }
    }

    fn ask_store(&mut self, member: &str, fence: Fence, deed: Deed) {
        let held = self.held.get(&deed.kind()).copied();
        let reply = (held == Some(Holding::Answer)).then(|| self.execute(fence, &deed));
        self.in_flight.push_back(InFlight { member: member.to_owned(), fence, deed, reply });
    }

    fn execute(&mut self, fence: Fence, deed: &Deed) -> Reply {
        let (store, partition) = (self.store.clone(), fence.partition);
        match deed {
            Deed::Load { window, from, until, limit } => {
                Reply::Loaded(surely(store.load(partition, *window, *from, *until, *limit)))
            }
            Deed::Parked { obstacle, from, limit } => {
                Reply::Parked(surely(store.parked(partition, *obstacle, *from, *limit)))
            }
            Deed::Find(_, queries) => Reply::Found(surely(store.find(partition, queries))),
            Deed::Record(batch) => Reply::Recorded(self.write(batch)),
        }
    }

    /// Answers the first request that is not held back.
    pub fn answer_what_may_be_answered(&mut self) -> bool {
        let free = |it: &InFlight| !self.held.contains_key(&it.deed.kind());
        let Some(first) = self.in_flight.iter().position(free) else { return false };
        let InFlight { member, fence, deed, reply } = self.in_flight.remove(first).expect("just found");
        let reply = reply.unwrap_or_else(|| self.execute(fence, &deed));
        let event = match (deed, reply) {
            (Deed::Load { window, .. }, Reply::Loaded(loaded)) => Event::TasksLoaded(window, loaded),
            (Deed::Parked { obstacle, .. }, Reply::Parked(tasks)) => Event::ParkedLoaded(obstacle, tasks),
            (Deed::Find(no, _), Reply::Found(found)) => Event::TasksFound(no, found),
            (Deed::Record(batch), Reply::Recorded(recorded)) => {
                self.recorded(&member, &batch, &recorded);
                return true;
            }
            _ => unreachable!("a reply answers its own request"),
        };
        let now = self.clock.now();
        self.with(&member, |node, out| node.handle(now, fence, event, out));
        true
    }

    /// Takes what a member wants to write, if it is not writing already.
    pub fn start_recording(&mut self, member: &str) -> bool {
        let node = self.members.get_mut(member).expect("members are asked by name");
        let Some(batch) = node.take_batch() else { return false };
        self.count("records");
        self.ask_store(member, Fence::default(), Deed::Record(batch));
        true
    }

    fn write(&mut self, batch: &[(Fence, Vec<Change>)]) -> Vec<Recorded> {
        let is_new = |change: &Change| matches!(change, Change::Accepted(_));
        if self.store_is_full && batch.iter().any(|(_, changes)| changes.iter().any(is_new)) {
            return vec![Recorded::Full; batch.len()];
        }
        let store = self.store.clone();
        let recorded = match self.tear.take() {
            None => at_once(store.record(batch)),
            Some(rows) => at_once(store.record_torn(batch, &vec![Tear::After(rows); batch.len()])),
        };
        for ((_, changes), recorded) in batch.iter().zip(&recorded) {
            match recorded {
                Recorded::Done => changes.iter().for_each(|change| self.written(change)),
                Recorded::Unknown => self.look_at_what_was_written(changes),
                Recorded::Fenced | Recorded::Full => {}
            }
        }
        recorded
    }

    fn recorded(&mut self, member: &str, batch: &[(Fence, Vec<Change>)], recorded: &[Recorded]) {
        let now = self.clock.now();
        for ((fence, changes), recorded) in batch.iter().zip(recorded) {
            // The answer may be about an ownership that is over, and says nothing about the present one.
            let present = self.members[member].fence(fence.partition) == Some(*fence);
            match recorded {
                _ if !present => {}
                Recorded::Done => {
                    self.with(member, |node, out| node.handle(now, *fence, Event::ChangesRecorded, out))
                }
                Recorded::Full => {
                    let refused = Event::ChangesRefused(changes.clone());
                    self.with(member, |node, out| node.handle(now, *fence, refused, out));
                }
                Recorded::Fenced => {
                    self.say("", &format!("fenced {member}"));
                    self.with(member, |node, _| node.forget(now, fence.partition));
                }
                Recorded::Unknown => {
                    self.say("", "unknown");
                    self.take_over(member, fence.partition);
                }
            }
        }
        self.with(member, |node, _| node.batch_done());
    }

    fn start(&mut self, member: &str, fence: Fence, attempt: Attempt) {
        let Attempt { token, spec, .. } = attempt;
        let label = super::accept::label(&spec);
        self.count("started");
        self.say(&label, &format!("start {label} #{}", token.attempt));
        let owned = surely(self.store.ownerships())[usize::from(fence.partition.0)].epoch == fence.epoch;
        if owned {
            let row = surely(self.store.find(fence.partition, &[Query::Id(token.id)]));
            self.promises.attempt_starts(self.clock.now(), token, row.into_iter().next().flatten());
        } else {
            self.promises.stray_starts(token.id);
        }
        let auto = self.auto.iter().find(|auto| matches(&auto.pattern, &label));
        if let Some((at, outcome)) = auto.map(|auto| (self.clock.micros + auto.after, auto.outcome.clone())) {
            let number = self.number();
            self.reports.insert((at, number), (member.to_owned(), token, outcome));
        }
        self.attempts.entry(label).or_default().push((member.to_owned(), token));
    }

    fn stop(&mut self, token: Token) {
        let label = self.labels.get(&token.id).cloned().unwrap_or_default();
        self.promises.attempt_over(token);
        self.say(&label, &format!("stop {label} #{}", token.attempt));
    }
}
