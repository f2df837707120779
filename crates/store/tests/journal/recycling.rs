//! Segments are used again, and what they held before does not come back.

use punctual_store::embedded::disk::simulated::Call;
use punctual_store::embedded::disk::{Disk, SimulatedDisk};
use punctual_store::embedded::frame::Sequence;
use punctual_store::embedded::journal::{Class, Journal, Options};

use crate::world::{OPTIONS, World, append, open};

fn segments(disk: &SimulatedDisk) -> usize {
    disk.list().expect("listed").iter().filter(|name| name.starts_with("segment-")).count()
}

#[test]
fn a_journal_that_is_released_goes_round_in_the_same_files() {
    let mut world = World::new(1);
    let mut journal = world.reopen().expect("opened");
    for _ in 0..300 {
        world.append(&mut journal).expect("appended");
        world.release(&mut journal, 5);
    }
    // One is written to, two are kept back, and those that hold the last five frames.
    assert!(world.disk.calls(Call::Rename) <= 7, "{} were made", world.disk.calls(Call::Rename));
    assert_eq!(world.disk.calls(Call::Remove), 0);
    drop(journal);
    world.reopen().expect("opened");
}

#[test]
fn old_frames_of_a_segment_are_never_replayed() {
    // Frames of one size lie at the same offsets each time round, and each ends where an old one begins.
    let disk = SimulatedDisk::new(1);
    let (mut journal, ..) = open(&disk, 0).expect("opened");
    for number in 0..200_u64 {
        let record = vec![number as u8; 3 * 512 - 44];
        append(&mut journal, Class::New, std::slice::from_ref(&record)).expect("appended");
        let checkpoint = number.saturating_sub(2);
        journal.release_before(Sequence(checkpoint));
        drop(journal);
        let (again, recovery, frames) = open(&disk, checkpoint).expect("opened");
        assert_eq!(recovery.next.0, number + 1);
        assert_eq!(frames.last(), Some(&(number, vec![record])));
        assert_eq!(frames.len() as u64, number + 1 - checkpoint);
        journal = again;
    }
}

#[test]
fn no_more_spares_are_kept_than_was_said() {
    let mut world = World::new(2);
    let mut journal = world.reopen().expect("opened");
    for _ in 0..60 {
        world.append(&mut journal).expect("appended");
    }
    let used = journal.usage().used_segments;
    assert!(used > 6, "{used} segments");
    assert_eq!(world.release(&mut journal, 0), used - 1, "all but the one that is written to");
    assert_eq!(journal.usage().ready_segments, 4, "two to keep back, two spares");
    assert_eq!(segments(&world.disk), 5);
    drop(journal);
    world.disk.crash();
    world.reopen().expect("removed files may come back, and do no harm");
    assert!(segments(&world.disk) <= 5);
}

#[test]
fn only_segments_that_are_wholly_below_are_released() {
    let disk = SimulatedDisk::new(1);
    let (mut journal, ..) = open(&disk, 0).expect("opened");
    for _ in 0..6 {
        append(&mut journal, Class::New, &[vec![1; 6_000]]).expect("two of them fill a segment");
    }
    let released = [0, 1, 2, 3, 4, 5, 6, 99].map(|sequence| journal.release_before(Sequence(sequence)));
    assert_eq!(released, [0, 0, 1, 0, 1, 0, 0, 0]);
}

#[test]
fn the_size_of_segments_can_be_changed() {
    let mut world = World::new(4);
    let mut journal = world.reopen().expect("opened");
    for _ in 0..20 {
        world.append(&mut journal).expect("appended");
    }
    drop(journal);
    let options = Options { segment_bytes: 5 * 4096 - 7, ..OPTIONS };
    let reopened = Journal::open(world.disk.clone(), options, Sequence(0), |_, _| Ok(()));
    let (mut journal, recovery) = reopened.expect("opened");
    assert_eq!(recovery.next, Sequence(20));
    for _ in 0..20 {
        world.append(&mut journal).expect("appended");
    }
    world.release(&mut journal, 0);
    drop(journal);
    let sizes: Vec<usize> = world
        .disk
        .list()
        .expect("listed")
        .iter()
        .filter_map(|name| world.disk.contents(name))
        .map(|bytes| bytes.len())
        .collect();
    assert!(sizes.iter().all(|size| *size == 5 * 4096), "{sizes:?}");
    let reopened = Journal::open(world.disk.clone(), options, Sequence(40), |_, _| Ok(()));
    assert_eq!(reopened.expect("opened").1.next, Sequence(40));
}
