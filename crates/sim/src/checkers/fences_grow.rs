//! Each attempt of a task has a higher fence than the one before; each claim a higher epoch; and nothing is written
//! under an old one.

use std::collections::BTreeMap;

use punctual_core::{Epoch, PartitionId, TaskId};

use super::Log;
use crate::history::Happening;

pub fn check(log: &Log) -> Vec<String> {
    let mut found = Vec::new();
    let mut epochs: BTreeMap<PartitionId, Epoch> = BTreeMap::new();
    let mut fences: BTreeMap<TaskId, (Epoch, u32)> = BTreeMap::new();
    for (_, happening) in log {
        match happening {
            Happening::Claimed { partition, epoch }
                if epochs.insert(*partition, *epoch).is_some_and(|before| before >= *epoch) =>
            {
                found.push(format!("{partition:?} was claimed under {epoch:?} a second time"));
            }
            Happening::Written { fence, .. }
                if epochs.get(&fence.partition).is_some_and(|present| *present != fence.epoch) =>
            {
                found.push(format!("written under {fence:?}, which is over"));
            }
            Happening::Started { token, .. } => {
                let fence = (token.epoch, token.attempt);
                if fences.insert(token.id, fence).is_some_and(|before| before >= fence) {
                    found.push(format!("{token:?} does not have a higher fence than the attempt before"));
                }
            }
            _ => {}
        }
    }
    found
}
