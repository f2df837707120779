//! How often each kind of trouble happened: a batch of seeds that never met one proves nothing about it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Once more.
    pub fn count(&self) {
        self.add(1);
    }

    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// How often.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! coverage {
    ($($name:ident),* $(,)?) => {
        /// How often each kind of trouble happened.
        #[derive(Default)]
        #[expect(missing_docs, reason = "each counter says what it counts")]
        pub struct Coverage { $(pub $name: Counter),* }

        impl Coverage {
            /// All of it, by name.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get())),*]
            }

            /// Adds another run's.
            pub fn add(&self, other: &Coverage) {
                $(self.$name.add(other.$name.get());)*
            }
        }
    };
}

coverage!(
    kills,
    freezes,
    power_cuts,
    hand_overs,
    losses,
    reloads,
    store_delays,
    store_requests_lost,
    store_answers_lost,
    store_writes_torn,
    answers_unknown,
    steps_back,
    steps_forward,
    jumps_doubted,
    odd_starts,
    panics,
    parked_in_lane,
    parked_for_handler,
    parked_for_destination,
    refiled,
    lanes_held,
    obstacles_cleared,
    low_water_marks,
    leases_recorded,
    revived,
    queue_pauses,
    floods,
    deluges,
    drills,
    cancels_won,
    cancels_lost,
    moves,
    changes,
    changes_outdated,
    runs,
    retries_by_users,
    starts_after_a_change,
    replaced,
    kept,
    answered_ended,
    buckets_dropped,
    identities_forgotten,
    tasks_dropped,
    slots_all_taken,
    queue_limits_met,
    rates_met,
    destination_limits_met,
    breakers_opened,
    breaker_probes,
    retries,
    retries_elsewhere,
    retries_asked_for_time,
    died,
    expired,
    starts_before_a_deadline,
    results_seen,
    rushes,
    starts_on_time,
    starts_kept_waiting,
    starts_ahead_of_others,
    ends_awaited,
    blocked,
    reserves_filled,
    reserves_in_vain,
    reserves_deserted,
    reserves_on_time,
    workers_vanished,
    workers_overslept,
    workers_released,
    workers_asked_for_time,
    touches,
    touches_late,
    reports_ended,
    reports_put_off,
    reports_late,
    reports_repeated,
    reports_said_twice,
    reports_to_new_owners,
    leases_taken_over,
);
