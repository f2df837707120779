//! A hundred seeds keep every promise, meet every kind of trouble, and can be repeated.

use punctual_sim::coverage::Coverage;
use punctual_sim::run::{listen_for_panics, run};

#[test]
fn a_hundred_seeds_keep_every_promise_and_meet_every_trouble() {
    listen_for_panics();
    let total = Coverage::default();
    for seed in 1..=100 {
        let outcome = run(seed, None, false);
        assert_eq!(outcome.violations, [], "cargo run --release -p punctual-sim -- --seed {seed} --log");
        total.add(&outcome.coverage);
    }
    let idle: Vec<&str> =
        total.all().iter().filter(|(_, count)| *count == 0).map(|(name, _)| *name).collect();
    assert!(idle.is_empty(), "a hundred seeds prove nothing about {idle:?}");
}

#[test]
fn a_seed_repeats_itself_exactly() {
    listen_for_panics();
    for seed in [3, 45, 363] {
        assert_eq!(run(seed, None, false).fingerprint, run(seed, None, false).fingerprint, "seed {seed}");
    }
}
