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
use punctual::clock::ClockStep;
use punctual::{EndState, Load, Outcome, PartitionId};
use punctual_core::Fence;
use punctual_store::embedded::Gauges;

use crate::counts::Totals;

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
    tasks: Family<TasksLabel, Gauge<i64, AtomicI64>>,
    running: Gauge<i64, AtomicI64>,
    in_memory: Gauge<i64, AtomicI64>,
    partitions: Gauge<i64, AtomicI64>,
    epochs: Family<PartitionLabel, Gauge<i64, AtomicI64>>,
    oldest_due_age: Gauge<f64, AtomicU64>,
    lanes_blocked: Gauge<i64, AtomicI64>,
    breakers_open: Gauge<i64, AtomicI64>,
    stored: StoreGauges,
    store_trouble: Counter<u64, AtomicU64>,
    clock_steps: Counter<u64, AtomicU64>,
    clock_step: Gauge<f64, AtomicU64>,
}

/// How full the store is.
#[derive(Default)]
struct StoreGauges {
    journal: Gauge<i64, AtomicI64>,
    reserve: Gauge<i64, AtomicI64>,
    reserve_wanted: Gauge<i64, AtomicI64>,
    memory: Gauge<i64, AtomicI64>,
    tables: Gauge<i64, AtomicI64>,
}

/// What is looked up when somebody asks.
pub struct Looked {
    /// How busy the scheduler is.
    pub load: Load,
    /// How long the task has been due that could start and has waited longest.
    pub oldest_due_age: Duration,
    /// Lanes that wait for a person.
    pub lanes_blocked: usize,
    /// How many tasks are in each state.
    pub tasks: Totals,
    /// How full the store is.
    pub store: Gauges,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct PartitionLabel {
    partition: u16,
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

/// Tasks that have not ended, by what they do.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct TasksLabel {
    state: &'static str,
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
            tasks: Family::default(),
            running: Gauge::default(),
            in_memory: Gauge::default(),
            partitions: Gauge::default(),
            epochs: Family::default(),
            oldest_due_age: Gauge::default(),
            lanes_blocked: Gauge::default(),
            breakers_open: Gauge::default(),
            stored: StoreGauges::default(),
            store_trouble: Counter::default(),
            clock_steps: Counter::default(),
            clock_step: Gauge::default(),
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
        registry.register("tasks", "Tasks that have not ended, by state", self.tasks.clone());
        registry.register("attempts_running", "Attempts that run", self.running.clone());
        registry.register("tasks_in_memory", "Tasks held in memory", self.in_memory.clone());
        registry.register("partitions_owned", "Partitions that this node owns", self.partitions.clone());
        registry.register(
            "store_troubles",
            "How often the store did not do as asked",
            self.store_trouble.clone(),
        );
        registry.register("clock_steps", "How often the wall clock was set", self.clock_steps.clone());
        registry.register_with_unit(
            "clock_step",
            "By how much the wall clock was last set",
            Unit::Seconds,
            self.clock_step.clone(),
        );
        self.register_gauges();
    }

    fn register_gauges(&mut self) {
        let (registry, stored) = (&mut self.registry, &self.stored);
        registry.register_with_unit(
            "oldest_due_age",
            "How long the task has been due that could start and has waited longest",
            Unit::Seconds,
            self.oldest_due_age.clone(),
        );
        registry.register("lanes_blocked", "Lanes whose head waits for a person", self.lanes_blocked.clone());
        registry.register(
            "breakers_open",
            "Hosts that are left alone for a while because calls to them failed",
            self.breakers_open.clone(),
        );
        registry.register(
            "partition_owner_epoch",
            "The epoch under which a partition is owned",
            self.epochs.clone(),
        );
        for (name, help, gauge) in [
            (
                "store_journal",
                "Journal that is not in the tables yet, and is read at a start",
                &stored.journal,
            ),
            ("store_reserve", "Kept back, so that ends can be recorded on a full disk", &stored.reserve),
            ("store_reserve_wanted", "What should be kept back", &stored.reserve_wanted),
            ("store_memory", "Rows in memory that are not in the tables yet", &stored.memory),
            ("store_tables", "Tables on the disk", &stored.tables),
        ] {
            registry.register_with_unit(name, help, Unit::Bytes, gauge.clone());
        }
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
            Outcome::Failed { .. } | Outcome::Refused { .. } => OutcomeKind::failed,
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

    /// A partition is ours.
    pub fn taken(&self, fence: Fence) {
        let label = PartitionLabel { partition: fence.partition.0 };
        self.epochs.get_or_create(&label).set(fence.epoch.0 as i64);
    }

    /// A partition is not ours, at the moment or for good.
    pub fn gone(&self, partition: PartitionId) {
        self.epochs.remove(&PartitionLabel { partition: partition.0 });
    }

    /// The store did not do as asked.
    pub fn store_trouble(&self) {
        self.store_trouble.inc();
    }

    /// The wall clock was set.
    pub fn clock_step(&self, step: ClockStep) {
        self.clock_steps.inc();
        self.clock_step.set(step.micros as f64 / 1e6);
    }

    /// What is not counted at the moment is left out: no number is better than a wrong one.
    fn set_tasks(&self, Totals { waiting, running, reserved }: Totals) {
        let states = [
            ("scheduled", waiting.map(|waiting| waiting.scheduled)),
            ("retrying", waiting.map(|waiting| waiting.retrying)),
            ("blocked", waiting.map(|waiting| waiting.blocked)),
            ("running", Some(running)),
            ("reserved", Some(reserved)),
        ];
        for (state, count) in states {
            match count {
                Some(count) => _ = self.tasks.get_or_create(&TasksLabel { state }).set(count as i64),
                None => _ = self.tasks.remove(&TasksLabel { state }),
            }
        }
    }

    /// All of it, as Prometheus reads it.
    pub fn text(&self, looked: &Looked) -> String {
        let Looked { load, store, .. } = looked;
        self.set_tasks(looked.tasks);
        self.running.set(load.running as i64);
        self.in_memory.set(load.in_memory as i64);
        self.partitions.set(load.partitions_owned as i64);
        self.breakers_open.set(load.breakers_open as i64);
        self.oldest_due_age.set(looked.oldest_due_age.as_secs_f64());
        self.lanes_blocked.set(looked.lanes_blocked as i64);
        self.stored.journal.set(store.journal_bytes as i64);
        self.stored.reserve.set(store.reserve_bytes as i64);
        self.stored.reserve_wanted.set(store.reserve_wanted_bytes as i64);
        self.stored.memory.set(store.memory_bytes as i64);
        self.stored.tables.set(store.tables_bytes as i64);
        let mut text = String::new();
        encode(&mut text, &self.registry).ok();
        text
    }
}
