//! The disk says EIO, or that it is full, once, at every single call.

use punctual_core::Timestamp;

use super::machine::{Machine, Simulated, rows_of};
use super::scenario::{Scenario, Step, Went};
use crate::embedded::cold::TierFault;
use crate::embedded::disk::simulated::Fault;
use crate::{Store, StoreError};

const SEEDS: u64 = 4;

/// A store that has failed says so to everybody, whatever they ask, and leaves the disk alone.
async fn stays_failed(machine: &Machine, store: &Simulated, scenario: &Scenario, step: usize) {
    let calls = machine.disk.calls_in_all();
    assert_eq!(scenario.go_on(store, step).await, Err((step, Went::Failed)));
    let Err(StoreError::Unavailable(cause)) = store.get(Timestamp::MIN, "entry 0").await else {
        panic!("it answers as if nothing had happened");
    };
    assert!(cause.to_string().contains("the store has failed and must be opened again"), "{cause}");
    assert_eq!(machine.disk.calls_in_all(), calls, "the disk is left alone");
}

/// Lives on a disk that fails once. Says which step was not answered; none if nobody noticed.
async fn live(machine: &Machine, scenario: &Scenario) -> Option<usize> {
    let Ok(store) = machine.open().await else { return Some(0) };
    let mut from = 0;
    loop {
        match scenario.go_on(&store, from).await {
            Ok(()) => return None,
            Err((step, Went::Full)) => {
                // It was full for a moment: whoever asks again is heard, and nothing was done before.
                let rows = rows_of(&store).await;
                let states = scenario.states_at(step);
                let is_well = match &scenario.steps[step] {
                    // What ends tasks is taken beside something new that is not.
                    Step::Record(batch) if batch.len() > 1 => true,
                    // History goes by one bucket after the other.
                    Step::Prune(..) => states.contains(&rows),
                    Step::Record(_) | Step::Claim(_) | Step::Set(_) => states[0] == rows,
                };
                assert!(is_well, "step {step}: something was done");
                from = step;
            }
            Err((step, _)) => {
                stays_failed(machine, &store, scenario, step).await;
                return Some(step);
            }
        }
    }
}

async fn check(machine: Machine, scenario: &Scenario, at: (u64, u64)) {
    let step = live(&machine, scenario).await.unwrap_or(scenario.steps.len());
    if at.0.is_multiple_of(2) {
        machine.disk.crash();
    } else {
        machine.disk.kill();
    }
    let store = machine.open().await.unwrap_or_else(|error| panic!("{at:?}: {error:?}"));
    let rows = rows_of(&store).await;
    assert!(scenario.states_at(step).contains(&rows), "{at:?}: after step {step} something else is there");
    scenario.go_on(&store, step).await.unwrap_or_else(|went| panic!("{at:?}: {went:?}"));
    assert!(rows_of(&store).await == *scenario.last_state(), "{at:?}: it ends otherwise");
    // What was found must be there for good: a failed sync may have left it in memory alone.
    drop(store);
    machine.disk.crash();
    let store = machine.open().await.unwrap_or_else(|error| panic!("{at:?}: {error:?}"));
    assert!(rows_of(&store).await == *scenario.last_state(), "{at:?}: it does not last");
}

async fn sweep(fault: Fault) {
    for seed in 0..SEEDS {
        let scenario = Scenario::new(seed).await;
        let machine = Machine::new(seed);
        assert_eq!(live(&machine, &scenario).await, None);
        for call in 1..=machine.disk.calls_in_all() {
            let machine = Machine::new(seed * 1_000 + call);
            machine.disk.fail_at(call, fault);
            check(machine, &scenario, (call, seed)).await;
        }
    }
}

#[tokio::test]
async fn nothing_answered_is_lost_wherever_the_disk_fails() {
    sweep(Fault::Io).await;
}

#[tokio::test]
async fn nothing_answered_is_lost_wherever_space_runs_out() {
    sweep(Fault::NoSpace).await;
}

#[tokio::test]
async fn nothing_answered_is_lost_when_a_checkpoint_fails() {
    for seed in 0..SEEDS {
        let scenario = Scenario::new(seed).await;
        let machine = Machine::new(seed);
        assert_eq!(live(&machine, &scenario).await, None);
        for nth in 1..=machine.cold.ingestions() {
            for fault in [TierFault::Io, TierFault::NoSpace] {
                let machine = Machine::new(seed * 1_000 + nth);
                machine.cold.fail_at(nth, fault);
                check(machine, &scenario, (nth, seed)).await;
            }
        }
    }
}
