//! The power goes at every single call to the disk and at every checkpoint; what was answered is there, what was under
//! way is there wholly or not at all, and there is nothing else.

use super::machine::{Machine, Rows, rows_of};
use super::scenario::Scenario;
use crate::StoreError;
use crate::embedded::cold::TierFault;
use crate::embedded::disk::simulated::{Call, Fault};

const SEEDS: u64 = 6;

/// Lives until something fails. Says which step was not answered: the first one, if the store did not open.
async fn live(machine: &Machine, scenario: &Scenario) -> Option<usize> {
    match machine.open().await {
        Ok(store) => scenario.go_on(&store, 0).await.err().map(|(step, _)| step),
        Err(_) => Some(0),
    }
}

/// Opens the store again after a crash, which another one interrupts, and goes on to the end.
async fn recover(machine: &Machine, scenario: &Scenario, step: usize, (call, seed): (u64, u64)) {
    let told = |error: StoreError| panic!("call {call}, seed {seed}: {error:?}");
    machine.disk.fail_at(1 + (call * 7 + seed * 3) % 40, Fault::Crash);
    let first = match machine.open().await {
        Ok(store) => decided(rows_of(&store).await, scenario, step, (call, seed)),
        Err(_) => None,
    };
    machine.disk.crash();
    let store = machine.open().await.unwrap_or_else(told);
    let second = decided(rows_of(&store).await, scenario, step, (call, seed));
    if first.is_some() {
        assert_eq!(first, second, "call {call}, seed {seed}: it was there, or not, and now it is otherwise");
    }
    // Whoever was not answered asks again.
    scenario.go_on(&store, step).await.unwrap_or_else(|went| panic!("call {call}, seed {seed}: {went:?}"));
    assert!(rows_of(&store).await == *scenario.last_state(), "call {call}, seed {seed}: it ends otherwise");
    drop(store);
    machine.disk.crash();
    let store = machine.open().await.unwrap_or_else(told);
    assert!(rows_of(&store).await == *scenario.last_state(), "call {call}, seed {seed}: it does not last");
}

/// Which of the states that may be is there.
fn decided(rows: Rows, scenario: &Scenario, step: usize, at: (u64, u64)) -> Option<usize> {
    let state = scenario.states_at(step).iter().position(|state| *state == rows);
    // A store that did not open the first time has made itself, or not.
    assert!(
        state.is_some(),
        "{at:?}: after step {step} ({:?}) something else is there",
        scenario.steps.get(step)
    );
    state
}

/// How many calls to the disk a life takes, and how many checkpoints.
async fn count(seed: u64, scenario: &Scenario) -> (u64, u64) {
    let machine = Machine::new(seed);
    assert_eq!(live(&machine, scenario).await, None);
    let made = machine.disk.calls(Call::Rename);
    assert!(made > 3, "{made} segments were made");
    (machine.disk.calls_in_all(), machine.cold.ingestions())
}

#[tokio::test]
async fn nothing_is_lost_or_halved_wherever_the_power_goes() {
    for seed in 0..SEEDS {
        let scenario = Scenario::new(seed).await;
        let (calls, _) = count(seed, &scenario).await;
        assert!(calls > 100, "{calls} calls");
        for call in 1..=calls {
            let machine = Machine::new(seed * 1_000 + call);
            machine.disk.fail_at(call, Fault::Crash);
            let Some(step) = live(&machine, &scenario).await else { panic!("call {call}: the power was on") };
            machine.die(seed);
            recover(&machine, &scenario, step, (call, seed)).await;
        }
    }
}

#[tokio::test]
async fn nothing_is_lost_or_halved_when_the_power_goes_during_a_checkpoint() {
    for seed in 0..SEEDS {
        let scenario = Scenario::new(seed).await;
        let (_, checkpoints) = count(seed, &scenario).await;
        assert!(checkpoints > 5, "{checkpoints} checkpoints");
        for (nth, fault) in (1..=checkpoints)
            .flat_map(|nth| [TierFault::CrashBefore, TierFault::CrashAfter].map(|it| (nth, it)))
        {
            let machine = Machine::new(seed * 1_000 + nth);
            machine.cold.fail_at(nth, fault);
            // The last step may be answered before anybody notices.
            let step = live(&machine, &scenario).await.unwrap_or(scenario.steps.len());
            machine.die(seed);
            recover(&machine, &scenario, step, (nth, seed)).await;
        }
    }
}
