//! A spoiled byte never makes a wrong record, and never hides one behind which there are others.
//!
//! What cannot be told apart: damage to the very last frame, and a last write that was cut short. Both are cut.

use proptest::prelude::*;
use punctual_store::embedded::disk::{Disk, SimulatedDisk};
use punctual_store::embedded::journal::OpenError;

use crate::world::{Frames, World, open};

struct Sample {
    disk: SimulatedDisk,
    names: Vec<String>,
    frames: Frames,
    checkpoint: u64,
}

fn sample(frames: usize) -> Sample {
    let mut world = World::new(3);
    let mut journal = world.reopen().expect("opened");
    for step in 0..frames {
        world.append(&mut journal).expect("appended");
        if step % 6 == 5 {
            world.release(&mut journal, 4);
        }
    }
    drop(journal);
    let names = world.disk.list().expect("listed").into_iter().filter(|name| name != "lock").collect();
    let frames = world.acknowledged[world.checkpoint as usize..].to_vec();
    Sample { disk: world.disk, names, frames, checkpoint: world.checkpoint }
}

#[derive(Default, Debug)]
struct Tally {
    harmless: usize,
    cut: usize,
    refused: usize,
}

/// Opens the journal with one byte spoiled. Opening writes nothing here but the last frame, as it is.
fn check(sample: &Sample, name: &str, offset: usize, tally: &mut Tally) {
    sample.disk.flip(name, offset, 0x10);
    match open(&sample.disk, sample.checkpoint) {
        Ok((_, recovery, frames)) if frames.len() == sample.frames.len() => {
            assert_eq!(frames, sample.frames);
            assert_eq!(recovery.torn, None);
            tally.harmless += 1;
        }
        Ok((_, _, frames)) => {
            let (_, all_but_last) = sample.frames.split_last().expect("there are frames");
            assert_eq!(frames, all_but_last, "{name} at {offset}");
            tally.cut += 1;
        }
        Err(OpenError::Damaged { place, .. }) => {
            assert!(sample.names.contains(&place.file));
            tally.refused += 1;
        }
        Err(error) => panic!("{name} at {offset}: {error}"),
    }
    sample.disk.flip(name, offset, 0x10);
}

#[test]
fn a_spoiled_byte_is_harmless_or_refused_or_looks_like_a_torn_end() {
    for frames in [3, 20, 21, 22] {
        let sample = sample(frames);
        let mut tally = Tally::default();
        for name in &sample.names {
            let length = sample.disk.contents(name).expect("it is there").len();
            (0..length).for_each(|offset| check(&sample, name, offset, &mut tally));
        }
        let frame_bytes =
            |frame: &(u64, Vec<Vec<u8>>)| 40 + frame.1.iter().map(|record| 4 + record.len()).sum::<usize>();
        let last = sample.frames.last().map_or(0, frame_bytes);
        assert_eq!(tally.cut, last, "exactly the bytes of the last frame");
        // Each byte of the other frames that are asked for, and of the first pages.
        let others: usize = sample.frames.iter().map(frame_bytes).sum::<usize>() - last;
        assert!(tally.refused >= others + 40 * sample.names.len(), "{tally:?}");
    }
}

#[test]
fn a_frame_that_the_disk_lost_is_missed() {
    // The system said that it was synced, and the disk shows what was there before: zeros.
    let mut world = World::new(5);
    let mut journal = world.reopen().expect("opened");
    world.append(&mut journal).expect("appended");
    let names: Vec<String> = world.disk.list().expect("listed");
    let before: Vec<_> = names.iter().map(|name| world.disk.contents(name)).collect();
    world.append(&mut journal).expect("appended");
    let after: Vec<_> = names.iter().map(|name| world.disk.contents(name)).collect();
    world.append(&mut journal).expect("appended");
    drop(journal);
    for (name, (before, after)) in names.iter().zip(before.into_iter().zip(after)) {
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        for (offset, (old, new)) in before.iter().zip(&after).enumerate() {
            world.disk.flip(name, offset, old ^ new);
        }
    }
    let error = world.reopen().map(drop).expect_err("a frame is missing");
    assert!(error.to_string().contains("frame 1 is missing"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn damage_of_any_kind_never_makes_a_wrong_record(
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..16_384_usize, any::<[u8; 32]>()), 1..8),
    ) {
        let sample = sample(22);
        for (file, offset, masks) in damage {
            let name = file.get(&sample.names);
            (offset..).zip(masks).for_each(|(offset, mask)| sample.disk.flip(name, offset, mask));
        }
        match open(&sample.disk, sample.checkpoint) {
            Ok((_, _, frames)) => prop_assert!(sample.frames.starts_with(&frames)),
            Err(OpenError::Damaged { .. } | OpenError::Newer { .. }) => {}
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}
