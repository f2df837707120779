//! The simulated disk is as unkind as it says.

use super::super::SECTOR;
use super::*;

fn written(disk: &SimulatedDisk, name: &str, bytes: &[u8]) -> SimulatedFile {
    let file = disk.create(name).expect("created");
    file.write_at(0, bytes).expect("written");
    file
}

#[test]
fn what_is_synced_with_its_folder_survives_every_crash() {
    for seed in 0..50 {
        let disk = SimulatedDisk::new(seed);
        let file = written(&disk, "a", &[7; 2_000]);
        file.sync().expect("synced");
        disk.sync_folder().expect("synced");
        disk.crash();
        assert_eq!(disk.contents("a"), Some(vec![7; 2_000]));
    }
}

#[test]
fn unsynced_sectors_are_kept_or_lost_one_by_one() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..200 {
        let disk = SimulatedDisk::new(seed);
        let file = written(&disk, "a", &[0; 3 * SECTOR]);
        file.sync().expect("synced");
        disk.sync_folder().expect("synced");
        file.write_at(0, &[9; 3 * SECTOR]).expect("written");
        disk.crash();
        let bytes = disk.contents("a").expect("the file is durable");
        for sector in bytes.chunks(SECTOR) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is never torn");
        }
        outcomes.insert([bytes[0], bytes[SECTOR], bytes[2 * SECTOR]]);
    }
    assert_eq!(outcomes.len(), 8, "every combination happens");
}

#[test]
fn names_that_are_not_synced_may_vanish() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..100 {
        let disk = SimulatedDisk::new(seed);
        written(&disk, "old", b"x").sync().expect("synced");
        disk.sync_folder().expect("synced");
        disk.rename("old", "new").expect("renamed");
        written(&disk, "fresh", b"y").sync().expect("synced");
        disk.crash();
        outcomes.insert(disk.list().expect("listed"));
    }
    let expected = [vec!["fresh", "new"], vec!["fresh", "old"], vec!["new"], vec!["old"]];
    assert_eq!(outcomes, expected.map(|names| names.into_iter().map(String::from).collect()).into());
}

#[test]
fn a_failed_sync_forgets_what_it_did_not_write() {
    let mut kept = 0;
    for seed in 0..100 {
        let disk = SimulatedDisk::new(seed);
        let file = written(&disk, "a", b"x");
        disk.sync_folder().expect("synced");
        disk.fail_at(1, Fault::Io);
        assert!(file.sync().is_err());
        file.sync().expect("the second sync claims success");
        assert_eq!(disk.contents("a").as_deref(), Some(&b"x"[..]), "and it can still be read");
        disk.crash();
        kept += disk.contents("a").expect("the file is durable").len();
    }
    assert!((20..80).contains(&kept), "{kept} of 100 survived");
}

#[test]
fn after_the_planned_crash_nothing_answers_until_the_power_is_back() {
    let disk = SimulatedDisk::new(1);
    let file = written(&disk, "a", b"x");
    disk.fail_at(2, Fault::Crash);
    disk.sync_folder().expect("the first call from now");
    assert!(file.sync().is_err());
    assert!(disk.list().is_err());
    disk.crash();
    assert!(file.sync().is_err(), "it was opened before the crash");
    disk.open("a").expect("opened").sync().expect("synced");
}

#[test]
fn a_full_disk_says_so_and_goes_on_when_there_is_room() {
    let disk = SimulatedDisk::new(1);
    disk.set_capacity(1_000);
    let file = written(&disk, "a", &[1; 900]);
    assert_eq!(disk.free_bytes().expect("asked"), 100);
    let error = file.write_at(900, &[1; 101]).expect_err("too much");
    assert!(super::super::is_no_space(&error));
    file.write_at(0, &[2; 900]).expect("what is there can be written again");
    disk.set_capacity(2_000);
    file.write_at(900, &[1; 101]).expect("written");
}

#[test]
fn calls_are_counted_by_kind() {
    let disk = SimulatedDisk::new(1);
    written(&disk, "a", &[1; 900]).sync().expect("synced");
    assert_eq!([Call::Create, Call::Write, Call::Sync].map(|call| disk.calls(call)), [1, 1, 1]);
    assert_eq!((disk.calls_in_all(), disk.bytes_written()), (3, 900));
}

#[test]
fn a_lock_is_exclusive_and_a_crash_frees_it() {
    let disk = SimulatedDisk::new(1);
    let held = disk.lock("lock").expect("asked").expect("free");
    assert!(disk.lock("lock").expect("asked").is_none());
    disk.crash();
    let other = disk.lock("lock").expect("asked").expect("free after the crash");
    drop(held);
    assert!(disk.lock("lock").expect("asked").is_none(), "the old lock does not free the new one");
    drop(other);
    assert!(disk.lock("lock").expect("asked").is_some());
}

#[test]
fn a_process_that_dies_loses_nothing_and_syncs_nothing() {
    let disk = SimulatedDisk::new(1);
    written(&disk, "a", &[1; 900]);
    let _held = disk.lock("lock").expect("asked").expect("free");
    disk.kill();
    assert_eq!(disk.contents("a"), Some(vec![1; 900]));
    assert!(disk.lock("lock").expect("asked").is_some());
    disk.crash_keeping(|_| false);
    assert!(disk.contents("a").is_none_or(|bytes| bytes.is_empty()));
}
