//! What an append costs, in calls and bytes: the same on every machine.

use punctual_store::embedded::disk::SimulatedDisk;
use punctual_store::embedded::disk::simulated::Call;
use punctual_store::embedded::frame::{Identity, Sequence};
use punctual_store::embedded::journal::{Class, Journal, Options};

use crate::world::frame_of;

const OPTIONS: Options = Options {
    segment_bytes: 1 << 20,
    reserved_segments: 2,
    spare_segments_max: 2,
    keep_free_bytes: 0,
    identity: Identity(1),
};

/// Calls, and bytes written, of so many appends of so many records, in segments that were used before.
fn cost(appends: u64, records: usize) -> (SimulatedDisk, u64, u64, u64) {
    let disk = SimulatedDisk::new(1);
    let (mut journal, _) = Journal::open(disk.clone(), OPTIONS, Sequence(0), |_, _| Ok(())).expect("opened");
    let mut frame = frame_of(&vec![vec![7; 250]; records]);
    let mut append = |times: u64| {
        for _ in 0..times {
            let sequence = journal.append(Class::New, &mut frame).expect("appended");
            journal.release_before(sequence);
        }
    };
    append(3 * (1 << 20) / (records as u64 * 254) + 9);
    let [writes, syncs] = [Call::Write, Call::Sync].map(|call| disk.calls(call));
    let (calls, bytes) = (disk.calls_in_all(), disk.bytes_written());
    append(appends);
    assert_eq!(disk.calls_in_all() - calls, 2 * appends, "nothing but writes and syncs");
    let bytes = disk.bytes_written() - bytes;
    let [writes, syncs] = [disk.calls(Call::Write) - writes, disk.calls(Call::Sync) - syncs];
    (disk, writes, syncs, bytes)
}

#[test]
fn an_append_is_one_write_and_one_sync_also_when_it_begins_a_segment() {
    for (appends, records) in [(5_000, 1), (1_000, 16), (100, 256), (10, 2_048)] {
        let (_, writes, syncs, _) = cost(appends, records);
        assert_eq!((writes, syncs), (appends, appends), "{records} records");
    }
}

#[test]
fn a_group_adds_little_to_its_records() {
    // Handed to the system, which writes whole pages in any case.
    for (records, each_max) in [(1, 2_305.0), (16, 420.0), (256, 265.0), (2_048, 256.0)] {
        let (_, writes, _, bytes) = cost(800, records);
        let each = bytes as f64 / (writes as usize * records) as f64;
        assert!(
            each <= each_max,
            "{each:.1} bytes a record in groups of {records}, and {each_max} is the bound"
        );
    }
}

#[test]
fn a_lone_record_of_250_bytes_takes_a_sector_of_the_journal() {
    let disk = SimulatedDisk::new(1);
    let (mut journal, _) = Journal::open(disk.clone(), OPTIONS, Sequence(0), |_, _| Ok(())).expect("opened");
    let mut frame = frame_of(&[vec![7; 250]]);
    let in_a_segment = ((1 << 20) - 4_096) / 512;
    for _ in 0..in_a_segment {
        journal.append(Class::New, &mut frame).expect("appended");
    }
    assert_eq!(journal.usage().used_segments, 1);
    journal.append(Class::New, &mut frame).expect("appended");
    assert_eq!(journal.usage().used_segments, 2);
}
