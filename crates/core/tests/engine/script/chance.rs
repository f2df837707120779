//! Random scripts become real ones: names are chosen among what is there, and in the end there is calm.

use punctual_core::PartitionId;
use punctual_store::Store;

use super::shell::surely;
use super::words::{micros, seconds};
use super::world::World;

impl World {
    /// Fills in names and times; `None` when there is nothing to be named.
    pub fn make_concrete(&mut self, step: &str, number: usize, at: f64) -> Option<String> {
        self.begin();
        self.run_until(micros(&at.to_string()));
        let mut line = Vec::new();
        for word in step.split(' ') {
            let word = match (word.strip_prefix("RUNNING"), word.strip_prefix("KNOWN")) {
                (Some(index), _) => choose(self.running_labels(), index)?,
                (_, Some(index)) => choose(self.ids.keys().cloned().collect(), index)?,
                _ => self.with_times(word),
            };
            line.push(word.replace("NEW", &format!("n{number}-")));
        }
        if matches!(line[0].as_str(), "hand_over" | "reload") && self.owner_of(PartitionId(0)).is_none() {
            return None;
        }
        Some(line.join(" "))
    }

    fn with_times(&self, word: &str) -> String {
        match word.split_once("=+") {
            Some((name, after)) => {
                format!("{name}={}", seconds(self.clock.micros + self.clock.stepped + micros(after)))
            }
            None => word.to_owned(),
        }
    }

    fn running_labels(&self) -> Vec<String> {
        let runs = |attempts: &Vec<_>| !attempts.is_empty();
        self.attempts.iter().filter(|(_, attempts)| runs(attempts)).map(|(label, _)| label.clone()).collect()
    }

    /// Nothing fails any more: everything must end, and leave nothing behind.
    pub fn calm_down(&mut self, at: f64) {
        let at = micros(&at.to_string()) + micros("1");
        for line in ["let_store", "resume q", "resume p", "receivers h g", "auto succeed *"] {
            self.line(&format!("{} {line}", seconds(at)));
        }
        if self.owner_of(PartitionId(0)).is_none() {
            self.line("take_over by=a");
        }
        for label in self.running_labels() {
            for (member, token) in self.attempts[&label].clone() {
                self.report(&member, token, punctual_core::Outcome::Succeeded(bytes::Bytes::new()));
                self.settle();
            }
        }
        for round in 1..4 {
            self.run_until(at + round * micros("10000"));
            for label in self.promises.blocked(&self.labels) {
                self.line(&format!("retry {label}"));
            }
        }
        self.check_nothing_is_left();
    }

    fn check_nothing_is_left(&self) {
        self.promises.check_all_ended();
        let owner = self.owner_of(PartitionId(0)).expect("somebody owns it");
        let (loaded, running) = (self.members[&owner].loaded(), self.members[&owner].running_count());
        assert_eq!((loaded, running), (0, 0), "tasks in memory and attempts at the gate that are over");
        let held = surely(self.store.held(PartitionId(0), None, 10));
        assert!(held.is_empty(), "obstacles that nobody meets: {held:?}");
        assert!(self.asks.is_empty(), "never answered: {:?}", self.asks);
    }
}

fn choose(labels: Vec<String>, index: &str) -> Option<String> {
    let index: usize = index.parse().expect("an index follows the kind");
    (!labels.is_empty()).then(|| labels[index * labels.len() / (1 << 16)].clone())
}
