//! What is wrong with a folder is said, with the file and the offset, and nothing is changed.

use punctual_store::embedded::disk::{Disk, DiskFile, SimulatedDisk};
use punctual_store::embedded::frame::{Identity, Sequence};
use punctual_store::embedded::journal::{AppendError, Class, Journal, OpenError, Options};

use crate::world::{OPTIONS, append, open};

/// Four segments with two frames each, and the two that are kept back.
fn four_segments() -> (SimulatedDisk, Vec<String>) {
    let disk = SimulatedDisk::new(1);
    let (mut journal, ..) = open(&disk, 0).expect("opened");
    let mut order = Vec::new();
    for number in 0..8_u8 {
        append(&mut journal, Class::New, &[vec![number; 6_000]]).expect("appended");
        let holds = |name: &String| disk.contents(name).is_some_and(|bytes| bytes[4_096 + 60] == number);
        order.extend(
            disk.list()
                .expect("listed")
                .into_iter()
                .filter(|name| name != "lock")
                .find(|name| number % 2 == 0 && holds(name)),
        );
    }
    // Zeros look like the first.
    order[0] = disk
        .list()
        .expect("listed")
        .into_iter()
        .find(|name| {
            disk.contents(name).is_some_and(|bytes| bytes.get(4_096) == Some(&b'P'))
                && !order[1..].contains(name)
        })
        .expect("the first");
    (disk, order)
}

#[track_caller]
fn assert_damaged(disk: &SimulatedDisk, from: u64, what: &str) {
    match open(disk, from).map(|(_, recovery, _)| recovery) {
        Err(OpenError::Damaged { place, what: found }) => {
            assert!(found.contains(what), "{place}: {found}");
            assert!(place.file.starts_with("segment-"));
        }
        other => panic!("{other:?}"),
    }
}

fn copy(disk: &SimulatedDisk, from: &str, to: &str) {
    let bytes = disk.contents(from).expect("it is there");
    disk.create(to).expect("created").write_at(0, &bytes).expect("written");
}

#[test]
fn a_segment_that_is_gone_is_missed() {
    for (gone, what) in
        [(0, "the journal begins with frame 2"), (1, "frame 2 is missing"), (2, "frame 4 is missing")]
    {
        let (disk, order) = four_segments();
        disk.remove(&order[gone]).expect("removed");
        assert_damaged(&disk, 0, what);
    }
}

#[test]
fn what_is_safe_elsewhere_may_be_gone() {
    let (disk, order) = four_segments();
    disk.remove(&order[0]).expect("removed");
    disk.flip(&order[1], 5_000, 1);
    let (_, recovery, frames) = open(&disk, 5).expect("opened");
    assert_eq!((recovery.next.0, frames.len()), (8, 3));
}

#[test]
fn a_journal_that_ends_too_early_is_refused() {
    let (disk, _) = four_segments();
    open(&disk, 8).expect("everything is safe elsewhere");
    assert_damaged(&disk, 9, "the journal ends before frame 8, and 9 is asked for");
}

#[test]
fn a_segment_that_is_there_twice_is_refused() {
    let (disk, order) = four_segments();
    copy(&disk, &order[1], "segment-000099");
    assert_damaged(&disk, 0, "overlap");
}

#[test]
fn a_segment_of_another_journal_is_refused() {
    let (disk, _) = four_segments();
    let other = SimulatedDisk::new(2);
    let options = Options { identity: Identity(1), ..OPTIONS };
    Journal::open(other.clone(), options, Sequence(0), |_, _| Ok(())).expect("opened");
    let bytes = other.contents("segment-000001").expect("it is there");
    disk.create("segment-000099").expect("created").write_at(0, &bytes).expect("written");
    assert_damaged(&disk, 0, "another journal");
}

#[test]
fn a_truncated_segment_is_refused() {
    let (disk, order) = four_segments();
    let bytes = disk.contents(&order[2]).expect("it is there");
    disk.remove(&order[2]).expect("removed");
    disk.create(&order[2]).expect("created").write_at(0, &bytes[..9_000]).expect("written");
    assert_damaged(&disk, 0, "it is 9000 bytes long, and was made with 16384");
}

#[test]
fn files_that_are_not_ours_are_left_alone() {
    let (disk, _) = four_segments();
    disk.create("notes").expect("created");
    disk.create("segment-of-a-cake").expect("created");
    disk.create("segment-000042.new").expect("created");
    open(&disk, 0).expect("opened");
    let names = disk.list().expect("listed");
    assert!(names.contains(&"notes".into()) && names.contains(&"segment-of-a-cake".into()));
    assert!(!names.contains(&"segment-000042.new".into()), "what was left unfinished is removed");
}

#[test]
fn a_journal_is_open_once() {
    let disk = SimulatedDisk::new(1);
    let held = open(&disk, 0).expect("opened");
    assert!(matches!(open(&disk, 0).map(drop), Err(OpenError::Locked)));
    drop(held);
    open(&disk, 0).expect("opened");
}

#[test]
fn a_record_that_is_not_understood_stops_the_start_and_is_named() {
    let (disk, _) = four_segments();
    let opened = Journal::open(disk, OPTIONS, Sequence(0), |sequence, _| {
        if sequence == Sequence(3) { Err("a record from the future".into()) } else { Ok(()) }
    });
    match opened.map(drop) {
        Err(error @ OpenError::NotUnderstood { .. }) => {
            let source = std::error::Error::source(&error).expect("a cause").to_string();
            assert_eq!(source, "a record from the future");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_frame_that_fits_no_segment_is_refused_and_nothing_changes() {
    let disk = SimulatedDisk::new(1);
    let (mut journal, ..) = open(&disk, 0).expect("opened");
    let calls = disk.calls_in_all();
    let refused = append(&mut journal, Class::End, &[vec![0; 3 * 4096 - 43]]);
    assert!(
        matches!(refused, Err(AppendError::TooLarge { bytes: 12_289, bytes_max: 12_288 })),
        "{refused:?}"
    );
    assert_eq!(disk.calls_in_all(), calls);
    append(&mut journal, Class::New, &[vec![0; 3 * 4096 - 44]]).expect("one byte less fits");
}

#[test]
fn a_journal_may_begin_with_any_frame() {
    let disk = SimulatedDisk::new(1);
    let (mut journal, recovery, _) = open(&disk, 1_000).expect("opened");
    assert_eq!(recovery.next, Sequence(1_000));
    assert_eq!(append(&mut journal, Class::New, &[vec![1]]).expect("appended"), 1_000);
    drop(journal);
    let (_, _, frames) = open(&disk, 1_000).expect("opened");
    assert_eq!(frames, [(1_000, vec![vec![1]])]);
}
