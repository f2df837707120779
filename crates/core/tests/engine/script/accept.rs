//! `accept`: drafts as scripts write them.

use std::sync::Arc;

use bytes::Bytes;
use punctual_core::{Ask, Draft, Obstacle, OnConflict, PartitionId, RetryPolicy, Route, Spec, Target};

use super::settings::{priority, waits};
use super::words::{Line, duration, micros, number, wall_of};
use super::world::World;

/// Bulk accepts go in batches of this size.
const BATCH_MAX: usize = 500;

/// A task is called in transcripts what its payload says.
pub fn label(spec: &Spec) -> String {
    String::from_utf8_lossy(&spec.payload).into_owned()
}

impl World {
    /// Creates the tasks of one line: in one request when they are listed, in batches when they are counted.
    pub fn accept(&mut self, line: &Line) {
        let queue = line.get("queue").unwrap_or("q");
        if !self.rules.knows(queue) {
            self.change_settings(|world| {
                world.rules.queue(queue);
            });
        }
        let mut batches: Vec<Vec<Draft>> = vec![Vec::new()];
        for (index, (label, replacement)) in (0..).zip(labels(line)) {
            let draft = self.draft(line, &label, &replacement, index);
            batches.last_mut().expect("there is one").push(draft);
            if batches.last().is_some_and(|batch| batch.len() == BATCH_MAX) {
                batches.push(Vec::new());
            }
        }
        for drafts in batches.into_iter().filter(|batch| !batch.is_empty()) {
            let partition = drafts[0].route.partition(self.partitions);
            let names: Vec<String> = drafts.iter().map(|draft| label(&draft.spec)).collect();
            self.ask(line, partition, format!("accept {}", names.join(" ")), Ask::Create(drafts));
            if names.len() == BATCH_MAX {
                self.settle();
            }
        }
    }

    fn draft(&mut self, line: &Line, label: &str, replacement: &str, index: i64) -> Draft {
        let text = |name: &str| line.get(name).map(|value| value.replace('*', replacement));
        let queue = self.rules.queue(line.get("queue").unwrap_or("q"));
        let due = line.get("due").map_or(self.clock.micros + self.clock.stepped, micros);
        let mut spec = Spec::new(target(line), wall_of(due + index * line.get("step").map_or(0, micros)));
        spec.lane = text("lane").map(Into::into);
        spec.unique_key = text("key").map(Into::into);
        spec.name = text("name").map(Into::into);
        spec.payload = Bytes::from(label.to_owned());
        spec.start_by = line.get("start_by").map(super::words::wall);
        spec.expires_at = line.get("expires").map(super::words::wall);
        spec.timeout = line.get("timeout").map(duration);
        spec.retry = line.get("attempts").map(|attempts| RetryPolicy {
            waits: waits(line.get("retry").unwrap_or("10,20,40")),
            attempts_max: number(attempts) as u32,
            age_max: None,
        });
        self.name_obstacles(&spec, queue);
        let route = match line.number("partition") {
            Some(partition) => Route::anywhere(partition as u32),
            None => spec.routing_key().map_or(Route::anywhere(0), Route::of),
        };
        let queue_priority = self.rules.priority_of(queue);
        Draft {
            route,
            queue,
            priority: line.get("priority").map_or(queue_priority, priority),
            spec: Arc::new(spec),
            on_conflict: match line.get("conflict") {
                None | Some("replace") => OnConflict::Replace,
                Some("keep") => OnConflict::Keep,
                Some("error") => OnConflict::Error,
                Some(other) => panic!("no way to meet a conflict is called {other}"),
            },
        }
    }

    fn name_obstacles(&mut self, spec: &Spec, queue: punctual_core::QueueId) {
        if let (Some(id), Some(lane)) = (spec.lane_id(queue), &spec.lane) {
            self.obstacles.insert(Obstacle::Lane(id), format!("lane {lane}"));
        }
        match &spec.target {
            Target::Handler(name) => {
                self.obstacles.insert(Obstacle::handler(name), format!("handler {name}"));
            }
            Target::Destination(name) => {
                self.obstacles.insert(Obstacle::destination(name), format!("destination {name}"));
            }
            Target::Worker => {}
        }
    }

    pub fn partition_of(&self, line: &Line) -> PartitionId {
        PartitionId(line.number("partition").unwrap_or(0) as u16)
    }
}

fn target(line: &Line) -> Target {
    match (line.get("destination"), line.has("worker")) {
        (Some(host), _) => Target::Destination(host.into()),
        (None, true) => Target::Worker,
        (None, false) => Target::Handler(line.get("handler").unwrap_or("h").into()),
    }
}

/// `job*3` is `job1`, `job2` and `job3`; each comes with what `*` stands for in the other words.
fn labels(line: &Line) -> Vec<(String, String)> {
    let words = line.plain().iter().filter(|word| *word != "worker");
    words
        .flat_map(|word| match word.split_once('*') {
            Some((name, count)) => {
                (1..=number(count)).map(|n| (format!("{name}{n}"), n.to_string())).collect::<Vec<_>>()
            }
            None => vec![(word.clone(), word.clone())],
        })
        .collect()
}
