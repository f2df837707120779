//! A full disk refuses what is new, still records ends, and goes on when there is room.

use punctual_store::embedded::disk::SimulatedDisk;
use punctual_store::embedded::disk::simulated::{Call, Fault};
use punctual_store::embedded::frame::Sequence;
use punctual_store::embedded::journal::{AppendError, Class, Journal};

use crate::world::{OPTIONS, World, append, open};

const HALF_A_SEGMENT: usize = 6_000;

fn fill(journal: &mut Journal<SimulatedDisk>, class: Class) -> u64 {
    let mut taken = 0;
    loop {
        match append(journal, class, &[vec![class as u8; HALF_A_SEGMENT]]) {
            Ok(_) => taken += 1,
            Err(AppendError::Full) => return taken,
            Err(error) => panic!("{error}"),
        }
    }
}

fn disk_with_room_for(segments: u64) -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    disk.set_capacity(segments * OPTIONS.segment_bytes);
    disk
}

#[test]
fn what_is_new_leaves_two_segments_to_the_ends() {
    let disk = disk_with_room_for(5);
    let (mut journal, ..) = open(&disk, 0).expect("opened");
    assert_eq!(fill(&mut journal, Class::New), 6, "three segments, two frames each");
    assert_eq!(journal.usage().ready_segments, 2);
    assert_eq!(fill(&mut journal, Class::End), 4, "the two that were kept back");
    assert_eq!(fill(&mut journal, Class::New), 0);

    drop(journal);
    let (mut journal, recovery, frames) = open(&disk, 0).expect("a full disk is no reason not to start");
    assert_eq!((frames.len(), recovery.next.0), (10, 10));
    assert_eq!(fill(&mut journal, Class::New) + fill(&mut journal, Class::End), 0);
}

#[test]
fn what_is_new_may_not_use_the_room_that_an_end_has_begun() {
    let disk = disk_with_room_for(3);
    let (mut journal, ..) = open(&disk, 0).expect("opened");
    assert_eq!(fill(&mut journal, Class::New), 2);
    append(&mut journal, Class::End, &[vec![1; 10]]).expect("from the reserve");
    let refused = append(&mut journal, Class::New, &[vec![1; 10]]);
    assert!(matches!(refused, Err(AppendError::Full)), "it would fit, and is not for it");
    append(&mut journal, Class::End, &[vec![1; 10]]).expect("the rest is for ends");
}

#[test]
fn it_goes_on_when_there_is_room() {
    let disk = disk_with_room_for(4);
    let (mut journal, ..) = open(&disk, 0).expect("opened");
    assert_eq!(fill(&mut journal, Class::New), 4);
    assert_eq!(fill(&mut journal, Class::End), 4);

    // By a disk that has grown: one to write to, two to keep back.
    disk.set_capacity(6 * OPTIONS.segment_bytes);
    assert_eq!(fill(&mut journal, Class::New), 0, "the reserve comes first");
    disk.set_capacity(7 * OPTIONS.segment_bytes);
    assert_eq!(fill(&mut journal, Class::New), 2);

    // By segments that are released.
    assert_eq!(journal.release_before(Sequence(2)), 1);
    assert_eq!(fill(&mut journal, Class::New), 2);
    let next = journal.usage().next.0;
    drop(journal);
    let (_, recovery, _) = open(&disk, 2).expect("opened");
    assert_eq!(recovery.next.0, next);
}

#[test]
fn a_full_disk_is_asked_and_not_written_to() {
    let disk = disk_with_room_for(3);
    let (mut journal, ..) = open(&disk, 0).expect("opened");
    fill(&mut journal, Class::New);
    let (writes, asked) = (disk.calls(Call::Write), disk.calls(Call::FreeBytes));
    for _ in 0..10 {
        assert_eq!(fill(&mut journal, Class::New), 0);
    }
    assert_eq!((disk.calls(Call::Write), disk.calls(Call::FreeBytes)), (writes, asked + 10));
}

#[test]
fn space_that_runs_out_while_a_segment_is_made_leaves_nothing_behind() {
    for nth in 2..=7 {
        let disk = SimulatedDisk::new(nth);
        let (mut journal, ..) = open(&disk, 0).expect("opened");
        append(&mut journal, Class::New, &[vec![0; 11_000]]).expect("appended");
        let used = disk.used_bytes();
        disk.fail_at(nth, Fault::NoSpace);
        // Free space, create, zeros, first page, sync, rename, sync of the folder.
        let refused = append(&mut journal, Class::New, &[vec![0; 11_000]]);
        assert!(matches!(refused, Err(AppendError::Full)), "call {nth}: {refused:?}");
        assert_eq!(disk.used_bytes(), used, "call {nth}");
        append(&mut journal, Class::New, &[vec![0; 11_000]]).expect("there is room again");
    }
}

/// Written past the cache a frame can be there and not be durable, because its sync found no room. If then the usual way
/// finds none either, nothing of the frame waits to be synced, and a sync that succeeds proves nothing.
#[test]
fn a_frame_that_found_no_room_on_either_way_is_durable_or_refused() {
    for seed in (3..600).step_by(3) {
        let mut world = World::new(seed);
        let mut journal = world.reopen().expect("opened");
        world.append(&mut journal).expect("appended");
        // The write is done, its sync finds no room, and neither does the write on the usual way.
        world.disk.fail_at(2, Fault::NoSpace);
        world.disk.fail_at(3, Fault::NoSpace);
        world.append(&mut journal).ok();
        drop(journal);
        world.disk.crash_keeping(|_| false);
        world.reopen().expect("what was acknowledged is there");
    }
}

#[test]
fn an_empty_journal_on_a_full_disk_opens_and_waits() {
    let disk = disk_with_room_for(0);
    let (mut journal, ..) = open(&disk, 0).expect("opened");
    assert_eq!(fill(&mut journal, Class::New) + fill(&mut journal, Class::End), 0);
    disk.set_capacity(3 * OPTIONS.segment_bytes);
    assert_eq!(append(&mut journal, Class::New, &[vec![1]]).expect("there is room"), 0);
}

#[test]
fn segments_made_in_the_background_are_refused_and_made_alike() {
    let disk = disk_with_room_for(5);
    let (mut journal, ..) = open(&disk, 0).expect("opened");
    journal.prepare_in_background().expect("started");
    assert_eq!(fill(&mut journal, Class::New), 6);
    assert_eq!(fill(&mut journal, Class::End), 4);
    disk.set_capacity(8 * OPTIONS.segment_bytes);
    assert_eq!(fill(&mut journal, Class::New), 2);
    assert_eq!(journal.release_before(Sequence(2)), 1);
    assert_eq!(fill(&mut journal, Class::New), 2);
    drop(journal);
    let (_, recovery, _) = open(&disk, 2).expect("opened");
    assert_eq!(recovery.next.0, 14);
}

#[test]
fn a_failure_in_the_background_is_a_failure() {
    let disk = SimulatedDisk::new(1);
    let (mut journal, ..) = open(&disk, 0).expect("opened");
    journal.prepare_in_background().expect("started");
    let mut failed = None;
    for nth in 1.. {
        // Whoever makes the call, sooner or later one of the two threads meets the fault.
        disk.fail_at(nth % 5 + 1, Fault::Io);
        failed = append(&mut journal, Class::New, &[vec![0; HALF_A_SEGMENT]]).err();
        if failed.is_some() {
            break;
        }
    }
    assert!(matches!(failed, Some(AppendError::Failed(_))));
    let again = append(&mut journal, Class::End, &[vec![0; 1]]).expect_err("it stays so");
    assert_eq!(again.to_string(), failed.expect("it failed").to_string());
}
