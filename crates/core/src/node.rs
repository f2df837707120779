//! All partitions of one node and their gate: routes events in, effects out, and keeps one bad partition from
//! harming its neighbours. Still pure: the shell around it waits, reads and writes.

mod batches;
mod engines;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::engine::{Engine, Settings};
use crate::facts::{Found, Held};
use crate::gate::{Conduct, Gate, Verdict};
use crate::id::{Fence, PartitionId, QueueId, Seq, TaskId};
use crate::message::{Answer, Effect, Event, Inheritance, Outcome, Token};
use crate::task::{Begun, Target, Task, WaitState};
use crate::time::{BootTime, Now, Timestamp, Wake};
use engines::Engines;

/// One Punctual process, without its hands.
pub struct Node {
    partition_count: u16,
    settings: Arc<Settings>,
    engines: Engines,
    gate: Gate,
    /// Attempts this node runs, until their end is on record: a partition that is taken over anew must
    /// neither start them again nor lose their reports.
    live: FxHashMap<(PartitionId, Seq), LiveAttempt>,
    /// Nothing starts after this, because somebody else may believe the partitions are free.
    trusted_until: BootTime,
    /// From one engine of a partition to the next: the tasks that were being handled when it failed, and how often.
    /// A failure leaves no trace in the store, so that only the node can tell the third from the first.
    suspects: FxHashMap<PartitionId, BTreeMap<Seq, u16>>,
    /// How many batches are being recorded: two at most, of different partitions.
    recording: usize,
    /// Which half of the partitions comes next, when there is much to record.
    half: u16,
    effects: Vec<Effect>,
}

struct LiveAttempt {
    token: Token,
    /// The report, as long as it is not on record.
    outcome: Option<Outcome>,
    /// How long it may take.
    timeout: Duration,
    /// Its time was up. Nobody reports on it any more.
    is_stopped: bool,
}

impl LiveAttempt {
    /// Whether it counts as long as it is not reported on, whoever owns its partition.
    fn runs(&self) -> bool {
        self.outcome.is_none() && !self.is_stopped
    }
}

/// Whether a node could be sure of its partitions all the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// It could.
    Unbroken,
    /// There was a time when others could have taken them.
    Lapsed,
}

/// What the shell is to do, under which fence.
pub type Effects = Vec<(Fence, Effect)>;

impl Node {
    /// A node that owns nothing yet.
    pub fn new(partition_count: u16, settings: Arc<Settings>) -> Node {
        Node {
            partition_count,
            gate: Gate::new(settings.clone()),
            settings,
            engines: Engines::new(partition_count),
            live: FxHashMap::default(),
            trusted_until: BootTime::default(),
            suspects: FxHashMap::default(),
            recording: 0,
            half: 0,
            effects: Vec::new(),
        }
    }

    /// Something happened to a partition. What is meant for an ownership that is over is dropped.
    pub fn handle(&mut self, now: Now, fence: Fence, event: Event, out: &mut Effects) {
        if self.engines.get(fence.partition).is_some_and(|engine| engine.fence() == fence) {
            self.drive(now, fence.partition, event, out);
        }
    }

    /// A user asks something of a partition.
    pub fn ask(&mut self, now: Now, partition: PartitionId, event: Event, out: &mut Effects) {
        match (self.engines.get(partition).is_some(), &event) {
            (true, _) => self.drive(now, partition, event, out),
            (false, Event::Asked(no, _)) => {
                let nobody = Fence { partition, ..Fence::default() };
                out.push((nobody, Effect::Answer(*no, Answer::NotOwner)));
            }
            (false, _) => {}
        }
    }

    /// An attempt was reported on, by whoever ran it.
    pub fn report(&mut self, now: Now, token: Token, outcome: Outcome, out: &mut Effects) {
        let partition = token.id.partition(self.partition_count);
        let key = (partition, token.id.seq);
        if let Some(live) = self.live.get_mut(&key).filter(|live| live.token == token) {
            live.outcome = Some(outcome.clone());
            self.gate.ended(now, partition, token.id.seq, conduct(&outcome));
        }
        match self.engines.get(partition).is_some() {
            true => self.drive(now, partition, Event::AttemptEnded(token, outcome), out),
            false => {
                // Its partition has gone elsewhere, and the report goes after it. A later attempt may still run here.
                self.forget_attempt(partition, token);
                out.push((Fence { partition, ..Fence::default() }, Effect::ForwardReport(token, outcome)));
            }
        }
    }

    /// A worker holds this attempt, and its partition has gone elsewhere: so does the report, and nothing of it counts
    /// here any more.
    pub fn let_go(&mut self, now: Now, token: Token) {
        let partition = token.id.partition(self.partition_count);
        if self.live.get(&(partition, token.id.seq)).is_some_and(|live| live.token == token) {
            self.gate.ended(now, partition, token.id.seq, Conduct::Neither);
            self.forget_attempt(partition, token);
        }
    }

    /// A partition is ours from now on.
    pub fn take_over(&mut self, now: Now, fence: Fence, inheritance: Inheritance, out: &mut Effects) {
        let partition = fence.partition;
        self.forget(now, partition);
        let mut inheritance = inheritance;
        inheritance.suspects = self.suspects.remove(&partition).unwrap_or_default();
        inheritance.live.retain(|(token, task)| !is_outdated(*token, task));
        for (token, task) in &mut inheritance.live {
            task.begun = self.begun_at_worker(*token, task).or(task.begun);
        }
        let lives: Vec<Token> = inheritance.live.iter().map(|(token, _)| *token).collect();
        self.drop_lives_except(now, fence, &lives, out);
        let mut effects = std::mem::take(&mut self.effects);
        let engine = Engine::take_over(now, fence, self.settings.clone(), inheritance, &mut effects);
        self.engines.insert(engine);
        self.sort_out(now, fence, &mut effects, out);
        self.effects = effects;
        self.repeat_reports(now, partition, out);
    }

    /// That a worker has it, and for how long, may not be on record.
    fn begun_at_worker(&self, token: Token, task: &Task) -> Option<Begun> {
        let live = self.live.get(&(token.id.partition(self.partition_count), token.id.seq))?;
        let is_at_worker = task.spec.target == Target::Worker && live.token == token;
        is_at_worker.then_some(Begun { epoch: token.epoch, lease: Some(live.timeout) })
    }

    /// The tokens of attempts that this node runs for a partition, or whose reports are not on record.
    pub fn live_of(&self, partition: PartitionId) -> Vec<Token> {
        let of_partition = self.live.iter().filter(|((of, _), _)| *of == partition);
        let mut tokens: Vec<Token> = of_partition.map(|(_, live)| live.token).collect();
        tokens.sort_unstable();
        tokens
    }

    /// Others own this partition now, or nobody knows what was recorded: what we thought of it counts no more.
    pub fn forget(&mut self, now: Now, partition: PartitionId) {
        if let Some(mut engine) = self.engines.remove(partition) {
            self.suspects.insert(partition, engine.take_suspects());
            let live = &self.live;
            let runs = |seq| live.get(&(partition, seq)).is_some_and(LiveAttempt::runs);
            self.gate.forget_partition(now, partition, runs);
        }
    }

    /// How long this node may start attempts without hearing that it still owns its partitions. After a lapse it
    /// starts nothing under its old fences: it must take its partitions over anew.
    pub fn trust_until(&mut self, now: Now, until: BootTime) -> Trust {
        let lapsed = self.trusted_until <= now.boot;
        self.trusted_until = self.trusted_until.max(until);
        if lapsed { Trust::Lapsed } else { Trust::Unbroken }
    }

    /// Queues, limits or receivers changed.
    pub fn set_settings(&mut self, now: Now, settings: Arc<Settings>, out: &mut Effects) {
        self.settings = settings.clone();
        self.gate.set_settings(now, settings.clone());
        let partitions: Vec<PartitionId> = self.fences().map(|fence| fence.partition).collect();
        for partition in partitions {
            if let Some(engine) = self.engines.get_mut(partition) {
                engine.set_settings(settings.clone());
            }
            self.drive(now, partition, Event::SettingsChanged, out);
        }
    }

    /// Starts nothing any more.
    pub fn close_gate(&mut self) {
        self.gate.close();
    }

    /// Lets time pass and starts what may start. Call it after a batch of events, and at [`Node::wake_at`].
    pub fn advance(&mut self, now: Now, out: &mut Effects) {
        for partition in self.engines.due(now) {
            self.drive(now, partition, Event::TimePassed, out);
        }
        self.gate.time_passed(now);
        self.start_what_may_start(now, out);
    }

    /// Reserves tasks of a queue for a worker, until they are enough or carry enough: each is granted like any other.
    /// Answers which attempts are to start; some do so only when that is on record.
    pub fn reserve(
        &mut self,
        now: Now,
        (queue, max): (QueueId, usize),
        time_to_run: Option<Duration>,
        out: &mut Effects,
    ) -> Vec<Token> {
        if now.boot >= self.trusted_until {
            return Vec::new();
        }
        let (mut tokens, mut bytes) = (Vec::new(), 0);
        for _ in 0..max {
            let Some(offer) = self.gate.reserve(now, queue) else { break };
            self.drive(now, offer.partition, Event::OfferGranted(offer, time_to_run), out);
            let Some(engine) = self.engines.get(offer.partition) else { continue };
            let Some(token) = engine.running(offer.key.seq) else { continue };
            tokens.push(token);
            bytes += engine.carried(offer.key.seq);
            if bytes >= self.settings.limits.reserved_bytes_max {
                break;
            }
        }
        tokens
    }

    /// When time next makes a difference to anything here.
    pub fn wake_at(&self) -> Wake {
        self.engines.wake_at().or(self.gate.wake_at())
    }

    /// The partitions this node owns.
    pub fn fences(&self) -> impl Iterator<Item = Fence> {
        self.engines.iter().map(Engine::fence)
    }

    /// The fence under which a partition is owned.
    pub fn fence(&self, partition: PartitionId) -> Option<Fence> {
        self.engines.get(partition).map(Engine::fence)
    }

    /// The attempt that runs for a task, as its owner knows.
    pub fn running(&self, id: TaskId) -> Option<Token> {
        let token = self.engines.get(id.partition(self.partition_count))?.running(id.seq)?;
        Some(token).filter(|token| token.id == id)
    }

    /// Whether an attempt that began here and was kept back may still be given to a worker.
    pub fn may_begin(&self, now: Now, token: Token) -> bool {
        let partition = token.id.partition(self.partition_count);
        let engine = self.engines.get(partition).filter(|_| now.boot < self.trusted_until);
        engine.is_some_and(|engine| engine.may_begin(now, token))
    }

    /// What has begun is put on record with the next batch, also what began just now.
    pub fn note_all_begun(&mut self) {
        let partitions: Vec<PartitionId> = self.fences().map(|fence| fence.partition).collect();
        for partition in partitions {
            if let Some(engine) = self.engines.get_mut(partition) {
                engine.note_all_begun();
                self.engines.has_handled(partition);
            }
        }
    }

    /// How many tasks are held in memory.
    pub fn loaded(&self) -> usize {
        self.engines.iter().map(Engine::loaded).sum()
    }

    /// How often requests had to wait for others about the same task.
    pub fn deferrals(&self) -> u64 {
        self.engines.iter().map(Engine::deferrals).sum()
    }

    /// How many attempts run.
    pub fn running_count(&self) -> usize {
        self.gate.running()
    }

    /// Since when the next tasks of each queue have been due that could start, and wait for their turn.
    pub fn waiting(&self) -> Vec<(QueueId, Timestamp)> {
        self.gate.waiting()
    }

    /// How many breakers are open.
    pub fn breakers_open(&self) -> usize {
        self.gate.breakers_open()
    }

    /// Attempts that run, or whose end is not on record.
    pub fn live_tokens(&self) -> Vec<Token> {
        let mut tokens: Vec<Token> =
            self.live.values().filter(|live| live.outcome.is_none()).map(|live| live.token).collect();
        tokens.sort_unstable();
        tokens
    }

    fn start_what_may_start(&mut self, now: Now, out: &mut Effects) {
        while now.boot < self.trusted_until {
            match self.gate.next(now) {
                Some(Verdict::Grant(offer)) => {
                    self.drive(now, offer.partition, Event::OfferGranted(offer, None), out)
                }
                Some(Verdict::Refuse(offer, obstacle)) => {
                    self.drive(now, offer.partition, Event::OfferRefused(offer, obstacle), out);
                }
                Some(Verdict::Wait) => {}
                None => break,
            }
        }
        for (partition, obstacle) in self.gate.take_eased(now) {
            self.drive(now, partition, Event::ObstacleEased(obstacle), out);
        }
    }

    /// Hands an event to an engine. A panic in it is that partition's trouble alone: it is taken over anew,
    /// and the task that was being handled is remembered as a suspect.
    fn drive(&mut self, now: Now, partition: PartitionId, event: Event, out: &mut Effects) {
        let Some(engine) = self.engines.get_mut(partition) else { return };
        let fence = engine.fence();
        let mut effects = std::mem::take(&mut self.effects);
        let handled = catch_unwind(AssertUnwindSafe(|| engine.handle(now, event, &mut effects)));
        if handled.is_err() {
            effects.clear();
            self.forget(now, partition);
            out.push((fence, Effect::ReloadPartition));
        } else {
            self.engines.has_handled(partition);
            self.sort_out(now, fence, &mut effects, out);
        }
        self.effects = effects;
    }

    /// Keeps what concerns the gate, and passes the rest on.
    fn sort_out(&mut self, now: Now, fence: Fence, effects: &mut Vec<Effect>, out: &mut Effects) {
        let (mut refused, mut untrusted) = (Vec::new(), Vec::new());
        for effect in effects.drain(..) {
            match effect {
                Effect::OfferTask(offer) => {
                    refused.extend(self.gate.offer(now, offer).map(|obstacle| (offer, obstacle)));
                }
                Effect::WithdrawOffer(offer) => {
                    match refused.iter().position(|(refused, _)| *refused == offer) {
                        Some(place) => _ = refused.remove(place),
                        None => self.gate.withdraw(now, offer),
                    }
                }
                Effect::DeclineOffer(offer) => self.gate.undo(now, offer),
                Effect::AdoptAttempt(token) => self.gate.adopted(now, fence.partition, token.id),
                Effect::ForgetAttempt(token) => {
                    self.gate.adopted_ended(now, fence.partition, token.id.seq);
                    self.forget_attempt(fence.partition, token);
                }
                // Its start took so long to record that others may have the partition by now.
                Effect::StartAttempt(attempt) if now.boot >= self.trusted_until => {
                    self.gate.ended(now, fence.partition, attempt.token.id.seq, Conduct::Neither);
                    untrusted.push(attempt.token);
                }
                Effect::StartAttempt(attempt) => {
                    let (token, timeout) = (attempt.token, attempt.timeout);
                    self.live.insert(
                        (fence.partition, token.id.seq),
                        LiveAttempt { token, outcome: None, timeout, is_stopped: false },
                    );
                    out.push((fence, Effect::StartAttempt(attempt)));
                }
                Effect::StopAttempt(token) => {
                    // One that was called off before it began says nothing about its destination.
                    let live = self.live.get_mut(&(fence.partition, token.id.seq));
                    let began = live.filter(|live| live.token == token).map(|live| live.is_stopped = true);
                    let conduct = began.map_or(Conduct::Neither, |()| Conduct::Bad);
                    self.gate.ended(now, fence.partition, token.id.seq, conduct);
                    out.push((fence, Effect::StopAttempt(token)));
                }
                other => out.push((fence, other)),
            }
        }
        for (offer, obstacle) in refused {
            self.drive(now, offer.partition, Event::OfferRefused(offer, obstacle), out);
        }
        for token in untrusted {
            self.drive(now, fence.partition, Event::AttemptEnded(token, Outcome::Interrupted), out);
        }
    }

    fn forget_attempt(&mut self, partition: PartitionId, token: Token) {
        let key = (partition, token.id.seq);
        if self.live.get(&key).is_some_and(|live| live.token == token) {
            self.live.remove(&key);
        }
    }

    /// After a take-over, attempts whose task has ended or was started elsewhere are nobody's concern: what still runs
    /// of them is stopped, because it would run beside what its slot is given to.
    fn drop_lives_except(&mut self, now: Now, fence: Fence, keep: &[Token], out: &mut Effects) {
        let partition = fence.partition;
        for token in self.live_of(partition).into_iter().filter(|token| !keep.contains(token)) {
            self.live.remove(&(partition, token.id.seq));
            if self.gate.ended(now, partition, token.id.seq, Conduct::Neither) {
                out.push((fence, Effect::StopAttempt(token)));
            }
        }
    }

    /// Reports that were not on record when the partition was taken over anew are made again.
    fn repeat_reports(&mut self, now: Now, partition: PartitionId, out: &mut Effects) {
        for token in self.live_of(partition) {
            let live = &self.live[&(partition, token.id.seq)];
            if let Some(outcome) = live.outcome.clone() {
                self.drive(now, partition, Event::AttemptEnded(token, outcome), out);
            }
        }
    }
}

/// Who holds a lane, given what the store says of the task that its row names. A write that was cut can leave a
/// holder that has ended, or one that still lies in the lane's own order: neither holds anything.
pub fn true_holder(held: Held, found: Option<&Found>) -> Option<TaskId> {
    match found {
        Some(Found::Live(task)) if task.state == WaitState::Blocked => held.holder,
        Some(Found::Live(task)) => held.holder.filter(|_| task.parked != Some(held.obstacle)),
        _ => None,
    }
}

/// Whether the row tells of this attempt's end, or of a later attempt that somebody else has started meanwhile.
fn is_outdated(token: Token, task: &Task) -> bool {
    match task.begun {
        None => task.attempts >= token.attempt,
        Some(begun) => task.attempts > token.attempt || begun.epoch > token.epoch,
    }
}

fn conduct(outcome: &Outcome) -> Conduct {
    match outcome {
        Outcome::Succeeded(_) | Outcome::Refused { is_busy: false, .. } => Conduct::Good,
        Outcome::Refused { is_busy: true, .. } => Conduct::Busy,
        Outcome::Failed { .. } => Conduct::Bad,
        Outcome::GaveUp(_) | Outcome::Interrupted | Outcome::NoReceiver => Conduct::Neither,
    }
}
