//! Each part of the last write reaches the disk or not, in every combination.

use punctual_store::embedded::disk::SimulatedDisk;
use punctual_store::embedded::disk::simulated::Fault;
use punctual_store::embedded::journal::{Class, Journal};

use crate::world::{World, append, open};

/// A journal with so many frames, of which all but the last two are safe elsewhere.
fn prepared(frames: u64, seed: u64) -> (World, Journal<SimulatedDisk>) {
    let mut world = World::new(seed);
    let mut journal = world.reopen().expect("opened");
    for _ in 0..frames {
        world.append(&mut journal).expect("appended");
        world.release(&mut journal, 2);
    }
    (world, journal)
}

/// How many calls an append makes in all. The last of them is its sync.
fn calls_of_append(frames_before: u64, records: &[Vec<u8>]) -> u64 {
    let (world, mut journal) = prepared(frames_before, 1);
    let before = world.disk.calls_in_all();
    append(&mut journal, Class::New, records).expect("appended");
    world.disk.calls_in_all() - before
}

/// Writes a few frames, then one of this many bytes that is cut: only the sectors in the mask are kept.
fn tear(frames_before: u64, bytes: usize, mask: u32) -> usize {
    let torn = vec![vec![0x5a; bytes]];
    let calls = calls_of_append(frames_before, &torn);
    let (mut world, mut journal) = prepared(frames_before, 1);
    world.disk.fail_at(calls, Fault::Crash);
    append(&mut journal, Class::New, &torn).expect_err("the power goes");
    let sectors = world.disk.unsynced_sectors();
    world.in_doubt = Some((frames_before, torn));
    world.disk.crash_keeping(|sector| mask & (1 << sector) != 0);

    let mut journal = world.reopen().unwrap_or_else(|error| panic!("mask {mask:b}: {error}"));
    let is_kept = world.acknowledged.len() as u64 > frames_before;
    let frame_sectors = (40 + 4 + bytes).div_ceil(512);
    assert_eq!(is_kept, (0..frame_sectors).all(|sector| mask & (1 << sector) != 0), "mask {mask:b}");
    world.append(&mut journal).expect("appended");
    drop(journal);
    world.reopen().unwrap_or_else(|error| panic!("mask {mask:b}, once more: {error}"));
    sectors
}

#[test]
fn a_write_that_is_torn_anywhere_counts_wholly_or_not_at_all() {
    // In a fresh segment, within a page, over a page's end, and first in a segment with old frames in it.
    for frames_before in (0..4).chain(12..32) {
        let sectors = tear(frames_before, 2_600, u32::MAX);
        assert!((6..=14).contains(&sectors), "{sectors} sectors");
        for mask in 0..1 << 6 {
            tear(frames_before, 2_600, mask);
        }
    }
}

#[test]
fn what_is_torn_is_reported_when_its_header_is_there() {
    let (world, mut journal) = prepared(1, 1);
    world.disk.fail_at(2, Fault::Crash);
    append(&mut journal, Class::New, &[vec![1; 2_000]]).expect_err("the power goes");
    drop(journal);
    world.disk.crash_keeping(|sector| sector == 0);
    let (_, recovery, frames) = open(&world.disk, 0).expect("opened");
    assert!(recovery.torn.is_some(), "{recovery:?}");
    assert_eq!(frames, world.acknowledged);
    assert_eq!((recovery.next.0, recovery.frames, recovery.records), (1, 1, frames[0].1.len() as u64));
}
