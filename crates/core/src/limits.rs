//! Every bound of a node in one place. Memory depends on these, not on how much is pending.

use std::time::Duration;

/// What a node may hold and how long it waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Attempts running at once on this node.
    pub running_max: u32,
    /// Tasks one window (a queue's priority within a partition) holds in memory.
    pub window_max: usize,
    /// Tasks a partition holds in memory before its windows load only what they need next.
    pub loaded_max: usize,
    /// How far ahead tasks are held in memory.
    pub look_ahead: Duration,
    /// Due tasks that wait in memory behind the head of one lane; the rest lie in the store.
    pub behind_max: usize,
    /// Tasks loaded at once of those parked under an obstacle.
    pub parked_page: usize,
    /// Tasks waiting in memory for one busy destination; the rest lie in the store.
    pub destination_waiting_max: usize,
    /// The same for a destination of which it is not known yet how quickly it goes on. They take the room of their windows.
    pub destination_first_max: usize,
    /// Attempts running at once against one destination.
    pub destination_running_max: u32,
    /// The same for one that has not answered yet: a few that hang must not take what all of its kind have together.
    pub unanswered_running_max: u32,
    /// Attempts running at once against all destinations together that have not answered yet, or whose breaker is open.
    /// The rest of `running_max` is for those that are known to be well, however many others hang.
    pub strangers_running_max: u32,
    /// Failures in a row that open a destination's breaker.
    pub breaker_failures: u32,
    /// How long an open breaker waits before it lets one attempt probe.
    pub breaker_rest: Duration,
    /// A window's low-water mark is written after so many tasks have left it.
    pub left_per_mark: usize,
    /// So many changes are worth a record of their own. Of twice as many, those of half of the partitions are recorded, and
    /// while that is under way those of the others.
    pub half_batch_min: usize,
    /// An attempt that has run for so long is noted, so that a new owner knows of it. Most are over before that, and need no
    /// more than the record of their end.
    pub unnoted_max: Duration,
    /// How long a task waits for a handler that was refused by its node.
    pub redeliver_after: Duration,
    /// A task that was running at this many failures of its partition in a row is set aside.
    pub crashes_max: u16,
    /// How far in the past a new task's time may be.
    pub past_grace: Duration,
    /// The largest payload, in bytes. At most [`Limits::PAYLOAD_HARD_MAX`].
    pub payload_max: usize,
    /// One reserve gets no more tasks when those it has carry so many bytes.
    pub reserved_bytes_max: usize,
    /// Requests that wait for an answer on this node; more are refused as overload.
    pub asked_max: usize,
    /// Hours of a queue's history that are dropped at once.
    pub prune_buckets_max: usize,
    /// What a new owner does not know is looked for within this time, a little at a time: history that is to be dropped.
    pub prune_spread: Duration,
}

impl Limits {
    /// No setting allows a larger payload than this.
    pub const PAYLOAD_HARD_MAX: usize = 1024 * 1024;
    /// The longest name of a queue, in bytes.
    pub const QUEUE_NAME_MAX: usize = 100;
    /// The most that a task can say about its delivery, in bytes.
    pub const DELIVERY_MAX: usize = 16 * 1024;
    /// The longest lane, unique key or name, in bytes.
    pub const KEY_MAX: usize = 500;
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            running_max: 1_000,
            window_max: 1_000,
            loaded_max: 4_000,
            look_ahead: Duration::from_secs(300),
            behind_max: 8,
            parked_page: 32,
            destination_waiting_max: 32,
            destination_first_max: 16_384,
            destination_running_max: 20,
            unanswered_running_max: 4,
            strangers_running_max: 500,
            breaker_failures: 5,
            breaker_rest: Duration::from_secs(5),
            left_per_mark: 4_096,
            half_batch_min: 256,
            unnoted_max: Duration::from_millis(10),
            redeliver_after: Duration::from_secs(5),
            crashes_max: 3,
            past_grace: Duration::from_secs(10),
            payload_max: 256 * 1024,
            reserved_bytes_max: 8 * 1024 * 1024,
            asked_max: 10_000,
            prune_buckets_max: 8,
            prune_spread: Duration::from_secs(600),
        }
    }
}
