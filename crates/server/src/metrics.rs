//! What is counted for Prometheus. Everything is counted as it happens; nothing is looked through for it.

use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use punctual::{EndState, Outcome};

/// From a tenth of a millisecond, which is as good as on time, to a quarter of an hour.
const LATENESS_BUCKETS: [f64; 15] =
    [0.000_1, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0, 900.0];

/// What is counted.
pub struct Metrics {
    registry: Registry,
    lateness: Histogram,
    created: Counter<u64, AtomicU64>,
    started: Counter<u64, AtomicU64>,
    attempts: Family<OutcomeLabel, Counter>,
    ended: Family<StateLabel, Counter>,
    running: Gauge<i64, AtomicI64>,
    in_memory: Gauge<i64, AtomicI64>,
    partitions: Gauge<i64, AtomicI64>,
    store_trouble: Counter<u64, AtomicU64>,
    clock_steps: Counter<u64, AtomicU64>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: OutcomeKind,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelValue)]
enum OutcomeKind {
    #[expect(non_camel_case_types, reason = "it is written so")]
    succeeded,
    #[expect(non_camel_case_types, reason = "it is written so")]
    failed,
    #[expect(non_camel_case_types, reason = "it is written so")]
    gave_up,
    #[expect(non_camel_case_types, reason = "it is written so")]
    interrupted,
    #[expect(non_camel_case_types, reason = "it is written so")]
    no_receiver,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct StateLabel {
    state: EndKind,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelValue)]
enum EndKind {
    #[expect(non_camel_case_types, reason = "it is written so")]
    succeeded,
    #[expect(non_camel_case_types, reason = "it is written so")]
    dead,
    #[expect(non_camel_case_types, reason = "it is written so")]
    cancelled,
    #[expect(non_camel_case_types, reason = "it is written so")]
    expired,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("punctual"),
            lateness: Histogram::new(LATENESS_BUCKETS),
            created: Counter::default(),
            started: Counter::default(),
            attempts: Family::default(),
            ended: Family::default(),
            running: Gauge::default(),
            in_memory: Gauge::default(),
            partitions: Gauge::default(),
            store_trouble: Counter::default(),
            clock_steps: Counter::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register_with_unit(
            "task_lateness",
            "How long after its time the first attempt of a task began",
            Unit::Seconds,
            self.lateness.clone(),
        );
        registry.register("tasks_created", "Tasks that were accepted", self.created.clone());
        registry.register("attempts_started", "Attempts that began", self.started.clone());
        registry.register("attempts", "Attempts that ended, by how", self.attempts.clone());
        registry.register("tasks_ended", "Tasks that ended, by how", self.ended.clone());
        registry.register("attempts_running", "Attempts that run", self.running.clone());
        registry.register("tasks_in_memory", "Tasks held in memory", self.in_memory.clone());
        registry.register("partitions_owned", "Partitions that this node owns", self.partitions.clone());
        registry.register(
            "store_troubles",
            "How often the store did not do as asked",
            self.store_trouble.clone(),
        );
        registry.register("clock_steps", "How often the wall clock was set", self.clock_steps.clone());
    }

    /// An attempt began, so long after its task's time.
    pub fn started(&self, lateness: Option<Duration>) {
        self.started.inc();
        if let Some(lateness) = lateness {
            self.lateness.observe(lateness.as_secs_f64());
        }
    }

    /// How many attempts began.
    pub fn started_count(&self) -> u64 {
        self.started.get()
    }

    /// An attempt ended.
    pub fn reported(&self, outcome: &Outcome) {
        let outcome = match outcome {
            Outcome::Succeeded(_) => OutcomeKind::succeeded,
            Outcome::Failed { .. } => OutcomeKind::failed,
            Outcome::GaveUp(_) => OutcomeKind::gave_up,
            Outcome::Interrupted => OutcomeKind::interrupted,
            Outcome::NoReceiver => OutcomeKind::no_receiver,
        };
        self.attempts.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Tasks were accepted.
    pub fn created(&self) {
        self.created.inc();
    }

    /// A task ended.
    pub fn ended(&self, state: EndState) {
        let state = match state {
            EndState::Succeeded => EndKind::succeeded,
            EndState::Dead => EndKind::dead,
            EndState::Cancelled => EndKind::cancelled,
            EndState::Expired => EndKind::expired,
        };
        self.ended.get_or_create(&StateLabel { state }).inc();
    }

    /// A partition came (1) or went (-1).
    pub fn partitions(&self, change: i64) {
        self.partitions.inc_by(change);
    }

    /// The store did not do as asked.
    pub fn store_trouble(&self) {
        self.store_trouble.inc();
    }

    /// The wall clock was set.
    pub fn clock_step(&self) {
        self.clock_steps.inc();
    }

    /// All of it, as Prometheus reads it.
    pub fn text(&self, load: punctual::Load) -> String {
        self.running.set(load.running as i64);
        self.in_memory.set(load.in_memory as i64);
        let mut text = String::new();
        encode(&mut text, &self.registry).ok();
        text
    }
}
