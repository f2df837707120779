//! Once all is calm, a task that could start does so within three milliseconds, unless all slots of its node are taken:
//! no slot is free for longer than that while it waits. (Simulated timers round up to a millisecond, the store answers
//! at once, and at most three waits follow each other: for the time, for the record before a start, and for the slot.)
//! A worker needs no slot, and gets it as soon as it has asked.

use std::collections::BTreeMap;
use std::time::Duration;

use punctual_core::{Target, Timestamp, Token};

use super::Log;
use super::waiting::Waited;
use crate::coverage::Coverage;
use crate::history::{Happening, Process};
use crate::settings::limits;

pub const LATE_MAX: Duration = Duration::from_millis(3);

pub fn check(log: &Log, waited: &[Waited], coverage: &Coverage) -> Vec<String> {
    let crowds = crowds(log);
    let mut found = Vec::new();
    for Waited { token, process, is_worker, ready, started, .. } in waited {
        let Some(ready) = *ready else { continue };
        coverage.starts_on_time.count();
        coverage.reserves_on_time.add(u64::from(*is_worker));
        if *started <= ready + LATE_MAX {
            continue;
        }
        coverage.starts_kept_waiting.count();
        let crowd = crowds.get(process).map_or(&[][..], Vec::as_slice);
        let free = if *is_worker { started.since(ready) } else { longest_free(crowd, ready, *started) };
        if free > LATE_MAX {
            found.push(format!(
                "{token:?} was ready at {ready:?} and began at {started:?}; a slot was free for {free:?}"
            ));
        }
    }
    found
}

/// How many attempts each process ran, from when on.
fn crowds(log: &Log) -> BTreeMap<Process, Vec<(Timestamp, usize)>> {
    let mut crowds: BTreeMap<Process, Vec<(Timestamp, usize)>> = BTreeMap::new();
    let mut running: BTreeMap<Token, Process> = BTreeMap::new();
    for (moment, happening) in log {
        let (process, is_start) = match happening {
            // What workers hold takes no slot.
            Happening::Started { spec, .. } if spec.target == Target::Worker => continue,
            Happening::Started { token, process, .. } => {
                running.insert(*token, *process);
                (*process, true)
            }
            Happening::Stopped { token, .. } => match running.remove(token) {
                Some(process) => (process, false),
                None => continue,
            },
            _ => continue,
        };
        let crowd = crowds.entry(process).or_default();
        let before = crowd.last().map_or(0, |(_, count)| *count);
        crowd.push((moment.at, if is_start { before + 1 } else { before - 1 }));
    }
    crowds
}

/// The longest time in which a process had a free slot.
fn longest_free(crowd: &[(Timestamp, usize)], from: Timestamp, until: Timestamp) -> Duration {
    let slots = limits().running_max as usize;
    let first = crowd.partition_point(|(at, _)| *at <= from);
    let before = first.checked_sub(1).map_or(0, |place| crowd[place].1);
    let (mut free_since, mut longest) = ((before < slots).then_some(from), Duration::ZERO);
    for (at, count) in crowd[first..].iter().take_while(|(at, _)| *at < until) {
        match (free_since, *count < slots) {
            (Some(since), false) => {
                longest = longest.max(at.since(since));
                free_since = None;
            }
            (None, true) => free_since = Some(*at),
            _ => {}
        }
    }
    free_since.map_or(longest, |since| longest.max(until.since(since)))
}
