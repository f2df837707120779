//! The wheel against a list that is searched from end to end: whatever is done to both, they agree.

use proptest::prelude::*;
use punctual_core::Timestamp;
use punctual_core::wheel::{TimerKey, Wheel};

const TICK_MICROS: i64 = 256;
const SECOND: i64 = 1_000_000;
const YEAR: i64 = 365 * 24 * 3600 * SECOND;
/// The wheel's clock starts here, some day in 2026.
const START: i64 = 1_794_000_000 * SECOND + 123_457;

/// What can be done to a wheel. Times are relative to the wheel's own, in microseconds.
#[derive(Clone, Debug)]
enum Deed {
    Start { after: i64 },
    StopOne { which: usize },
    Advance { by: i64 },
    AdvanceToWake,
    StepBack { by: i64 },
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        8 => delay().prop_map(|after| Deed::Start { after }),
        2 => (-2 * SECOND..=0).prop_map(|after| Deed::Start { after }),
        1 => (-60 * YEAR..0).prop_map(|after| Deed::Start { after }),
        4 => any::<usize>().prop_map(|which| Deed::StopOne { which }),
        4 => delay().prop_map(|by| Deed::Advance { by }),
        4 => Just(Deed::AdvanceToWake),
        1 => delay().prop_map(|by| Deed::StepBack { by }),
    ];
    prop::collection::vec(deed, 1..200)
}

/// Each level of the wheel gets its share: from within a tick to past the year 9999.
fn delay() -> impl Strategy<Value = i64> {
    prop_oneof![
        0..TICK_MICROS,
        0..100 * TICK_MICROS,
        0..10 * SECOND,
        0..3600 * SECOND,
        0..3 * YEAR,
        0..9000 * YEAR,
        // Whole ticks and whole slots: off by one shows here.
        (0..8u32, 0..64i64, -1..=1i64).prop_map(|(level, slots, off)| {
            ((slots << (6 * level)) * TICK_MICROS + off).clamp(0, 9000 * YEAR)
        }),
    ]
}

/// A wheel and what it should be doing. Each timer carries its own number.
struct Pair {
    wheel: Wheel<u32>,
    waiting: Vec<(Timestamp, u32, TimerKey)>,
    started: u32,
}

impl Pair {
    fn new() -> Self {
        let now = Timestamp::from_micros(START);
        Pair { wheel: Wheel::new(now), waiting: Vec::new(), started: 0 }
    }

    fn apply(&mut self, deed: Deed) {
        match deed {
            Deed::Start { after } => self.start(self.after_now(after)),
            Deed::StopOne { which } => self.stop_one(which),
            Deed::Advance { by } => self.advance(self.after_now(by)),
            Deed::AdvanceToWake => {
                if let Some(at) = self.wheel.wake_at() {
                    self.advance(at);
                }
            }
            Deed::StepBack { by } => self.wheel.reset(self.after_now(-by)),
        }
        self.check();
    }

    fn after_now(&self, micros: i64) -> Timestamp {
        Timestamp::from_micros(self.wheel.now().as_micros() + micros).clamp(Timestamp::MIN, Timestamp::MAX)
    }

    fn start(&mut self, at: Timestamp) {
        let key = self.wheel.start(at, self.started);
        self.waiting.push((at, self.started, key));
        self.started += 1;
    }

    fn stop_one(&mut self, which: usize) {
        if self.waiting.is_empty() {
            return;
        }
        let (_, item, key) = self.waiting.swap_remove(which % self.waiting.len());
        assert_eq!(self.wheel.stop(key), item);
    }

    fn advance(&mut self, now: Timestamp) {
        let before = self.wheel.now();
        let mut due = Vec::new();
        self.wheel.advance(now, &mut due);
        assert_eq!(self.wheel.now(), now);
        let due: Vec<_> = due.into_iter().map(|item| self.remove(item)).collect();
        assert!(due.iter().all(|at| *at <= now), "fired early, at {now:?}: {due:?}");
        // What was overdue has no order; the rest comes tick by tick.
        let in_time = due.iter().filter(|at| **at > before);
        assert!(in_time.map(|at| tick_of(*at)).is_sorted(), "fired out of order: {due:?}");
        // Whatever was due when this tick began has fired; for what came due since, the next tick is soon enough.
        let tick_start = Timestamp::from_micros(now.as_micros() / TICK_MICROS * TICK_MICROS);
        let left = self.waiting.iter().find(|(at, ..)| *at <= tick_start);
        assert_eq!(left, None, "not fired by {now:?}");
    }

    fn remove(&mut self, item: u32) -> Timestamp {
        let index = self.waiting.iter().position(|waiting| waiting.1 == item);
        let index = index.unwrap_or_else(|| panic!("timer {item} fired twice, or after it was stopped"));
        self.waiting.swap_remove(index).0
    }

    fn check(&self) {
        assert_eq!(self.wheel.len(), self.waiting.len());
        assert_eq!(self.wheel.is_empty(), self.waiting.is_empty());
        let Some(first) = self.waiting.iter().map(|(at, ..)| *at).min() else {
            assert_eq!(self.wheel.wake_at(), None);
            return;
        };
        let wake_at = self.wheel.wake_at().expect("a timer is waiting");
        let latest = first.max(self.wheel.now()).as_micros() + TICK_MICROS;
        assert!(wake_at.as_micros() < latest, "wakes at {wake_at:?} for a timer at {first:?}");
        assert!(wake_at >= self.wheel.now());
    }
}

/// The tick in which a timer fires.
fn tick_of(at: Timestamp) -> i64 {
    (at.as_micros() + TICK_MICROS - 1) / TICK_MICROS
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_is_early_lost_doubled_or_fired_after_it_was_stopped(deeds in deeds()) {
        let mut pair = Pair::new();
        for deed in deeds {
            pair.apply(deed);
        }
        pair.advance(Timestamp::MAX);
        prop_assert!(pair.waiting.is_empty(), "never fired: {:?}", pair.waiting);
    }

    #[test]
    fn advancing_only_when_asked_fires_every_timer_within_a_tick(delays in prop::collection::vec(delay(), 1..100)) {
        let mut pair = Pair::new();
        for delay in delays {
            pair.start(pair.after_now(delay));
        }
        while let Some(at) = pair.wheel.wake_at() {
            pair.apply(Deed::AdvanceToWake);
            let late = pair.waiting.iter().find(|waiting| waiting.0.as_micros() + TICK_MICROS <= at.as_micros());
            prop_assert_eq!(late, None);
        }
    }

    #[test]
    fn a_timer_is_asked_for_at_most_once_per_level(delay in delay()) {
        let mut pair = Pair::new();
        pair.start(pair.after_now(delay));
        let mut wakes = 0;
        while !pair.wheel.is_empty() {
            pair.apply(Deed::AdvanceToWake);
            wakes += 1;
        }
        prop_assert!(wakes <= 9, "{} wakes", wakes);
    }
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn advanced(wheel: &mut Wheel<u32>, micros: i64) -> Vec<u32> {
    let mut due = Vec::new();
    wheel.advance(at(micros), &mut due);
    due
}

#[test]
fn a_timer_started_late_fires_at_once_even_if_the_clock_stands_still() {
    let mut wheel = Wheel::new(at(1_500));
    wheel.start(at(1_400), 1);
    wheel.start(at(0), 2);
    assert_eq!(wheel.wake_at(), Some(at(1_500)));
    assert_eq!(advanced(&mut wheel, 1_500), [2, 1]);
}

#[test]
fn a_timer_a_few_microseconds_ahead_waits_for_the_next_tick() {
    let mut wheel = Wheel::new(at(1_500));
    wheel.start(at(1_503), 1);
    assert_eq!(advanced(&mut wheel, 1_502), []);
    assert_eq!(wheel.wake_at(), Some(at(1_536)));
    assert_eq!(advanced(&mut wheel, 1_536), [1]);
}

#[test]
fn a_clock_that_stepped_back_fires_nothing_until_it_is_told() {
    let mut wheel = Wheel::new(at(5_000_000));
    wheel.start(at(3_000_000), 1);
    assert_eq!(advanced(&mut wheel, 2_000_000), []);
    wheel.reset(at(2_000_000));
    assert_eq!(advanced(&mut wheel, 2_999_999), []);
    assert_eq!(advanced(&mut wheel, 3_001_000), [1]);
}

#[test]
fn a_timer_at_the_end_of_the_calendar_can_be_started_and_stopped() {
    let mut wheel = Wheel::new(at(START));
    let key = wheel.start(at(i64::MAX), 1);
    assert!(wheel.wake_at() <= Some(Timestamp::MAX));
    assert_eq!(wheel.stop(key), 1);
    assert_eq!(wheel.wake_at(), None);
}

#[test]
#[should_panic(expected = "names no timer")]
fn stopping_a_timer_that_has_fired_is_a_bug() {
    let mut wheel = Wheel::new(at(0));
    let key = wheel.start(at(1), 1);
    assert_eq!(advanced(&mut wheel, 5_000), [1]);
    wheel.stop(key);
}
