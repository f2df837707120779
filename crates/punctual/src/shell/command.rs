//! What the loop can be told.

use std::time::Duration;

use punctual_core::{
    Answer, Ask, AskNo, BootTime, Event, Fence, Found, Now, Outcome, PartitionId, QueueId, QueueSettings,
    Task, TaskId, Timestamp, Token,
};
use punctual_store::{Query, Store};
use tokio::sync::oneshot;

use super::act::until_answered;
use super::{Done, Reserve, Shell, WAITERS_MIN};
use crate::door::Entries;
use crate::view::{Load, Quiet};
use crate::worker::Settled;
use punctual_core::{EndState, EndedTask, Obstacle};

/// What the loop can be told. Whatever has a `reply` is answered exactly once.
pub enum Command {
    /// A user asks something of a partition.
    Ask {
        /// Which.
        partition: PartitionId,
        /// What.
        ask: Ask,
        /// Where the answer goes. Dropped without one: the loop is gone, and the outcome unknown.
        reply: oneshot::Sender<Answer>,
        /// The ways into the queues that it makes tasks for, held until the answer.
        entries: Entries,
    },
    /// Say when a task has ended.
    AwaitEnd {
        /// Which.
        id: TaskId,
        /// Where the end goes. Dropped without one: the task is not this node's, and its end is not heard of here.
        reply: oneshot::Sender<Ended>,
    },
    /// A queue has these settings from now on, unless a higher version of them was heard of already: two changes may
    /// come in another order than they were made in.
    SetQueue(QueueId, u64, Box<QueueSettings>),
    /// A queue is gone. One of its name may be made anew, with another number.
    QueueRemoved(QueueId),
    /// The executor knows other handlers than before.
    ReceiversChanged,
    /// So many nodes share the work.
    SetNodes(u32),
    /// Take these partitions over, if the ownerships named are still the present ones: whoever decided that they
    /// should end may have decided too late.
    Claim(Vec<Fence>),
    /// Give this partition up, in good order.
    HandOver(PartitionId),
    /// Attempts may start until then; not after it, unless told again.
    TrustUntil(BootTime),
    /// A report that another node could not deliver to its own engine.
    Report(Token, Outcome),
    /// A worker wants tasks.
    Reserve(Reserve),
    /// Workers say how attempts went. Answered for each in turn, when it is on record.
    Settle(Vec<(Token, Outcome)>, oneshot::Sender<Vec<Settled>>),
    /// Stop: finish what runs, for so long at most, then give everything up.
    Stop {
        /// How long to wait for what runs.
        drain: Duration,
        /// Told when everything is given up.
        reply: oneshot::Sender<()>,
    },
    /// Say when no partition is being taken over any more.
    AwaitOwned(oneshot::Sender<()>),
    /// Say how many partitions this node owns.
    Owned(oneshot::Sender<usize>),
    /// What was owed in these partitions under these names is settled.
    Settled(Vec<(PartitionId, Box<str>)>),
    /// Say when nothing is left to do at this time.
    AwaitQuiet(oneshot::Sender<Quiet>),
    /// Say since when the next tasks of each queue have been due that could start.
    Waiting(oneshot::Sender<Vec<(QueueId, Timestamp)>>),
    /// Say how busy the loop is.
    Measure(oneshot::Sender<Load>),
    /// The attempts that run for these tasks.
    Running(Vec<TaskId>, oneshot::Sender<Vec<Option<Token>>>),
}

/// Somebody waits for an answer.
pub(super) struct Asked {
    partition: PartitionId,
    reply: oneshot::Sender<Answer>,
    _entries: Entries,
}

/// The end of a task that somebody waited for.
pub type Ended = Option<EndedOrForgotten>;

/// How it ended, as far as it is remembered.
#[derive(Clone, Debug)]
pub enum EndedOrForgotten {
    /// With its result.
    Ended(Box<EndedTask>),
    /// Only how.
    Forgotten(EndState),
}

impl<S: Store> Shell<S> {
    pub(super) fn obey(&mut self, now: Now, command: Command) {
        match command {
            Command::Ask { partition, ask, reply, entries } => {
                self.ask(now, partition, ask, (reply, entries));
            }
            Command::AwaitEnd { id, reply } => self.await_end(id, reply),
            Command::QueueRemoved(queue) => self.send_away(queue),
            Command::SetQueue(queue, version, settings) => self.set_queue(now, queue, version, *settings),
            Command::ReceiversChanged => self.receivers_changed(now),
            Command::SetNodes(nodes) => {
                self.settings.nodes = nodes;
                self.settings_changed(now);
            }
            Command::Claim(fences) => fences.into_iter().for_each(|ending| self.claim(now, ending)),
            Command::HandOver(partition) => {
                self.node.ask(now, partition, Event::HandOverRequested, &mut self.effects);
            }
            Command::TrustUntil(until) => self.trust_until(now, until),
            Command::Report(token, outcome) => self.reported(now, token, outcome),
            Command::Reserve(reserve) => self.reserve(now, reserve),
            Command::Settle(reports, reply) => self.settle(now, reports, reply),
            Command::Stop { drain, reply } => self.stop(now, drain, reply),
            // Whoever asked may have gone away: then nobody is told.
            Command::Measure(reply) => _ = reply.send(self.load()),
            Command::Waiting(reply) => _ = reply.send(self.node.waiting()),
            Command::Owned(reply) => _ = reply.send(self.node.fences().count()),
            Command::AwaitOwned(reply) => {
                self.awaiting_owned.push(reply);
                self.tell_when_owned();
            }
            Command::Settled(debts) => self.settled(now, debts),
            Command::AwaitQuiet(reply) => self.awaiting_quiet.push(reply),
            Command::Running(ids, reply) => {
                _ = reply.send(ids.into_iter().map(|id| self.node.running(id)).collect());
            }
        }
    }

    fn load(&self) -> Load {
        Load {
            in_memory: self.node.loaded(),
            running: self.node.running_count(),
            waiters: self.waiters.values().map(Vec::len).sum(),
            breakers_open: self.node.breakers_open(),
            partitions_owned: self.node.fences().count(),
            partitions: usize::from(self.meta.partitions),
        }
    }

    pub(super) fn ask(
        &mut self,
        now: Now,
        partition: PartitionId,
        ask: Ask,
        (reply, entries): (oneshot::Sender<Answer>, Entries),
    ) {
        // What workers hold goes on during a stop.
        if self.stopping.is_some() && !matches!(ask, Ask::Touch(..)) {
            reply.send(Answer::NotOwner).ok();
            return;
        }
        if self.asks.len() >= self.settings.limits.asked_max {
            reply.send(Answer::Overloaded).ok();
            return;
        }
        self.next_ask += 1;
        let no = AskNo(self.next_ask);
        self.asks.insert(no, Asked { partition, reply, _entries: entries });
        self.node.ask(now, partition, Event::Asked(no, ask), &mut self.effects);
    }

    pub(super) fn answer(&mut self, no: AskNo, answer: Answer) {
        if let Some(asked) = self.asks.remove(&no) {
            asked.reply.send(answer).ok();
        }
    }

    /// A partition is gone before it answered these requests.
    pub(super) fn answer_all(&mut self, partition: PartitionId, answer: Answer) {
        let mut asks: Vec<AskNo> =
            self.asks.iter().filter(|(_, asked)| asked.partition == partition).map(|(no, _)| *no).collect();
        asks.sort_unstable();
        for no in asks {
            self.answer(no, answer.clone());
        }
    }

    pub(super) fn receivers_changed(&mut self, now: Now) {
        let names = self.executor.receivers();
        self.settings.receivers = names.iter().map(|name| Obstacle::handler(name)).collect();
        self.settings_changed(now);
    }

    fn set_queue(&mut self, now: Now, queue: QueueId, version: u64, settings: QueueSettings) {
        let known = self.queue_versions.entry(queue).or_default();
        if version >= *known {
            *known = version;
            self.retention_may_change(now, queue, &settings);
            self.settings.queues.set(queue, settings);
            self.settings_changed(now);
        }
    }

    fn settings_changed(&mut self, now: Now) {
        self.node.set_settings(now, self.settings.clone().into(), &mut self.effects);
    }

    /// Registers the waiter first and looks second, so that an end in between is not missed.
    fn await_end(&mut self, id: TaskId, reply: oneshot::Sender<Ended>) {
        self.forget_gone_waiters();
        let replies = self.waiters.entry(id).or_default();
        if replies.len() == replies.capacity() {
            replies.retain(|reply| !reply.is_closed());
        }
        replies.push(reply);
        self.look_for_end(id);
    }

    /// Ends may have been recorded that nobody heard of: those who wait for them look again.
    pub(super) fn look_for_ends(&mut self, partition: PartitionId) {
        let partitions = self.meta.partitions;
        let mut ids: Vec<TaskId> = self.waiters.keys().copied().collect();
        ids.retain(|id| id.partition(partitions) == partition);
        ids.sort_unstable();
        ids.into_iter().for_each(|id| self.look_for_end(id));
    }

    fn look_for_end(&mut self, id: TaskId) {
        let (store, observer, partition) =
            (self.store.clone(), self.observer.clone(), id.partition(self.meta.partitions));
        self.calls.push(Box::pin(async move {
            let query = [Query::Id(id)];
            let found = until_answered(&observer, || store.find(partition, &query)).await;
            Done::Looked(id, found.into_iter().next().flatten())
        }));
    }

    pub(super) fn looked(&mut self, id: TaskId, found: Option<Found>) {
        let ended = match found {
            Some(Found::Live(task)) => {
                self.note_deadline(&task);
                return self.refuse_to_wait_for(id);
            }
            Some(Found::Ended(ended)) => Some(EndedOrForgotten::Ended(Box::new(ended))),
            Some(Found::Forgotten { state, .. }) => Some(EndedOrForgotten::Forgotten(state)),
            None => None,
        };
        self.tell_waiters(id, ended);
    }

    /// The end of a task that is somebody else's is not heard of here.
    fn refuse_to_wait_for(&mut self, id: TaskId) {
        let partition = id.partition(self.meta.partitions);
        if self.node.fence(partition).is_none() && !self.taking.contains(&partition) {
            self.waiters.remove(&id);
        }
    }

    /// A partition is gone: those who wait for ends in it are told by hanging up.
    pub(super) fn leave_waiting(&mut self, partition: PartitionId) {
        let partitions = self.meta.partitions;
        self.waiters.retain(|id, _| id.partition(partitions) != partition);
    }

    /// Those who stopped waiting are forgotten whenever their number may have doubled.
    fn forget_gone_waiters(&mut self) {
        if self.waiters.len() >= self.waiters_max {
            self.waiters.retain(|_, replies| {
                replies.retain(|reply| !reply.is_closed());
                !replies.is_empty()
            });
            self.waiters_max = WAITERS_MIN.max(2 * self.waiters.len());
        }
    }

    pub(super) fn task_ended(&mut self, task: &Task, end: &punctual_core::End) {
        if self.waiters.contains_key(&task.id) {
            let ended = EndedTask { task: task.clone(), end: end.clone() };
            self.tell_waiters(task.id, Some(EndedOrForgotten::Ended(Box::new(ended))));
        }
    }

    fn tell_waiters(&mut self, id: TaskId, ended: Ended) {
        for reply in self.waiters.remove(&id).unwrap_or_default() {
            reply.send(ended.clone()).ok();
        }
    }
}
