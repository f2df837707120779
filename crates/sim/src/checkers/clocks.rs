//! How wrong the nodes' clocks were: what a promise about wall time is worth in true time.

use punctual_core::Timestamp;

use super::Log;
use crate::history::Happening;

/// A clock that is further ahead is doubted, and nobody outside knows what is believed instead.
const DOUBTED_MICROS: i64 = 600_000_000;

/// Every setting of a clock, in order.
pub struct Clocks(Vec<(Timestamp, usize, i64)>);

/// The least and the greatest error of any node's clock over some time, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Errors {
    pub least: i64,
    pub greatest: i64,
}

impl Clocks {
    pub fn of(log: &Log) -> Clocks {
        let set = log.iter().filter_map(|(moment, happening)| match happening {
            Happening::ClockSet { node, error_micros } => Some((moment.at, *node, *error_micros)),
            _ => None,
        });
        Clocks(set.collect())
    }

    /// `None` when a clock was doubted in that time.
    pub fn errors(&self, from: Timestamp, until: Timestamp) -> Option<Errors> {
        let mut errors = Errors::default();
        for (place, (at, node, error)) in self.0.iter().enumerate().filter(|(_, (at, ..))| *at <= until) {
            let next = self.0[place + 1..].iter().find(|(_, other, _)| other == node);
            if *at < from && next.is_some_and(|(next, ..)| *next < from) {
                continue;
            }
            if *error >= DOUBTED_MICROS {
                return None;
            }
            errors.least = errors.least.min(*error);
            errors.greatest = errors.greatest.max(*error);
        }
        Some(errors)
    }
}

/// A time, put off by so many microseconds.
pub fn shifted(at: Timestamp, micros: i64) -> Timestamp {
    Timestamp::from_micros(at.as_micros() + micros)
}
