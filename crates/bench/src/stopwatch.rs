//! The one file of the benchmarks that reads a clock.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

pub struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a benchmark is about how long things take")]
    pub fn start() -> Self {
        Stopwatch(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The wall clock, in microseconds since 1970: what due times are compared with.
pub fn wall_now() -> i64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}

/// How much processor time this process has used, on all its threads: what others on the machine do is not in it.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What it costs to start a stopwatch and read it, in nanoseconds: it is part of whatever is timed in small pieces.
pub fn overhead_ns() -> f64 {
    const READINGS: u32 = 100_000;
    let mut sum = Duration::ZERO;
    for _ in 0..READINGS {
        sum += Stopwatch::start().elapsed();
    }
    sum.as_secs_f64() * 1e9 / f64::from(READINGS)
}

/// The clock of a paused runtime, which only moves when it is told to.
#[expect(clippy::disallowed_methods, reason = "it is moved by hand, so it says nothing about the system")]
pub fn paused_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
