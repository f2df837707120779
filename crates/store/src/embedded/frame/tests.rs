//! Frames come back as they were written, and nothing else is taken for one.

use proptest::prelude::*;

use super::*;

const IDENTITY: Identity = Identity(0x0005_eed0_fa11);

fn batch(records: &[Vec<u8>]) -> Batch {
    let mut batch = Batch::default();
    records.iter().for_each(|record| batch.push(record));
    batch
}

fn sealed(records: &[Vec<u8>], stamp: u64, sequence: u64) -> Vec<u8> {
    let mut frame = FrameBuffer::default();
    frame.push(&batch(records));
    frame.seal(IDENTITY, Stamp(stamp), Sequence(sequence), 0).to_vec()
}

fn read(bytes: &[u8], identity: Identity) -> Option<(Header, Vec<Vec<u8>>)> {
    let header = Header::read(bytes, identity)?;
    let records = header.body(bytes, identity)?.records()?;
    Some((header, records.map(<[u8]>::to_vec).collect()))
}

fn some_records() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..40)
}

proptest! {
    #[test]
    fn a_frame_comes_back_as_it_was_written(records in some_records(), stamp: u64, sequence: u64) {
        let bytes = sealed(&records, stamp, sequence);
        let (header, found) = read(&bytes, IDENTITY).expect("whole");
        prop_assert_eq!((header.stamp, header.sequence), (Stamp(stamp), Sequence(sequence)));
        prop_assert_eq!(found, records);
        prop_assert_eq!(bytes.len() % PAGE, 0);
        prop_assert!(bytes[header.frame_bytes..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_buffer_that_is_used_again_holds_nothing_old(first in some_records(), second in some_records()) {
        let mut frame = FrameBuffer::default();
        frame.push(&batch(&first));
        frame.seal(IDENTITY, Stamp(1), Sequence(1), 512);
        frame.clear();
        frame.push(&batch(&second));
        prop_assert_eq!(frame.seal(IDENTITY, Stamp(1), Sequence(2), 0), sealed(&second, 1, 2));
        prop_assert_eq!(frame.records().map(<[u8]>::to_vec).collect::<Vec<_>>(), second);
    }

    #[test]
    fn a_frame_that_was_cut_is_no_frame(records in some_records(), cut: prop::sample::Index) {
        let bytes = sealed(&records, 1, 1);
        let end = Header::read(&bytes, IDENTITY).expect("a header").frame_bytes;
        prop_assert!(read(&bytes[..cut.index(end)], IDENTITY).is_none());
    }

    #[test]
    fn a_frame_with_a_spoiled_byte_is_no_frame(
        records in some_records(), at: prop::sample::Index, mask in 1..=u8::MAX,
    ) {
        let mut bytes = sealed(&records, 1, 1);
        let end = Header::read(&bytes, IDENTITY).expect("a header").frame_bytes;
        bytes[at.index(end)] ^= mask;
        prop_assert!(read(&bytes, IDENTITY).is_none());
    }

    #[test]
    fn random_bytes_are_no_frame(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        prop_assert!(read(&bytes, IDENTITY).is_none());
    }

    #[test]
    fn random_bytes_behind_a_right_checksum_do_no_harm(
        body in prop::collection::vec(any::<u8>(), 0..600), records in 0..50_u32,
    ) {
        let whole = Body { bytes: &body, records };
        if let Some(found) = whole.records() {
            prop_assert_eq!(found.len(), records as usize);
            prop_assert_eq!(found.map(|record| record.len() + 4).sum::<usize>(), body.len());
        }
    }
}

#[test]
fn a_frame_of_another_journal_is_no_frame() {
    let bytes = sealed(&[b"ours".to_vec()], 1, 1);
    assert!(read(&bytes, IDENTITY).is_some());
    assert!(read(&bytes, Identity(IDENTITY.0 + 1)).is_none());
}

#[test]
fn writes_end_with_a_page_and_frames_take_whole_sectors() {
    assert_eq!(written_bytes(0, 1), 4_096);
    assert_eq!(written_bytes(4_096 + 512, 1), 3_584);
    assert_eq!(written_bytes(512, 3_584), 3_584);
    assert_eq!(written_bytes(512, 3_585), 3_584 + 4_096);
    assert_eq!([1, 512, 513].map(taken_bytes), [512, 512, 1_024]);
}

#[test]
fn a_record_of_250_bytes_costs_four_more_in_a_group() {
    let mut frame = FrameBuffer::default();
    frame.push(&batch(&vec![vec![7; 250]; 2_048]));
    assert_eq!(frame.frame_bytes(), 40 + 2_048 * 254);
}

#[test]
fn the_format_is_what_it_was() {
    // These bytes lie on disks. If they must change, the version in the segment's first page must too.
    let bytes = sealed(&[b"one".to_vec(), Vec::new()], 3, 5);
    let expected: [u8; 51] = [
        80, 70, 114, 49, 193, 241, 181, 59, 176, 103, 63, 241, 110, 34, 148, 253, 3, 0, 0, 0, 0, 0, 0, 0, 5,
        0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 111, 110, 101, 0, 0, 0, 0,
    ];
    assert_eq!(bytes[..51], expected);
}
