//! Faults by chance, repeatable from a seed.

use std::future::Future;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::{Call, Fate, Faults, Verdict};
use crate::Tear;
use crate::dice::Dice;

/// How often each fault happens, in a thousand calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultRates {
    /// A request, and independently its answer, is late.
    pub delay_per_mille: u32,
    /// By how much at most.
    pub delay_max: Duration,
    /// A request is lost.
    pub request_lost_per_mille: u32,
    /// An answer is lost.
    pub answer_lost_per_mille: u32,
    /// A record is cut.
    pub torn_per_mille: u32,
}

impl Default for FaultRates {
    fn default() -> Self {
        FaultRates {
            delay_per_mille: 100,
            delay_max: Duration::from_secs(2),
            request_lost_per_mille: 10,
            answer_lost_per_mille: 10,
            torn_per_mille: 10,
        }
    }
}

/// Faults by chance. `sleep` is how the test's clock is waited for, say a paused tokio's `sleep`.
pub struct SeededFaults<W> {
    dice: Mutex<Dice>,
    rates: FaultRates,
    sleep: W,
}

impl<W> SeededFaults<W> {
    /// The same seed and the same calls make the same faults.
    pub fn new(seed: u64, rates: FaultRates, sleep: W) -> SeededFaults<W> {
        SeededFaults { dice: Mutex::new(Dice::new(seed)), rates, sleep }
    }

    fn dice(&self) -> MutexGuard<'_, Dice> {
        self.dice.lock().expect("nothing panics while it rolls the dice")
    }

    fn delay(&self, dice: &mut Dice) -> Duration {
        if !dice.chance(self.rates.delay_per_mille) {
            return Duration::ZERO;
        }
        let max_micros = u64::try_from(self.rates.delay_max.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(1 + dice.below(max_micros))
    }

    fn fate(&self, dice: &mut Dice, call: Call) -> Fate {
        if dice.chance(self.rates.request_lost_per_mille) {
            Fate::RequestLost
        } else if dice.chance(self.rates.answer_lost_per_mille) {
            Fate::AnswerLost
        } else if call == Call::Record && dice.chance(self.rates.torn_per_mille) {
            Fate::Torn
        } else {
            Fate::Fine
        }
    }
}

impl<W, F> Faults for SeededFaults<W>
where
    W: Fn(Duration) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send,
{
    fn before(&self, call: Call) -> Verdict {
        let dice = &mut *self.dice();
        Verdict {
            request_delay: self.delay(dice),
            fate: self.fate(dice, call),
            answer_delay: self.delay(dice),
        }
    }

    fn can_tear(&self) -> bool {
        self.rates.torn_per_mille > 0
    }

    /// A change writes four rows at most, most of them two.
    fn tear(&self, changes: usize) -> Tear {
        let dice = &mut *self.dice();
        if dice.chance(250) {
            return Tear::Whole;
        }
        let rows = dice.below(3 * changes as u64 + 1);
        Tear::After(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    fn sleep(&self, delay: Duration) -> impl Future<Output = ()> + Send {
        (self.sleep)(delay)
    }
}
