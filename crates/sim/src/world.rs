//! A small cluster with users, and everything that can go wrong with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use punctual::clock::{Clock, SimulatedClock};
use punctual::shell::{Command, Parts, Shell};
use punctual_core::{
    BootTime, Obstacle, Outcome, PartitionId, QueueId, QueueSettings, Queues, Settings, Timestamp, Token,
};
use punctual_store::faulty::{FaultRates, Faulty, SeededFaults};
use punctual_store::{Ownership, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::bugs::Bug;
use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::history::{Happening, History, Process};
use crate::machine::{Machine, SimStore};
use crate::process::{Remote, Signal};
use crate::settings::{keeps, limits, queues};
use crate::targets::{Targets, pass};
use crate::watch::Watched;
use crate::witness::Witness;

pub const PARTITIONS: u16 = 4;
/// How long a node may start attempts after it was last heard of.
pub const TRUST: Duration = Duration::from_secs(3);

type Sleep = fn(Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
type FaultyStore = Faulty<Watched, SeededFaults<Sleep>>;
/// The store as a node reaches it.
pub type NodeStore = Remote<FaultyStore>;

/// A cluster.
pub struct World {
    pub dice: Dice,
    pub clock: SimulatedClock,
    pub history: Arc<History>,
    pub coverage: Arc<Coverage>,
    pub store: SimStore,
    /// What the store runs on, if it is the embedded one.
    pub machine: Option<Machine>,
    pub faulty: FaultyStore,
    pub calm: Arc<AtomicBool>,
    pub late_handler: Arc<AtomicBool>,
    pub nodes: Vec<SimNode>,
    /// Who is to own each partition.
    pub owners: Vec<usize>,
    pub queues: Queues,
    pub bug: Option<Bug>,
    forwarded: mpsc::Receiver<(Token, Outcome)>,
    forward_to: mpsc::Sender<(Token, Outcome)>,
}

/// A node: a machine with a clock, and perhaps a process on it.
pub struct SimNode {
    pub clock: SimulatedClock,
    pub life: u32,
    pub process: Option<Running>,
    pub stopped: bool,
    /// It starts nothing after this.
    pub trusted_until: BootTime,
}

/// A process at work.
pub struct Running {
    pub commands: mpsc::Sender<Command>,
    pub signal: Signal,
    task: JoinHandle<()>,
}

impl World {
    pub fn new(seed: u64, bug: Option<Bug>) -> World {
        let mut dice = Dice::new(seed);
        let clock = SimulatedClock::new(begin_at(&mut dice));
        let history = Arc::<History>::default();
        let keeps = keeps(&mut dice);
        history.note(clock.true_now().wall, Happening::Keeps(keeps));
        let queues = queues(&mut dice, keeps);
        for queue in queues.numbers() {
            let settings = Box::new(queues.get(queue).clone());
            history.note(clock.true_now().wall, Happening::QueueSet { queue, settings });
        }
        let (store, machine) = Machine::new(seed);
        let watched = Watched { store: store.clone(), history: history.clone(), clock: clock.clone(), bug };
        let rates = fault_rates(&mut dice);
        let sleep: Sleep = |delay| Box::pin(pass(delay));
        let faulty = Faulty::new(watched, SeededFaults::new(dice.roll(), rates, sleep));
        let (forward_to, forwarded) = mpsc::channel(10_000);
        let count = 2 + dice.below(2) as usize;
        let nodes = (0..count).map(|_| SimNode::new(&clock)).collect();
        history.note(clock.true_now().wall, Happening::Nodes(count as u32));
        World {
            dice,
            clock,
            history,
            coverage: Arc::default(),
            store,
            machine,
            faulty,
            calm: Arc::default(),
            late_handler: Arc::default(),
            nodes,
            owners: (0..usize::from(PARTITIONS)).map(|partition| partition % count).collect(),
            queues,
            bug,
            forwarded,
            forward_to,
        }
    }

    /// Starts a process on a node, and gives it the partitions that are meant for it.
    pub async fn start(&mut self, node: usize) {
        let life = self.nodes[node].life + 1;
        let process = Process { node, life };
        let observer = Witness {
            process,
            history: self.history.clone(),
            clock: self.clock.clone(),
            coverage: self.coverage.clone(),
        };
        let misread_micros = match self.bug {
            Some(Bug::ClockRunsAhead) => 50_000,
            Some(Bug::ClockRunsBehind) => -50_000,
            _ => 0,
        };
        let clock = Clock::simulated(self.nodes[node].clock.off_by(misread_micros));
        // A machine may start with a date a day ahead; no run takes an hour.
        let hour = Duration::from_secs(3_600);
        let clock = clock.guard(Duration::from_secs(600), hour).guard_start(hour);
        let parts = Parts {
            store: Arc::new(Remote(self.faulty.clone())),
            executor: Arc::new(self.targets(node, process)),
            observer: Arc::new(observer),
            clock,
            settings: self.settings(),
            name: format!("node-{node}-{life}").into(),
            inline: true,
            forward_to: Some(self.forward_to.clone()),
        };
        // A process that cannot reach its store dies, and is started again later.
        let Ok((shell, commands)) = Shell::<NodeStore>::new(parts).await else { return };
        let signal = Signal::default();
        let task = tokio::spawn(signal.govern(shell.run()));
        self.nodes[node].life = life;
        self.nodes[node].stopped = false;
        self.nodes[node].process = Some(Running { commands, signal, task });
        self.tell(node, Command::ReceiversChanged);
        self.beat(node);
        self.claim_own(node).await;
    }

    /// Who owns what, as the store says. One whose machine is down is started first.
    async fn ownerships(&self) -> Vec<Ownership> {
        if let Ok(ownerships) = self.store.ownerships().await {
            return ownerships;
        }
        self.power_on();
        self.store.ownerships().await.expect("it has just started")
    }

    /// The store's machine may lose power in the middle of one of its next writes.
    pub fn power_may_go(&mut self) {
        if let Some(machine) = &self.machine
            && !machine.is_down()
            && self.dice.chance(8)
        {
            machine.cut_power_soon(&mut self.dice);
        }
    }

    /// And sooner or later it comes back.
    pub fn power_may_come(&mut self) {
        if self.machine.as_ref().is_some_and(Machine::is_down) && self.dice.chance(50) {
            self.power_on();
        }
    }

    /// A machine that is down starts again.
    pub fn power_on(&self) {
        if let Some(machine) = self.machine.as_ref().filter(|machine| machine.is_down()) {
            machine.start_again();
            self.coverage.power_cuts.count();
        }
    }

    /// Sets a node's wall clock forward or back.
    pub fn set_clock(&self, node: usize, micros: i64) {
        let clock = &self.nodes[node].clock;
        clock.step_wall(micros);
        let error_micros = clock.wall_error_micros();
        self.history.note(self.clock.true_now().wall, Happening::ClockSet { node, error_micros });
    }

    /// `kill -9`.
    pub fn kill(&mut self, node: usize) {
        if let Some(process) = self.nodes[node].process.take() {
            process.task.abort();
            self.silenced(node);
            self.coverage.kills.count();
        }
    }

    /// `SIGSTOP`, or a machine that does not get to run.
    pub fn freeze(&mut self, node: usize) {
        if let Some(process) = &self.nodes[node].process {
            process.signal.set_stopped(true);
            self.nodes[node].stopped = true;
            self.silenced(node);
            self.coverage.freezes.count();
        }
    }

    /// `SIGCONT`.
    pub fn thaw(&mut self, node: usize) {
        if let Some(process) = &self.nodes[node].process {
            process.signal.set_stopped(false);
            self.nodes[node].stopped = false;
        }
    }

    fn silenced(&self, node: usize) {
        let process = Process { node, life: self.nodes[node].life };
        self.history.note(self.clock.true_now().wall, Happening::Silenced(process));
    }

    /// Nodes that are heard of may go on for a while; the partitions of those that are not go to others, once
    /// they have certainly stopped starting things.
    pub async fn watch_over(&mut self) {
        let now = self.clock.true_now().boot;
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_heard() {
                self.beat(node);
            }
        }
        for partition in 0..usize::from(PARTITIONS) {
            let owner = &self.nodes[self.owners[partition]];
            if !owner.is_heard() && owner.trusted_until < now {
                self.reassign(partition).await;
            }
        }
        while let Ok((token, outcome)) = self.forwarded.try_recv() {
            let owner = self.owners[usize::from(token.id.partition(PARTITIONS).0)];
            self.tell(owner, Command::Report(token, outcome));
        }
    }

    fn beat(&mut self, node: usize) {
        let forever = BootTime::from_micros(u64::MAX);
        let until = self.clock.true_now().boot + TRUST;
        self.nodes[node].trusted_until = until;
        let told = if self.bug == Some(Bug::ZombieTrustsItself) { forever } else { until };
        self.tell(node, Command::TrustUntil(told));
    }

    async fn reassign(&mut self, partition: usize) {
        let heard: Vec<usize> = (0..self.nodes.len()).filter(|&node| self.nodes[node].is_heard()).collect();
        if !heard.is_empty() {
            let node = *self.dice.pick(&heard);
            self.owners[partition] = node;
            self.claim(node, &[partition]).await;
        }
    }

    /// Moves a partition to another node in good order.
    pub async fn hand_over(&mut self, partition: usize) {
        let (from, to) = (self.owners[partition], self.dice.below(self.nodes.len() as u64) as usize);
        if from == to || !self.nodes[from].is_heard() || !self.nodes[to].is_heard() {
            return;
        }
        let id = PartitionId(partition as u16);
        let ownerships = self.ownerships().await;
        if ownerships[partition].owner != Some(self.name(from)) {
            return;
        }
        self.tell(from, Command::HandOver(id));
        for _ in 0..50 {
            pass(Duration::from_millis(100)).await;
            self.watch_over().await;
            let ownerships = self.ownerships().await;
            if ownerships.iter().any(|ownership| ownership.partition == id && ownership.owner.is_none()) {
                self.coverage.hand_overs.count();
                self.owners[partition] = to;
                return self.claim(to, &[partition]).await;
            }
        }
        // It could not be released: whoever has it keeps it, and begins anew.
        self.claim(from, &[partition]).await;
    }

    /// Claims whatever a node should own and nobody does: an answer may have been lost.
    pub async fn repair_ownership(&mut self) {
        let ownerships = self.ownerships().await;
        for ownership in ownerships {
            let partition = usize::from(ownership.partition.0);
            let named =
                |node: &usize| ownership.owner == Some(self.name(*node)) && self.nodes[*node].is_heard();
            if let Some(owner) = (0..self.nodes.len()).find(named) {
                // Whoever has it and can be heard of keeps it, whatever was planned.
                self.owners[partition] = owner;
                continue;
            }
            let node = self.owners[partition];
            if self.nodes[node].is_heard() {
                self.tell(node, Command::Claim(vec![ownership.fence()]));
            }
        }
    }

    fn name(&self, node: usize) -> Box<str> {
        format!("node-{node}-{}", self.nodes[node].life).into()
    }

    async fn claim_own(&mut self, node: usize) {
        let own: Vec<usize> =
            (0..self.owners.len()).filter(|&partition| self.owners[partition] == node).collect();
        self.claim(node, &own).await;
    }

    /// Tells a node to take partitions over from whoever has them at this moment, and from nobody later.
    async fn claim(&mut self, node: usize, partitions: &[usize]) {
        let present = self.ownerships().await;
        let mut fences = Vec::new();
        for &partition in partitions {
            let owner = present[partition].owner.as_ref();
            let heard = (0..self.nodes.len()).filter(|&other| other != node && self.nodes[other].is_heard());
            match heard.into_iter().find(|&other| owner == Some(&self.name(other))) {
                // Whoever has it and can be heard of keeps it, whatever was planned.
                Some(other) => self.owners[partition] = other,
                None => fences.push(present[partition].fence()),
            }
        }
        self.tell(node, Command::Claim(fences));
    }

    /// Sends a command, if there is a process to get it.
    pub fn tell(&self, node: usize, command: Command) {
        if let Some(process) = &self.nodes[node].process {
            process.commands.try_send(command).ok();
        }
    }

    pub fn set_queue(&mut self, queue: QueueId, settings: QueueSettings) {
        self.queues.set(queue, settings.clone());
        let settings = Box::new(settings);
        let set = Happening::QueueSet { queue, settings: settings.clone() };
        self.history.note(self.clock.true_now().wall, set);
        for node in 0..self.nodes.len() {
            let mut told = settings.clone();
            self.bug.inspect(|bug| bug.bend_queue(&mut told));
            self.tell(node, Command::SetQueue(queue, 0, told));
        }
    }

    fn targets(&self, node: usize, process: Process) -> Targets {
        Targets {
            process,
            history: self.history.clone(),
            clock: self.nodes[node].clock.clone(),
            calm: self.calm.clone(),
            late_handler: self.late_handler.clone(),
            bug: self.bug,
        }
    }

    fn settings(&self) -> Settings {
        let late = self.late_handler.load(Ordering::Relaxed) || self.calm.load(Ordering::Relaxed);
        let names = ["work"].into_iter().chain(late.then_some("late"));
        let (mut limits, mut queues) = (limits(), self.queues.clone());
        if let Some(bug) = self.bug {
            bug.bend_limits(&mut limits);
            for queue in queues.numbers() {
                let mut settings = queues.get(queue).clone();
                bug.bend_queue(&mut settings);
                queues.set(queue, settings);
            }
        }
        let receivers = names.map(Obstacle::handler).collect();
        Settings { limits, queues, receivers, nodes: self.nodes.len() as u32 }
    }
}

impl SimNode {
    fn new(clock: &SimulatedClock) -> SimNode {
        SimNode {
            clock: clock.another(),
            life: 0,
            process: None,
            stopped: false,
            trusted_until: BootTime::default(),
        }
    }

    /// Whether it can say that it lives.
    pub fn is_heard(&self) -> bool {
        self.process.is_some() && !self.stopped
    }
}

/// Hours matter to history, so that most runs go from one hour into the next.
fn begin_at(dice: &mut Dice) -> Timestamp {
    let until_next_hour = *dice.pick(&[3_600, 90, 45, 20]);
    Timestamp::from_secs(1_800_000_000 + 3_600 - until_next_hour)
}

/// Some runs have a store that is merely slow, some one that is not atomic, some everything.
fn fault_rates(dice: &mut Dice) -> FaultRates {
    let mut rate = |max: u64| if dice.chance(60) { dice.below(max) as u32 } else { 0 };
    FaultRates {
        delay_per_mille: rate(200),
        delay_max: Duration::from_millis(1 + u64::from(rate(3_000))),
        request_lost_per_mille: rate(30),
        answer_lost_per_mille: rate(30),
        torn_per_mille: rate(40),
    }
}
