//! Once faults have stopped, the partitions of a process that dies are served again as soon as its trust has lapsed
//! and somebody has looked.

use std::collections::BTreeMap;
use std::time::Duration;

use punctual_core::{Epoch, Fence, PartitionId};

use super::Log;
use crate::history::{Happening, Moment, Process};
use crate::world::TRUST;

/// Whoever assigns partitions looks every second; the store answers at once when nothing fails.
const LOOKS_EVERY: Duration = Duration::from_secs(1);
const TAKEN_WITHIN: Duration = Duration::from_secs(1);

pub fn check(log: &Log) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_calm = false;
    let mut owners: BTreeMap<PartitionId, (Epoch, Process)> = BTreeMap::new();
    let mut orphans: BTreeMap<PartitionId, Moment> = BTreeMap::new();
    for (moment, happening) in log {
        match happening {
            Happening::Calm => is_calm = true,
            Happening::Silenced(process) if is_calm => {
                let orphaned = owners.iter().filter(|(_, (_, owner))| owner == process);
                orphans.extend(orphaned.map(|(partition, _)| (*partition, *moment)));
            }
            Happening::Taken { process, fence: Fence { partition, epoch } } => {
                // One that was paused meanwhile does not know yet that somebody was quicker.
                if owners.get(partition).is_some_and(|(later, _)| later > epoch) {
                    continue;
                }
                owners.insert(*partition, (*epoch, *process));
                let Some(since) = orphans.remove(partition) else { continue };
                let took = moment.at.since(since.at);
                if took > TRUST + LOOKS_EVERY + TAKEN_WITHIN {
                    found.push(format!("{partition:?} was without an owner for {took:?}"));
                }
            }
            _ => {}
        }
    }
    let never = orphans.keys().map(|partition| format!("{partition:?} was never served again"));
    found.extend(never);
    found
}
