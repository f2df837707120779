//! One destination: how many may run and wait there, and whether it is well.

use std::collections::VecDeque;
use std::time::Duration;

use super::Conduct;
use super::pace::Pace;
use super::waiting::Waiting;
use crate::id::{PartitionId, QueueId};
use crate::limits::Limits;
use crate::message::Offer;
use crate::time::{BootTime, Now};

/// What was under way at once and fails together is one sign of trouble, not many.
const CUT_PAUSE: Duration = Duration::from_secs(1);

/// How long those may have to wait here who come last. They wait in memory and take the room of their windows, so that
/// what lies behind them waits too; but sending them away and fetching them again costs more than they do.
const WAIT_MAX: Duration = Duration::from_secs(3);

#[derive(Default)]
pub struct Destination {
    pub running: u32,
    /// Somebody heard from it.
    pub has_answered: bool,
    /// Offers that wait here: a few, and more as long as it goes on quickly.
    pub waiting: Waiting,
    /// The queue whose task was let through last to see whether it is well.
    probed_by: Option<QueueId>,
    /// `None` until somebody has to wait.
    pub pace: Option<Pace>,
    /// Under what time it stands among the crowded.
    pub look_at: Option<BootTime>,
    /// Partitions whose tasks were sent away and lie in the store, in the order in which they may send some again.
    pub sent_away: VecDeque<PartitionId>,
    pub failures_in_a_row: u32,
    /// How many may run at once, if that is less than the limit.
    share: Option<Share>,
    /// An open breaker: nothing before this, and then one probe at a time.
    pub rests_until: Option<BootTime>,
    /// The partition that may send some again and has not yet, and when the next one may.
    pub asked: Option<(PartitionId, BootTime)>,
    /// Under what time it stands among those that failed.
    pub forget_at: Option<BootTime>,
}

/// What a destination that was in trouble is trusted with: half as much as before, and one more whenever as many
/// went well.
struct Share {
    running_max: u32,
    /// How many went well since it last changed.
    good: u32,
    cut_at: BootTime,
}

impl Destination {
    /// One that nobody goes to yet.
    pub fn new(has_answered: bool) -> Destination {
        Destination { has_answered, ..Destination::default() }
    }

    /// How many may wait here; `first_max` as long as it is new.
    pub fn waiting_max(&mut self, now: Now, limits: &Limits, first_max: usize) -> usize {
        let pace = self.pace.get_or_insert_with(|| Pace::begun(now));
        // It does not go on, and is known not to.
        if self.rests_until.is_some() {
            return limits.destination_waiting_max;
        }
        let first_max = if now.boot < pace.unknown_until { first_max } else { 0 };
        pace.takes_in(now, WAIT_MAX).max(limits.destination_waiting_max).max(first_max)
    }

    /// Somebody else's task may go well where those of other queues fail: as long as it rests, one of each queue waits
    /// here, so that each has its turn to be let through.
    pub fn lacks_one_of(&self, queue: QueueId, limits: &Limits) -> bool {
        self.rests_until.is_some()
            && !self.waiting.has_of(queue)
            && self.waiting.queues() < limits.destination_waiting_max
    }

    /// The next that goes there: the best, but if it is to see whether the destination is well, the best of another queue
    /// each time. The best of all may be the first of many that fail.
    pub fn pop_next(&mut self) -> Option<Offer> {
        if self.rests_until.is_none() {
            return self.waiting.pop_first();
        }
        let probe = self.waiting.pop_of_next_queue(self.probed_by)?;
        self.probed_by = Some(probe.queue);
        Some(probe)
    }

    /// One for which there is no room any more.
    pub fn pop_surplus(&mut self) -> Option<Offer> {
        match self.rests_until {
            None => self.waiting.pop_last(),
            Some(_) => self.waiting.pop_last_of_many(),
        }
    }

    pub fn stands_still(&mut self, now: Now) -> bool {
        self.pace.as_mut().is_none_or(|pace| pace.takes_in(now, WAIT_MAX) == 0)
    }

    /// Its tasks wait in the store, and are asked for again when there is room.
    pub fn send_away(&mut self, partition: PartitionId) {
        if !self.sent_away.contains(&partition) {
            self.sent_away.push_back(partition);
        }
    }

    fn running_max(&self, limits: &Limits) -> u32 {
        let first_max = if self.has_answered { u32::MAX } else { limits.unanswered_running_max };
        let max = limits.destination_running_max.min(first_max);
        self.share.as_ref().map_or(max, |share| share.running_max.min(max))
    }

    fn cut_share(&mut self, now: Now, limits: &Limits) {
        if self.share.as_ref().is_none_or(|share| share.cut_at + CUT_PAUSE <= now.boot) {
            let running_max = (self.running_max(limits) / 2).max(1);
            self.share = Some(Share { running_max, good: 0, cut_at: now.boot });
        }
    }

    fn earn_share(&mut self, limits: &Limits) {
        let Some(share) = &mut self.share else { return };
        share.good += 1;
        if share.good >= share.running_max {
            (share.running_max, share.good) = (share.running_max + 1, 0);
        }
        if share.running_max >= limits.destination_running_max {
            self.share = None;
        }
    }

    /// How many more may run, as far as it is about this one.
    pub fn room(&self, now: Now, limits: &Limits) -> u32 {
        match self.rests_until {
            Some(until) => u32::from(until <= now.boot && self.running == 0),
            None => self.running_max(limits).saturating_sub(self.running),
        }
    }

    /// Nobody knows whether it would answer.
    pub fn is_stranger(&self) -> bool {
        !self.has_answered || self.rests_until.is_some()
    }

    /// What runs here, if it is a stranger.
    pub fn strange_running(&self) -> u32 {
        if self.is_stranger() { self.running } else { 0 }
    }

    pub fn judge(&mut self, now: Now, limits: &Limits, conduct: Conduct) {
        match conduct {
            Conduct::Good | Conduct::Busy => {
                self.has_answered = true;
                self.failures_in_a_row = 0;
                self.rests_until = None;
            }
            Conduct::Bad => {
                self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
                if self.failures_in_a_row >= limits.breaker_failures {
                    self.rests_until = Some(now.boot + limits.breaker_rest);
                }
            }
            Conduct::Neither => {}
        }
        match conduct {
            Conduct::Good => {
                self.pace.iter_mut().for_each(|pace| pace.went_well(now));
                self.earn_share(limits);
            }
            Conduct::Busy | Conduct::Bad => self.cut_share(now, limits),
            Conduct::Neither => {}
        }
    }

    /// Nobody is there, on the way, or waiting to go.
    pub fn is_deserted(&self) -> bool {
        self.running == 0 && self.waiting.is_empty() && self.sent_away.is_empty()
    }

    /// How many partitions may send some again. One at a time: a page of each would be read for the few that there is
    /// room for. All of them when nothing runs, since then nobody's end asks the next.
    pub fn may_ask(&self, now: Now, limits: &Limits) -> usize {
        let waits = self.asked.is_some_and(|(_, until)| now.boot < until);
        match self.sent_away.len() {
            0 => 0,
            _ if self.waiting.len() > limits.destination_waiting_max / 2 => 0,
            all if self.running == 0 => all,
            _ if waits => 0,
            _ => 1,
        }
    }

    pub fn is_well(&self) -> bool {
        self.failures_in_a_row == 0 && self.rests_until.is_none() && self.share.is_none()
    }

    pub fn is_idle(&self) -> bool {
        self.is_deserted() && self.is_well()
    }
}
