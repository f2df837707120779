//! Watches a process from within, as metrics would.

use std::sync::Arc;

use punctual::clock::SimulatedClock;
use punctual::{Note, Observer};
use punctual_core::{Change, Obstacle, Outcome, PartitionId};

use crate::coverage::Coverage;
use crate::history::{Happening, History, Process};

/// Notes what a process serves, and counts what it does, so that no batch of seeds passes idly.
pub struct Witness {
    pub process: Process,
    pub history: Arc<History>,
    pub clock: SimulatedClock,
    pub coverage: Arc<Coverage>,
}

impl Observer for Witness {
    fn observe(&self, note: Note<'_>) {
        let coverage = &self.coverage;
        match note {
            Note::PartitionReloaded(partition) => {
                coverage.reloads.count();
                self.left(partition, true);
            }
            Note::PartitionTaken(fence) => {
                let taken = Happening::Taken { process: self.process, fence };
                self.history.note(self.clock.true_now().wall, taken);
            }
            Note::HistoryDropped(_, _, buckets) => coverage.buckets_dropped.add(buckets as u64),
            Note::PartitionLost(partition) => {
                coverage.losses.count();
                self.left(partition, false);
            }
            Note::PartitionReleased(partition) => self.left(partition, false),
            Note::ClockStepped(step) if step.micros < 0 => coverage.steps_back.count(),
            Note::ClockStepped(step) if !step.believed => coverage.jumps_doubted.count(),
            Note::ClockStepped(_) => coverage.steps_forward.count(),
            Note::OddStart(_) => coverage.odd_starts.count(),
            Note::Recorded(_, changes) => changes.iter().for_each(|change| self.recorded(change)),
            Note::Reported(token, outcome) => {
                let reported = Happening::Reported { process: self.process, token, outcome: outcome.clone() };
                self.history.note(self.clock.true_now().wall, reported);
                if matches!(outcome, Outcome::Failed { error, .. } if error.contains("panicked")) {
                    coverage.panics.count();
                }
            }
            _ => {}
        }
    }
}

impl Witness {
    fn left(&self, partition: PartitionId, anew: bool) {
        let left = Happening::Left { process: self.process, partition, anew };
        self.history.note(self.clock.true_now().wall, left);
    }

    fn recorded(&self, change: &Change) {
        let coverage = &self.coverage;
        match change {
            Change::Refiled { task, .. } => match task.parked {
                Some(Obstacle::Lane(_)) => coverage.parked_in_lane.count(),
                Some(Obstacle::Handler(_)) => coverage.parked_for_handler.count(),
                Some(Obstacle::Destination(_)) => coverage.parked_for_destination.count(),
                None => coverage.refiled.count(),
            },
            Change::Held { holder: Some(_), .. } => coverage.lanes_held.count(),
            Change::Cleared(_) => coverage.obstacles_cleared.count(),
            Change::LowWater(..) => coverage.low_water_marks.count(),
            Change::Began { begun, .. } if begun.lease.is_some() => coverage.leases_recorded.count(),
            Change::Revived(_) => coverage.revived.count(),
            _ => {}
        }
    }
}
