//! Settings as scripts write them: `limits window_max=16`, `queue mail running_max=2 rate=10/1 retry=10,20`.

use std::borrow::Cow;
use std::time::Duration;

use punctual_core::{
    Limits, Obstacle, OnExhausted, Past, Priority, QueueId, QueueSettings, Queues, Rate, RetryPolicy,
    Settings, Waits,
};

use super::words::{Line, duration, number};

/// What a script has said about queues, limits and receivers so far.
pub struct Rules {
    limits: Limits,
    queues: Vec<(String, QueueSettings)>,
    receivers: Vec<String>,
    nodes: u32,
}

impl Rules {
    pub fn new() -> Rules {
        let limits = Limits {
            look_ahead: duration("300"),
            breaker_rest: duration("5"),
            unnoted_max: Duration::ZERO,
            redeliver_after: duration("5"),
            past_grace: duration("10"),
            ..Limits::default()
        };
        Rules { limits, queues: Vec::new(), receivers: vec!["h".to_owned()], nodes: 1 }
    }

    pub fn settings(&self) -> Settings {
        let mut queues = Queues::default();
        for (number, (_, settings)) in self.queues.iter().enumerate() {
            queues.set(QueueId(number as u32), settings.clone());
        }
        let receivers = self.receivers.iter().map(|name| Obstacle::handler(name)).collect();
        Settings { limits: self.limits.clone(), queues, receivers, nodes: self.nodes }
    }

    pub fn knows(&self, name: &str) -> bool {
        self.queues.iter().any(|(known, _)| known == name)
    }

    pub fn priority_of(&self, queue: QueueId) -> Priority {
        self.queues[queue.0 as usize].1.priority
    }

    pub fn queue(&mut self, name: &str) -> QueueId {
        let known = self.queues.iter().position(|(known, _)| known == name);
        let number = known.unwrap_or_else(|| {
            self.queues.push((name.to_owned(), plain_queue()));
            self.queues.len() - 1
        });
        QueueId(number as u32)
    }

    pub fn queue_settings(&mut self, name: &str) -> &mut QueueSettings {
        let id = self.queue(name);
        &mut self.queues[id.0 as usize].1
    }

    pub fn set_receivers(&mut self, line: &Line) {
        self.receivers = line.plain().to_vec();
    }

    pub fn set_nodes(&mut self, line: &Line) {
        self.nodes = number(line.first()) as u32;
    }

    pub fn set_limits(&mut self, line: &Line) {
        let limits = &mut self.limits;
        for (name, value) in line.named() {
            let count = || number(value) as usize;
            match name.as_str() {
                "running_max" => limits.running_max = count() as u32,
                "window_max" => limits.window_max = count(),
                "loaded_max" => limits.loaded_max = count(),
                "look_ahead" => limits.look_ahead = duration(value),
                "behind_max" => limits.behind_max = count(),
                "parked_page" => limits.parked_page = count(),
                // Of a destination that is new, too, unless said otherwise after it.
                "destination_waiting_max" => {
                    (limits.destination_waiting_max, limits.destination_first_max) = (count(), 0);
                }
                "destination_first_max" => limits.destination_first_max = count(),
                "destination_running_max" => limits.destination_running_max = count() as u32,
                "unanswered_running_max" => limits.unanswered_running_max = count() as u32,
                "strangers_running_max" => limits.strangers_running_max = count() as u32,
                "breaker_failures" => limits.breaker_failures = count() as u32,
                "breaker_rest" => limits.breaker_rest = duration(value),
                "unnoted_max" => limits.unnoted_max = duration(value),
                "redeliver_after" => limits.redeliver_after = duration(value),
                "crashes_max" => limits.crashes_max = count() as u16,
                "half_batch_min" => limits.half_batch_min = count(),
                "left_per_mark" => limits.left_per_mark = count(),
                "past_grace" => limits.past_grace = duration(value),
                "asked_max" => limits.asked_max = count(),
                _ => panic!("no limit is called {name}"),
            }
        }
    }

    pub fn set_queue(&mut self, line: &Line) {
        let queue = self.queue_settings(line.first());
        queue.paused = line.has("paused");
        queue.exclusive = line.has("exclusive");
        queue.pinned = line.has("pinned");
        if line.has("run_now") {
            queue.past = Past::RunNow;
        }
        if line.has("dead_letter") {
            queue.on_exhausted = OnExhausted::DeadLetter;
        }
        for (name, value) in line.named() {
            match name.as_str() {
                "running_max" => queue.running_max = Some(number(value) as u32),
                "rate" => queue.rate = Some(rate(value, line.number("burst").unwrap_or(1))),
                "burst" => {}
                "priority" => queue.priority = priority(value),
                "timeout" => queue.timeout = duration(value),
                "retry" => queue.retry.waits = waits(value),
                "attempts" => queue.retry.attempts_max = number(value) as u32,
                _ => panic!("queues have no setting called {name}"),
            }
        }
    }
}

/// Waits of 10, 20 and 40 seconds, without jitter.
fn plain_queue() -> QueueSettings {
    let retry = RetryPolicy { waits: waits("10,20,40"), attempts_max: 25, age_max: None };
    QueueSettings { retry, timeout: duration("30"), ..QueueSettings::default() }
}

/// `10,20`: ten seconds, then twenty. `none` is a policy that no check lets through, and that the engine panics at.
pub fn waits(text: &str) -> Waits {
    if text == "none" {
        return Waits::Listed(Cow::Borrowed(&[]));
    }
    Waits::Listed(Cow::Owned(text.split(',').map(duration).collect::<Vec<Duration>>()))
}

pub fn priority(text: &str) -> Priority {
    Priority::new(number(text) as u8).unwrap_or_else(|| panic!("{text} is not a priority"))
}

/// `10/1`: ten starts per second.
fn rate(text: &str, burst: i64) -> Rate {
    let (starts, per) = text.split_once('/').unwrap_or((text, "1"));
    Rate { starts: number(starts) as u32, per: duration(per), burst: burst as u32 }
}
