//! The only file that asks what time it is.
//!
//! Two clocks are read together: wall time, which people mean when they say "at nine", and the boot-time clock, which
//! never steps and goes on while the machine sleeps. Comparing them shows when the wall clock was set. A step back
//! only means waiting again; a large jump forward could fire next year's tasks today, so it is held back until the new
//! time has stayed for a while. A process that starts has seen no step; it compares its clock with the time that was
//! last trusted on its store. Decision record: `docs/decisions/0005-clocks.md`.

mod virtual_clock;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual_core::{BootTime, Now, Timestamp};

pub use virtual_clock::VirtualClock;

/// Where the time comes from. Clones share what was seen, so that all of a scheduler believes the same time.
#[derive(Clone)]
pub struct Clock {
    source: Source,
    /// A jump forward by more than this is not believed at once.
    jump_max: Duration,
    /// It is believed when it has stayed for so long.
    believe_after: Duration,
    /// At the start, a clock that is further ahead of the time last trusted is not believed at once.
    away_max: Duration,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Clone)]
enum Source {
    System,
    Simulated(SimulatedClock),
    Virtual(VirtualClock),
}

/// What the last readings showed.
#[derive(Default)]
struct Seen {
    last: Option<Now>,
    doubt: Option<Doubt>,
    /// The time last trusted before this process began, if its clock did not go with that.
    trusted_before: Option<Timestamp>,
    /// A step that nobody was told of yet.
    untold: Option<ClockStep>,
}

/// A jump that is not believed yet.
#[derive(Clone, Copy)]
struct Doubt {
    /// The last time that was believed.
    believed: Now,
    since: BootTime,
    /// How far the wall clock is ahead of what was believed.
    ahead: Duration,
}

/// A wall clock that was set while nobody looked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockStep {
    /// By how many microseconds; negative when it was set back.
    pub micros: i64,
    /// Whether the new time is believed. If not, time goes on as before until it is.
    pub believed: bool,
}

/// A wall clock that does not go with the time that was last trusted on the store. Its text says what to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OddStart {
    /// It is far ahead. Time goes on from where it was until the clock has stayed so for a while.
    Ahead {
        /// How far.
        by: Duration,
        /// How long it must stay to be believed.
        believed_after: Duration,
    },
    /// It is behind. It is believed: nothing starts before its time, and nothing that has ended starts again.
    Behind {
        /// How far.
        by: Duration,
    },
}

impl fmt::Display for OddStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = |by: &Duration| by.as_secs_f64() / 86_400.0;
        match self {
            OddStart::Ahead { by, believed_after } => write!(
                f,
                "the wall clock is {:.1} days ahead of when this store was last in use: if it is wrong, set it right \
                 within {} s, or all that is due until then starts; if it is right, there is nothing to do",
                days(by),
                believed_after.as_secs(),
            ),
            OddStart::Behind { by } => write!(
                f,
                "the wall clock is {:.1} days behind when this store was last in use: set it right; until then tasks \
                 wait for their time on this clock, and what has ended does not run again",
                days(by),
            ),
        }
    }
}

/// Differences between the clocks below this are no step …
const STEP_MIN_MICROS: i64 = 200_000;
/// … nor is one that is less than this share of what passed: a wall clock may be slowed down or sped up to be
/// corrected, by half of this at most on common systems.
const DRIFT_SHARE: i64 = 1_000;

impl Clock {
    /// The machine's own clocks.
    pub fn system() -> Clock {
        Clock::from(Source::System)
    }

    /// A clock that runs on tokio's, which tests pause, and whose wall time can be set.
    pub fn simulated(clock: SimulatedClock) -> Clock {
        Clock::from(Source::Simulated(clock))
    }

    /// A clock that stands still until it is set forward. Whatever it shows is believed.
    pub fn of_tests(clock: VirtualClock) -> Clock {
        Clock::from(Source::Virtual(clock))
    }

    /// The clock that this one shows, if it stands still until it is set forward.
    pub fn as_virtual(&self) -> Option<&VirtualClock> {
        match &self.source {
            Source::Virtual(clock) => Some(clock),
            _ => None,
        }
    }

    /// Changes how jumps forward are guarded: one by more than `jump_max` is believed only when it has stayed
    /// for `believe_after`.
    pub fn guard(mut self, jump_max: Duration, believe_after: Duration) -> Clock {
        self.jump_max = jump_max;
        self.believe_after = believe_after;
        self
    }

    /// Changes how far ahead of the time last trusted the clock of a starting process may be: time that the machine
    /// was off. Further ahead, it is believed only when it has stayed, as after a jump. `Duration::MAX` trusts any.
    pub fn guard_start(mut self, away_max: Duration) -> Clock {
        self.away_max = away_max;
        self
    }

    /// Whether it is the machine's own: time passes by itself.
    pub(crate) fn is_system(&self) -> bool {
        matches!(self.source, Source::System)
    }

    fn from(source: Source) -> Clock {
        Clock {
            source,
            jump_max: Duration::from_secs(600),
            believe_after: Duration::from_secs(60),
            away_max: Duration::from_secs(365 * 86_400),
            seen: Arc::default(),
        }
    }

    /// The time to decide by, and whether the wall clock was set since the last call of this.
    pub fn read(&self) -> (Now, Option<ClockStep>) {
        let mut seen = self.seen.lock().expect("nothing panics while it is held");
        let now = self.look(&mut seen);
        (now, seen.untold.take())
    }

    /// The time to decide by. A step is left for [`Clock::read`] to tell.
    pub fn now(&self) -> Now {
        self.look(&mut self.seen.lock().expect("nothing panics while it is held"))
    }

    /// A process begins on a store where `trusted` was the last time that was trusted. Says what is odd about that.
    pub fn begin_after(&self, trusted: Timestamp) -> Option<OddStart> {
        if let Source::Virtual(clock) = &self.source {
            clock.begin_after(trusted);
            return None;
        }
        let mut seen = self.seen.lock().expect("nothing panics while it is held");
        let now = self.look(&mut seen);
        let (ahead, behind) = (now.wall.since(trusted), trusted.since(now.wall));
        if ahead > self.away_max {
            let believed = Now { wall: trusted, boot: now.boot };
            seen.doubt = Some(Doubt { believed, since: now.boot, ahead });
        } else if behind <= self.jump_max {
            return None;
        }
        seen.trusted_before = Some(trusted);
        Some(match seen.doubt {
            Some(_) => OddStart::Ahead { by: ahead, believed_after: self.believe_after },
            None => OddStart::Behind { by: behind },
        })
    }

    fn look(&self, seen: &mut Seen) -> Now {
        let now = match &self.source {
            Source::System => system_now(),
            Source::Simulated(clock) => clock.now(),
            // It is meant to jump.
            Source::Virtual(clock) => return clock.read(system_now().boot),
        };
        let step = seen.last.and_then(|last| step_between(last, now));
        seen.last = Some(now);
        if let Some(micros) = step {
            let believed = self.weigh(seen, now, micros);
            let untold = seen.untold.map_or(0, |step| step.micros);
            seen.untold = Some(ClockStep { micros: untold + micros, believed });
        }
        self.believed(seen, now)
    }

    /// Decides whether to believe a step.
    fn weigh(&self, seen: &mut Seen, now: Now, micros: i64) -> bool {
        let ahead_before = seen.doubt.map_or(0, |doubt| doubt.ahead.as_micros() as i64);
        let ahead = ahead_before + micros;
        if ahead <= self.jump_max.as_micros() as i64 || self.corrects_the_start(seen, now, ahead) {
            seen.doubt = None;
            return true;
        }
        let ahead = Duration::from_micros(ahead as u64);
        let believed = Now { wall: now.wall - ahead, boot: now.boot };
        seen.doubt = Some(Doubt { believed, since: now.boot, ahead });
        false
    }

    /// Whether a clock that was odd at the start now shows what could have been believed there.
    fn corrects_the_start(&self, seen: &Seen, now: Now, ahead_micros: i64) -> bool {
        let Some(trusted) = seen.trusted_before else { return false };
        let believed = Timestamp::from_micros(now.wall.as_micros() - ahead_micros);
        believed <= trusted + self.believe_after && now.wall <= trusted + self.away_max
    }

    fn believed(&self, seen: &mut Seen, now: Now) -> Now {
        match seen.doubt {
            Some(doubt) if now.boot.since(doubt.since) < self.believe_after => {
                Now { wall: doubt.believed.wall + now.boot.since(doubt.believed.boot), boot: now.boot }
            }
            _ => {
                seen.doubt = None;
                now
            }
        }
    }
}

/// How far wall time moved beyond what really passed, if that is more than drift.
fn step_between(last: Now, seen: Now) -> Option<i64> {
    let passed = seen.boot.since(last.boot).as_micros() as i64;
    let moved = seen.wall.as_micros() - last.wall.as_micros();
    Some(moved - passed).filter(|step| step.abs() >= STEP_MIN_MICROS + passed / DRIFT_SHARE)
}

fn system_now() -> Now {
    use rustix::time::{ClockId, clock_gettime};
    let (wall, boot) = (clock_gettime(ClockId::Realtime), clock_gettime(ClockId::Boottime));
    let micros = |time: rustix::time::Timespec| time.tv_sec * 1_000_000 + time.tv_nsec / 1_000;
    Now { wall: Timestamp::from_micros(micros(wall)), boot: BootTime::from_micros(micros(boot) as u64) }
}

/// Time for tests and simulations: it passes with tokio's clock, and its wall time can be set like a real one.
#[derive(Clone)]
pub struct SimulatedClock {
    origin: tokio::time::Instant,
    wall_origin: Timestamp,
    wall_offset_micros: Arc<AtomicI64>,
}

impl SimulatedClock {
    /// A clock that shows `wall_origin` now.
    #[expect(clippy::disallowed_methods, reason = "this file is the exception")]
    pub fn new(wall_origin: Timestamp) -> SimulatedClock {
        let origin = tokio::time::Instant::now();
        SimulatedClock { origin, wall_origin, wall_offset_micros: Arc::default() }
    }

    /// A clock of another machine: the same true time, its own wall-clock error.
    pub fn another(&self) -> SimulatedClock {
        SimulatedClock { wall_offset_micros: Arc::default(), ..self.clone() }
    }

    /// The same clock, read wrong by so much: for planting a bug.
    pub fn off_by(&self, micros: i64) -> SimulatedClock {
        let wall_origin = Timestamp::from_micros(self.wall_origin.as_micros() + micros);
        SimulatedClock { wall_origin, ..self.clone() }
    }

    /// Sets the wall clock forward or back.
    pub fn step_wall(&self, micros: i64) {
        self.wall_offset_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// How far the wall clock is off.
    pub fn wall_error_micros(&self) -> i64 {
        self.wall_offset_micros.load(Ordering::Relaxed)
    }

    /// What a machine with this clock would read.
    pub fn now(&self) -> Now {
        let mut now = self.true_now();
        let error = self.wall_error_micros();
        now.wall = Timestamp::from_micros(now.wall.as_micros() + error);
        now
    }

    /// What a perfect clock would read.
    #[expect(clippy::disallowed_methods, reason = "this file is the exception")]
    pub fn true_now(&self) -> Now {
        let passed = tokio::time::Instant::now().saturating_duration_since(self.origin);
        Now { wall: self.wall_origin + passed, boot: BootTime::default() + passed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR: Duration = Duration::from_secs(365 * 86_400);

    fn clock() -> (SimulatedClock, Clock) {
        let simulated = SimulatedClock::new(Timestamp::from_secs(1_800_000_000));
        (simulated.clone(), Clock::simulated(simulated))
    }

    #[tokio::test(start_paused = true)]
    async fn an_even_clock_has_no_steps() {
        let (_, clock) = clock();
        let (first, _) = clock.read();
        tokio::time::advance(Duration::from_secs(3600)).await;
        let (second, step) = clock.read();
        assert_eq!(step, None);
        assert_eq!(second.wall.since(first.wall), Duration::from_secs(3600));
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_back_is_believed_at_once() {
        let (hands, clock) = clock();
        let (first, _) = clock.read();
        hands.step_wall(-3_600_000_000);
        let (second, step) = clock.read();
        assert_eq!(step, Some(ClockStep { micros: -3_600_000_000, believed: true }));
        assert_eq!(first.wall.since(second.wall), Duration::from_secs(3600));
        assert_eq!(second.boot, first.boot);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_jump_forward_is_believed_only_after_it_has_stayed() {
        let (hands, clock) = clock();
        let (first, _) = clock.read();
        hands.step_wall(10 * 365 * 86_400 * 1_000_000);
        let (second, step) = clock.read();
        assert_eq!(step.map(|step| step.believed), Some(false));
        assert_eq!(second.wall, first.wall);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(clock.read().0.wall.since(first.wall), Duration::from_secs(59));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(clock.read().0.wall.since(first.wall) > Duration::from_secs(86_400));
    }

    #[tokio::test(start_paused = true)]
    async fn a_bad_time_that_is_corrected_soon_never_counts() {
        let (hands, clock) = clock();
        let (first, _) = clock.read();
        hands.step_wall(86_400_000_000);
        clock.read();
        tokio::time::advance(Duration::from_secs(5)).await;
        hands.step_wall(-86_400_000_000);
        let (second, step) = clock.read();
        assert_eq!(step.map(|step| step.believed), Some(true));
        assert_eq!(second.wall.since(first.wall), Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_looks_first_a_step_is_told_once_and_doubted_by_all() {
        let (hands, clock) = clock();
        let user = clock.clone();
        let (first, _) = clock.read();
        hands.step_wall(86_400_000_000);
        assert_eq!(user.now(), first);
        assert_eq!(clock.read(), (first, Some(ClockStep { micros: 86_400_000_000, believed: false })));
        assert_eq!(clock.read(), (first, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_far_ahead_of_what_was_trusted_is_believed_only_after_it_has_stayed() {
        let (hands, clock) = clock();
        let trusted = hands.now().wall - 2 * YEAR;
        let odd = OddStart::Ahead { by: 2 * YEAR, believed_after: Duration::from_secs(60) };
        assert_eq!(clock.begin_after(trusted), Some(odd));
        assert_eq!(clock.now().wall, trusted);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(clock.now().wall, trusted + Duration::from_secs(59));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(clock.now(), hands.now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_date_that_is_put_right_soon_after_the_start_is_believed_at_once() {
        // The machine was off for a month, or began in 1970; either way its date was wrong by years at first.
        for wrong in [3 * YEAR, Duration::ZERO] {
            let (hands, clock) = clock();
            let right = hands.now().wall;
            let trusted = right - Duration::from_secs(30 * 86_400);
            let start = if wrong.is_zero() { Timestamp::MIN } else { right + wrong };
            hands.step_wall(start.as_micros() - right.as_micros());
            assert!(clock.begin_after(trusted).is_some());
            tokio::time::advance(Duration::from_secs(5)).await;
            hands.step_wall(right.as_micros() - start.as_micros());
            assert_eq!(clock.now(), hands.now(), "{wrong:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_after_a_holiday_is_believed_and_later_jumps_are_weighed_as_ever() {
        let (hands, clock) = clock();
        assert_eq!(clock.begin_after(hands.now().wall - Duration::from_secs(30 * 86_400)), None);
        assert_eq!(clock.now(), hands.now());
        hands.step_wall(86_400_000_000);
        assert_ne!(clock.now(), hands.now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_behind_what_was_trusted_is_believed_and_said() {
        let (hands, clock) = clock();
        let day = Duration::from_secs(86_400);
        assert_eq!(clock.begin_after(hands.now().wall + day), Some(OddStart::Behind { by: day }));
        assert_eq!(clock.now(), hands.now());
        assert_eq!(clock.begin_after(hands.now().wall + Duration::from_secs(60)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_corrected_slowly_has_no_steps() {
        let (hands, clock) = clock();
        clock.read();
        tokio::time::advance(Duration::from_secs(3600)).await;
        hands.step_wall(1_800_000);
        assert_eq!(clock.read().1, None);
    }
}
