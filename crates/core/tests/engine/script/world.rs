//! The world of a script: a store, nodes, clocks, and everybody who waits for something.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use punctual_core::{AskNo, Effects, Node, Obstacle, Outcome, PartitionId, TaskId, Token};
use punctual_store::MemoryStore;

use super::promises::Promises;
use super::settings::Rules;
use super::shell::{InFlight, Kind};
use super::words::{Clock, Line, boot, matches, seconds};

/// Everything a script can touch.
pub struct World {
    pub rules: Rules,
    pub partitions: u16,
    pub store: MemoryStore,
    pub members: BTreeMap<String, Node>,
    pub begun: bool,
    pub clock: Clock,
    pub promises: Promises,

    /// What has been asked of the store and is not answered.
    pub in_flight: VecDeque<InFlight>,
    pub held: BTreeMap<Kind, Holding>,
    /// The next record is cut after so many rows, and nobody learns where.
    pub tear: Option<usize>,
    /// The store has no room for what is new.
    pub store_is_full: bool,

    pub asks: BTreeMap<AskNo, String>,
    pub ids: BTreeMap<String, TaskId>,
    pub labels: BTreeMap<TaskId, String>,
    pub obstacles: BTreeMap<Obstacle, String>,
    /// All attempts of each label, with the member that runs them.
    pub attempts: BTreeMap<String, Vec<(String, Token)>>,
    pub reports: BTreeMap<(i64, u64), (String, Token, Outcome)>,
    /// Reports for partitions that nobody owns.
    pub undelivered: Vec<(Token, Outcome)>,
    pub auto: Vec<Auto>,
    /// To whom a partition goes when it is released.
    pub heirs: BTreeMap<PartitionId, String>,

    pub shown: BTreeSet<String>,
    pub watched: Vec<String>,
    pub counts: BTreeMap<&'static str, i64>,
    /// How long the nodes may believe that they own what they own.
    pub trusted_until: String,
    /// After so many rounds at one instant the nodes are turning in circles.
    pub rounds_max: usize,
    /// The transcript repeats the script.
    pub echo: bool,
    lines: Vec<String>,
    next_number: u64,
}

/// How a kind of store operation is held back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    /// It is not even done.
    Deed,
    /// It is done, but its answer does not arrive.
    Answer,
}

/// Attempts that report by themselves.
pub struct Auto {
    pub pattern: String,
    pub outcome: Outcome,
    pub after: i64,
}

impl World {
    /// Runs a whole script.
    pub fn run(script: &str) -> World {
        let mut world = World::new();
        for text in script.lines() {
            world.line(text);
        }
        world
    }

    pub fn new() -> World {
        World {
            rules: Rules::new(),
            partitions: 1,
            store: MemoryStore::new(1),
            members: BTreeMap::new(),
            begun: false,
            clock: Clock::default(),
            promises: Promises::default(),
            in_flight: VecDeque::new(),
            held: BTreeMap::new(),
            tear: None,
            store_is_full: false,
            asks: BTreeMap::new(),
            ids: BTreeMap::new(),
            labels: BTreeMap::new(),
            obstacles: BTreeMap::new(),
            attempts: BTreeMap::new(),
            reports: BTreeMap::new(),
            undelivered: Vec::new(),
            auto: Vec::new(),
            heirs: BTreeMap::new(),
            shown: BTreeSet::new(),
            watched: Vec::new(),
            counts: BTreeMap::new(),
            trusted_until: "1000000000".to_owned(),
            rounds_max: 1_000_000,
            echo: false,
            lines: Vec::new(),
            next_number: 0,
        }
    }

    /// Runs one line: first everything up to its time, then what it says, then what follows from that.
    pub fn line(&mut self, text: &str) {
        self.lines.extend(self.echo.then(|| format!("> {text}")));
        let Some(line) = Line::parse(text) else { return };
        let at = line.at.unwrap_or(self.clock.micros);
        assert!(at >= self.clock.micros, "scripts go forward: {text}");
        self.run_until(at);
        self.obey(&line);
        self.settle();
    }

    pub fn transcript(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Writes a line about a task, unless the script watches others only.
    pub fn say(&mut self, label: &str, text: &str) {
        if self.watched.is_empty() || self.watched.iter().any(|pattern| matches(pattern, label)) {
            self.lines.push(format!("{} {text}", seconds(self.clock.micros)));
        }
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// The first member claims everything when the script first does something.
    pub fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            self.store = MemoryStore::new(self.partitions);
            for partition in 0..self.partitions {
                self.take_over("a", PartitionId(partition));
            }
            self.settle();
        }
    }

    pub fn new_node(&self) -> Node {
        let mut node = Node::new(self.partitions, Arc::new(self.rules.settings()));
        node.trust_until(self.clock.now(), boot(&self.trusted_until));
        node
    }

    /// Lets a member do something, and carries out what it wants.
    pub fn with<T>(&mut self, member: &str, act: impl FnOnce(&mut Node, &mut Effects) -> T) -> T {
        let mut effects = Effects::new();
        if !self.members.contains_key(member) {
            self.members.insert(member.to_owned(), self.new_node());
        }
        let node = self.members.get_mut(member).expect("it was just made");
        let result = act(node, &mut effects);
        self.carry_out(member, effects);
        result
    }

    /// Lets time pass, and wakes the nodes whenever they ask to be.
    pub fn run_until(&mut self, target: i64) {
        self.settle();
        let mut rounds = 0;
        while let Some(at) = self.wake_at().filter(|at| *at <= target) {
            rounds = if at <= self.clock.micros { rounds + 1 } else { 0 };
            assert!(rounds < 1_000, "the node wants to be woken at {} again and again", seconds(at));
            self.clock.micros = self.clock.micros.max(at);
            self.count("wakes");
            self.settle();
        }
        self.clock.micros = target;
        self.settle();
    }

    fn wake_at(&self) -> Option<i64> {
        let wakes = self.members.values().map(Node::wake_at);
        let walls = wakes.clone().filter_map(|wake| wake.wall).map(|at| self.clock.of_wall(at));
        let boots = wakes.filter_map(|wake| wake.boot).map(Clock::of_boot);
        let reports = self.reports.keys().map(|(at, _)| *at).take(1);
        walls.chain(boots).chain(reports).min()
    }

    /// Goes round the loop of every node until nothing happens any more.
    pub fn settle(&mut self) {
        if !self.begun {
            return;
        }
        let now = self.clock.now();
        for _ in 0..self.rounds_max {
            let mut busy = false;
            for member in self.members.keys().cloned().collect::<Vec<_>>() {
                self.with(&member, |node, out| node.advance(now, out));
                busy |= self.start_recording(&member);
            }
            busy |= self.answer_what_may_be_answered();
            busy |= self.report_what_is_due();
            if !busy {
                return;
            }
        }
        panic!("the nodes turn in circles");
    }

    fn report_what_is_due(&mut self) -> bool {
        let mut busy = false;
        while let Some(entry) = self.reports.first_entry().filter(|entry| entry.key().0 <= self.clock.micros)
        {
            let (member, token, outcome) = entry.remove();
            self.report(&member, token, outcome);
            busy = true;
        }
        busy
    }

    pub fn report(&mut self, member: &str, token: Token, outcome: Outcome) {
        let now = self.clock.now();
        self.promises.attempt_over(token);
        self.with(member, |node, out| node.report(now, token, outcome, out));
    }
}
