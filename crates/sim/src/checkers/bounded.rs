//! What a process holds in memory is bounded by its limits, not by what is pending. What has run is held until that is
//! on record, so a slow store adds what ran meanwhile. What workers hold is held in memory too.

use std::collections::BTreeMap;
use std::time::Duration;

use punctual_core::{Target, Timestamp, Token};

use super::Log;
use crate::history::{Happening, Moment, Process};
use crate::settings::limits;

/// One record may be under way when an attempt ends, and the next one tells of it: each takes up to six seconds.
const RECORDED_WITHIN: Duration = Duration::from_secs(15);

pub fn check(log: &Log) -> Vec<String> {
    let limits = limits();
    // Twice what a partition may load, and what each of its few busy windows may read on top.
    let per_partition = 2 * limits.loaded_max + 4 * limits.window_max;
    let mut ends = Ends::default();
    let mut found = Vec::new();
    for (moment, happening) in log {
        ends.note(*moment, happening);
        if let Happening::Measured { process, loaded, owned } = happening {
            let unrecorded = ends.lately(*moment, *process) + ends.at_workers(*moment);
            let most = owned * per_partition + limits.running_max as usize + unrecorded;
            if *loaded > most {
                found.push(format!(
                    "{process:?} held {loaded} tasks of {owned} partitions, not {most} at most"
                ));
            }
        }
    }
    found
}

/// When attempts ended, by process.
#[derive(Default)]
struct Ends {
    running: BTreeMap<Token, Process>,
    /// Until when workers hold what they were given, whoever owns it.
    at_workers: BTreeMap<Token, Timestamp>,
    ended: BTreeMap<Process, Vec<Moment>>,
}

impl Ends {
    fn note(&mut self, moment: Moment, happening: &Happening) {
        match happening {
            Happening::Started { token, spec, timeout, .. } if spec.target == Target::Worker => {
                self.at_workers.insert(*token, moment.at + *timeout);
            }
            Happening::Prolonged { token, until } => _ = self.at_workers.insert(*token, *until),
            Happening::Started { process, token, .. } => _ = self.running.insert(*token, *process),
            Happening::Stopped { token, .. } => {
                if let Some(process) = self.running.remove(token) {
                    self.ended.entry(process).or_default().push(moment);
                }
            }
            _ => {}
        }
    }

    fn at_workers(&self, now: Moment) -> usize {
        self.at_workers.values().filter(|until| now.at <= **until + RECORDED_WITHIN).count()
    }

    fn lately(&self, now: Moment, process: Process) -> usize {
        let ended = self.ended.get(&process).map_or(&[][..], |ended| ended);
        ended.iter().rev().take_while(|ended| now.at.since(ended.at) <= RECORDED_WITHIN).count()
    }
}
