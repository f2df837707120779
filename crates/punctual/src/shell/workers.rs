//! Workers: they reserve tasks, hold them for a while, and say how they went.
//!
//! A reserve waits here until a task of its queue may start, so that nobody polls. What a worker holds is an attempt like
//! any other, only that it runs elsewhere: its end is reported by the worker, or its lease runs out.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use punctual_core::{Attempt, BootTime, Change, Event, Now, Outcome, PartitionId, QueueId, Target, Token};
use punctual_core::{TaskId, Wake};
use punctual_store::Store;
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::oneshot;

use super::Shell;
use crate::worker::Settled;

/// Names a reserve, or a batch of reports, until it is answered.
type No = u64;

/// A worker wants tasks.
pub struct Reserve {
    /// Of this queue.
    pub queue: QueueId,
    /// At most so many.
    pub max: usize,
    /// How long it waits for the first of them.
    pub wait: Duration,
    /// How long it may hold them, when not as they or their queue say.
    pub time_to_run: Option<Duration>,
    /// Where they go. Whoever has gone away before gets none.
    pub reply: oneshot::Sender<Vec<Attempt>>,
}

/// What workers want and hold.
#[derive(Default)]
pub(super) struct Workers {
    next: No,
    /// Reserves that have got nothing yet, in order, by queue.
    waiting: FxHashMap<QueueId, VecDeque<No>>,
    deadlines: BTreeSet<(BootTime, No)>,
    reserves: FxHashMap<No, Reserving>,
    /// Attempts that are about to start, and for which reserve.
    granted: FxHashMap<Token, No>,
    /// Attempts that workers hold.
    held: FxHashSet<Token>,
    /// Reports that are not on record yet.
    settling: FxHashMap<TaskId, (Token, No, usize)>,
    batches: FxHashMap<No, Batch>,
}

struct Reserving {
    reserve: Reserve,
    until: BootTime,
    /// When it was granted what it gets.
    granted: Option<BootTime>,
    /// How many more are about to start.
    expected: usize,
    attempts: Vec<Attempt>,
}

/// Reports that are answered together.
struct Batch {
    unsettled: usize,
    answers: Vec<Settled>,
    reply: oneshot::Sender<Vec<Settled>>,
}

impl Workers {
    /// When the next reserve has waited long enough.
    pub fn wake(&self) -> Wake {
        Wake { wall: None, boot: self.deadlines.first().map(|(at, _)| *at) }
    }

    /// Whether a worker has it, or is about to get it.
    pub fn have(&self, token: Token) -> bool {
        self.held.contains(&token) || self.granted.contains_key(&token)
    }

    fn number(&mut self) -> No {
        self.next += 1;
        self.next
    }

    /// The reserve waits no longer: for nothing, or for what it was granted.
    fn stop_waiting(&mut self, no: No) {
        let Some(reserving) = self.reserves.get(&no) else { return };
        self.deadlines.remove(&(reserving.until, no));
        if let Some(line) = self.waiting.get_mut(&reserving.reserve.queue) {
            line.retain(|other| *other != no);
            if line.is_empty() {
                self.waiting.remove(&reserving.reserve.queue);
            }
        }
    }

    /// One of the attempts that a reserve was granted has started, or never will. With the last one it is complete.
    fn arrived(&mut self, no: No, attempt: Option<Attempt>) -> Option<Reserving> {
        let reserving = self.reserves.get_mut(&no)?;
        reserving.expected -= 1;
        reserving.attempts.extend(attempt);
        if reserving.expected == 0 { self.reserves.remove(&no) } else { None }
    }

    fn settle(&mut self, id: TaskId, settled: Settled) {
        let Some((_, no, place)) = self.settling.remove(&id) else { return };
        let Some(batch) = self.batches.get_mut(&no) else { return };
        batch.answers[place] = settled;
        batch.unsettled -= 1;
        self.answer_when_settled(no);
    }

    fn answer_when_settled(&mut self, no: No) {
        if self.batches.get(&no).is_some_and(|batch| batch.unsettled == 0)
            && let Some(batch) = self.batches.remove(&no)
        {
            batch.reply.send(batch.answers).ok();
        }
    }
}

impl<S: Store> Shell<S> {
    pub(super) fn reserve(&mut self, now: Now, reserve: Reserve) {
        if self.stopping.is_some() {
            return;
        }
        let no = self.workers.number();
        let until = now.boot + reserve.wait;
        self.workers.waiting.entry(reserve.queue).or_default().push_back(no);
        self.workers.deadlines.insert((until, no));
        self.workers
            .reserves
            .insert(no, Reserving { reserve, until, granted: None, expected: 0, attempts: Vec::new() });
    }

    /// Gives those who wait what may start, in the order in which they came; and sends away, with nothing, those who
    /// have waited long enough.
    pub(super) fn serve_workers(&mut self, now: Now) {
        let mut queues: Vec<QueueId> = self.workers.waiting.keys().copied().collect();
        queues.sort_unstable();
        for queue in queues {
            while let Some(no) = self.workers.waiting.get(&queue).and_then(|line| line.front().copied()) {
                if !self.grant(now, no) {
                    break;
                }
            }
        }
        while let Some(&(_, no)) = self.workers.deadlines.first().filter(|(until, _)| *until <= now.boot) {
            self.workers.stop_waiting(no);
            if let Some(reserving) = self.workers.reserves.remove(&no) {
                reserving.reserve.reply.send(Vec::new()).ok();
            }
        }
    }

    /// Whether the next in line may be asked.
    fn grant(&mut self, now: Now, no: No) -> bool {
        let reserve = &self.workers.reserves[&no].reserve;
        let (wanted, time_to_run) = ((reserve.queue, reserve.max), reserve.time_to_run);
        let gone = reserve.reply.is_closed();
        let tokens =
            if gone { Vec::new() } else { self.node.reserve(now, wanted, time_to_run, &mut self.effects) };
        if tokens.is_empty() && !gone {
            return false;
        }
        self.workers.stop_waiting(no);
        match tokens.len() {
            0 => _ = self.workers.reserves.remove(&no),
            expected => {
                let reserving = self.workers.reserves.get_mut(&no).expect("it was just asked for");
                (reserving.expected, reserving.granted) = (expected, Some(now.boot));
            }
        }
        self.workers.granted.extend(tokens.into_iter().map(|token| (token, no)));
        true
    }

    /// An attempt starts: at a worker.
    pub(super) fn hand_out(&mut self, now: Now, attempt: Attempt) {
        let token = attempt.token;
        match self.workers.granted.remove(&token) {
            Some(no) => {
                self.workers.held.insert(token);
                let complete = self.workers.arrived(no, Some(attempt));
                self.deliver(now, complete);
            }
            None => self.reported(now, token, Outcome::Interrupted),
        }
    }

    fn deliver(&mut self, now: Now, complete: Option<Reserving>) {
        let Some(Reserving { reserve, granted, mut attempts, .. }) = complete else { return };
        // Some began long ago, if others had to be written down first: what may not begin any more is not given away, and
        // the time of the others counts from here.
        let node = &self.node;
        let kept = attempts.extract_if(.., |attempt| !node.may_begin(now, attempt.token)).collect();
        self.take_back(now, kept);
        if reserve.time_to_run.is_some() || granted.is_some_and(|granted| granted < now.boot) {
            attempts.iter().for_each(|attempt| self.prolong(now, attempt.token, attempt.timeout));
        }
        // Whoever asked has gone away: others can have them at once.
        if let Err(unwanted) = reserve.reply.send(attempts) {
            self.take_back(now, unwanted);
        }
    }

    fn take_back(&mut self, now: Now, attempts: Vec<Attempt>) {
        for attempt in attempts {
            self.workers.held.remove(&attempt.token);
            self.reported(now, attempt.token, Outcome::Interrupted);
        }
    }

    fn prolong(&mut self, now: Now, token: Token, more: Duration) {
        let partition = token.id.partition(self.meta.partitions);
        self.node.ask(now, partition, Event::LeaseTouched(token, more), &mut self.effects);
    }

    /// Workers say how attempts ended. They are answered when that is on record.
    pub(super) fn settle(
        &mut self,
        now: Now,
        reports: Vec<(Token, Outcome)>,
        reply: oneshot::Sender<Vec<Settled>>,
    ) {
        let no = self.workers.number();
        let mut batch = Batch { unsettled: 0, answers: vec![Settled::Late; reports.len()], reply };
        let mut live = Vec::with_capacity(reports.len());
        for (place, (token, outcome)) in reports.into_iter().enumerate() {
            let partition = token.id.partition(self.meta.partitions);
            if self.node.fence(partition).is_none() {
                batch.answers[place] = Settled::NotOwner;
            } else if self.node.running(token.id) == Some(token)
                && !self.workers.settling.contains_key(&token.id)
            {
                batch.unsettled += 1;
                self.workers.settling.insert(token.id, (token, no, place));
                live.push((token, super::attempt::fit(outcome, self.settings.limits.payload_max)));
            }
        }
        self.workers.batches.insert(no, batch);
        self.workers.answer_when_settled(no);
        for (token, outcome) in live {
            self.workers.held.remove(&token);
            self.reported(now, token, outcome);
        }
    }

    /// The ends of attempts are on record: their workers are told.
    pub(super) fn tell_workers(&mut self, changes: &[Change]) {
        if self.workers.settling.is_empty() {
            return;
        }
        for change in changes {
            match change {
                Change::Ended { task, end, .. } => self.workers.settle(task.id, Settled::Ended(end.state)),
                Change::Refiled { task, .. } => {
                    self.workers.settle(task.id, Settled::Waits(task.state, task.wake_at));
                }
                _ => {}
            }
        }
    }

    /// A worker's attempt is over without its report: its time is up, or it never began.
    pub(super) fn take_away(&mut self, now: Now, token: Token) -> bool {
        if let Some(no) = self.workers.granted.remove(&token) {
            let complete = self.workers.arrived(no, None);
            self.deliver(now, complete);
            return true;
        }
        self.workers.held.remove(&token)
    }

    /// A partition begins anew, or has gone: what was about to start of it never does.
    pub(super) fn leave_workers(&mut self, now: Now, partition: PartitionId, gone: bool) {
        let partitions = self.meta.partitions;
        let of_partition = |token: &Token| token.id.partition(partitions) == partition;
        if gone {
            let mut held: Vec<Token> = self.workers.held.extract_if(of_partition).collect();
            held.sort_unstable();
            held.into_iter().for_each(|token| self.node.let_go(now, token));
        }
        let mut unbegun: Vec<Token> = self.workers.granted.keys().copied().filter(of_partition).collect();
        unbegun.sort_unstable();
        for token in unbegun {
            self.take_away(now, token);
        }
        let live = if gone { Vec::new() } else { self.node.live_of(partition) };
        self.doubt_reports(partition, &live);
    }

    /// Nobody here will hear what became of these reports, but of those that are made again.
    pub(super) fn doubt_reports(&mut self, partition: PartitionId, made_again: &[Token]) {
        let partitions = self.meta.partitions;
        let settling = self.workers.settling.values().map(|(token, ..)| *token);
        let mut unheard: Vec<Token> = settling
            .filter(|token| token.id.partition(partitions) == partition && !made_again.contains(token))
            .collect();
        unheard.sort_unstable();
        unheard.into_iter().for_each(|token| self.workers.settle(token.id, Settled::Unknown));
    }

    /// Those who wait for tasks of a queue that is gone are told that there are none: when they ask again, they wait for
    /// the next queue of that name.
    pub(super) fn send_away(&mut self, queue: QueueId) {
        for no in self.workers.waiting.get(&queue).cloned().unwrap_or_default() {
            self.workers.stop_waiting(no);
            if let Some(reserving) = self.workers.reserves.remove(&no) {
                reserving.reserve.reply.send(Vec::new()).ok();
            }
        }
    }

    /// Nothing more is given to workers: those who wait are sent away.
    pub(super) fn dismiss_workers(&mut self) {
        let waiting: Vec<No> = self.workers.waiting.drain().flat_map(|(_, line)| line).collect();
        for no in waiting {
            self.workers.reserves.remove(&no);
        }
        self.workers.deadlines.clear();
    }
}

/// Whether a worker is to have it.
pub(super) fn is_for_worker(attempt: &Attempt) -> bool {
    attempt.spec.target == Target::Worker
}
