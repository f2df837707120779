//! The power goes at every single call to the disk, and nothing that was acknowledged is lost.

use punctual_store::embedded::disk::SimulatedDisk;
use punctual_store::embedded::disk::simulated::{Call, Fault};
use punctual_store::embedded::journal::Journal;

use crate::world::World;

/// Opens a journal, fills several segments, releases some and uses them again, and opens it once more on the way.
/// Stops at the first failure.
fn live(world: &mut World) -> Result<(), ()> {
    for _ in 0..2 {
        let mut journal = world.reopen().map_err(drop)?;
        for step in 0..24 {
            world.append(&mut journal).map_err(drop)?;
            if step % 7 == 6 {
                world.release(&mut journal, 3);
            }
        }
    }
    Ok(())
}

fn append_some(world: &mut World, journal: &mut Journal<SimulatedDisk>) {
    for _ in 0..5 {
        world.append(journal).expect("the disk works again");
    }
}

/// Ends the process, and three times out of four the power as well.
fn crash(world: &World, seed: u64) {
    if seed.is_multiple_of(4) {
        world.disk.kill();
    } else {
        world.disk.crash();
    }
}

/// Crashes at this call, and again at some call of the recovery, and checks everything each time.
fn crash_at(call: u64, seed: u64) {
    let mut world = World::new(seed);
    world.disk.fail_at(call, Fault::Crash);
    assert!(live(&mut world).is_err(), "the power was on all the time");
    crash(&world, seed);

    world.disk.fail_at(1 + (call * 7 + seed * 3) % 60, Fault::Crash);
    if let Ok(mut journal) = world.reopen() {
        while world.append(&mut journal).is_ok() {}
    }
    world.disk.crash();

    let mut journal = world.reopen().unwrap_or_else(|error| panic!("call {call}, seed {seed}: {error}"));
    append_some(&mut world, &mut journal);
    drop(journal);
    world.disk.crash();
    world.reopen().unwrap_or_else(|error| panic!("call {call}, seed {seed}, at last: {error}"));
}

fn calls_of_a_life(seed: u64) -> u64 {
    let mut world = World::new(seed);
    live(&mut world).expect("nothing fails");
    let [made, used] = [Call::Rename, Call::Write].map(|call| world.disk.calls(call));
    assert!(made <= 12 && used > 50, "segments are used again: {made} made for {used} writes");
    world.disk.calls_in_all()
}

#[test]
fn nothing_acknowledged_is_lost_wherever_the_power_goes() {
    for seed in 0..12 {
        let calls = calls_of_a_life(seed);
        assert!(calls > 120, "{calls} calls");
        (1..=calls).for_each(|call| crash_at(call, seed));
    }
}
