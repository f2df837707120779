//! The disk fails at every single call, and from then on the journal says so and changes nothing.

use punctual_store::embedded::disk::simulated::{Call, Fault};
use punctual_store::embedded::journal::{AppendError, OpenError};

use crate::world::World;

/// How a life of a journal on a failing disk went.
enum Met {
    Nothing,
    AtOpen,
    AtAppend,
}

fn live(world: &mut World) -> Met {
    let mut journal = match world.reopen() {
        Ok(journal) => journal,
        Err(OpenError::Failed(_)) => return Met::AtOpen,
        Err(error) => panic!("{error}"),
    };
    for step in 0..24 {
        match world.append(&mut journal) {
            Ok(()) => {}
            Err(AppendError::Full) => world.append(&mut journal).expect("there is room again"),
            Err(error) => {
                stays_failed(world, &mut journal, &error);
                return Met::AtAppend;
            }
        }
        if step % 7 == 6 {
            world.release(&mut journal, 3);
        }
    }
    Met::Nothing
}

/// Nothing more is written, and no sync is tried again.
fn stays_failed(
    world: &mut World,
    journal: &mut punctual_store::embedded::journal::Journal<punctual_store::embedded::disk::SimulatedDisk>,
    first: &AppendError,
) {
    let in_doubt = world.in_doubt.clone();
    let calls = world.disk.calls_in_all();
    for _ in 0..3 {
        let error = world.append(journal).expect_err("it has failed");
        assert_eq!(error.to_string(), first.to_string());
    }
    assert_eq!(world.disk.calls_in_all(), calls, "the disk is left alone");
    world.in_doubt = in_doubt;
}

fn calls_of_a_life() -> u64 {
    let mut world = World::new(0);
    assert!(matches!(live(&mut world), Met::Nothing));
    world.disk.calls_in_all()
}

fn check(call: u64, seed: u64, fault: Fault, crash_after: bool) {
    let mut world = World::new(seed);
    world.disk.fail_at(call, fault);
    live(&mut world);
    if crash_after {
        world.disk.crash();
    }
    let mut journal = world.reopen().unwrap_or_else(|error| panic!("call {call}, seed {seed}: {error}"));
    // What recovery found must be there for good: a failed sync may have left it in memory alone.
    drop(journal);
    world.disk.crash();
    journal = world.reopen().unwrap_or_else(|error| panic!("call {call}, seed {seed}, crashed: {error}"));
    world.append(&mut journal).expect("the disk works again");
}

#[test]
fn nothing_acknowledged_is_lost_wherever_the_disk_fails() {
    for call in 1..=calls_of_a_life() {
        for seed in 0..6 {
            check(call, seed, Fault::Io, seed % 2 == 0);
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_wherever_space_runs_out() {
    for call in 1..=calls_of_a_life() {
        for seed in 0..6 {
            check(call, seed, Fault::NoSpace, seed % 2 == 0);
        }
    }
}

#[test]
fn a_failed_sync_is_not_tried_again() {
    // The second disk writes and syncs at once.
    for (seed, deed) in [(1, "syncing"), (3, "writing")] {
        let mut world = World::new(seed);
        let mut journal = world.reopen().expect("opened");
        world.append(&mut journal).expect("appended");
        world.disk.fail_at(2, Fault::Io);
        let syncs = world.disk.calls(Call::Sync);
        let error = world.append(&mut journal).expect_err("the sync fails");
        let text = format!("the journal has failed: {deed} segment-");
        assert!(error.to_string().starts_with(&text), "{error}");
        stays_failed(&mut world, &mut journal, &error);
        assert_eq!(world.disk.calls(Call::Sync), syncs + 1);
    }
}
