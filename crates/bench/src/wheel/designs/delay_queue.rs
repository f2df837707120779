//! tokio's `DelayQueue`: a hierarchical wheel too, behind a stream that sleeps on the runtime's timer.

use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

use punctual_core::Timestamp;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

use super::Timers;
use crate::stopwatch;

/// Its clock stands still unless it is moved.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_current_thread();
    builder
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO needs nothing of the system")
});

pub struct TokioDelayQueue {
    queue: DelayQueue<u32>,
    /// The same moment on both clocks.
    begin: (Timestamp, Instant),
}

impl Timers for TokioDelayQueue {
    type Key = Key;
    const NAME: &'static str = "tokio-util DelayQueue";
    const WEAKNESS: &'static str = "polling";
    const NEEDS_CLOCK: bool = true;

    fn new(now: Timestamp, _horizon_ticks: u64) -> Self {
        TokioDelayQueue { queue: DelayQueue::new(), begin: (now, stopwatch::paused_now()) }
    }

    fn start(&mut self, at: Timestamp, item: u32) -> Key {
        self.queue.insert_at(item, self.begin.1 + at.since(self.begin.0))
    }

    fn stop(&mut self, key: Key) {
        self.queue.remove(&key);
    }

    fn advance(&mut self, _now: Timestamp, due: &mut Vec<u32>) {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(expired)) = self.queue.poll_expired(&mut context) {
            due.push(expired.into_inner());
        }
    }

    fn move_clock(&mut self, now: Timestamp) {
        let to = self.begin.1 + now.since(self.begin.0);
        RUNTIME.block_on(tokio::time::advance(to - stopwatch::paused_now()));
    }
}
