//! Whatever is appended, released and opened again, in whatever order, comes back as it was.

use proptest::prelude::*;
use punctual_store::embedded::disk::SimulatedDisk;
use punctual_store::embedded::frame::Sequence;
use punctual_store::embedded::journal::Class;

use crate::world::{Frames, append, open};

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<Vec<u8>>),
    /// All but so many frames.
    Release(u64),
    Reopen,
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let record = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..40),
        2 => prop::collection::vec(any::<u8>(), 200..700),
        1 => any::<u8>().prop_map(|byte| vec![byte; 2_900]),
    ];
    prop_oneof![
        8 => prop::collection::vec(record, 0..4).prop_map(Step::Append),
        2 => (0..12_u64).prop_map(Step::Release),
        1 => Just(Step::Reopen),
        1 => Just(Step::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn what_was_appended_comes_back(steps in prop::collection::vec(step(), 1..80), seed: u64) {
        let disk = SimulatedDisk::new(seed);
        let (mut journal, ..) = open(&disk, 0).expect("opened");
        let mut frames: Frames = Vec::new();
        let mut checkpoint = 0;
        for step in steps {
            match step {
                Step::Append(records) => {
                    let sequence = append(&mut journal, Class::New, &records).expect("appended");
                    frames.push((sequence, records));
                }
                Step::Release(keep) => {
                    checkpoint = checkpoint.max((frames.len() as u64).saturating_sub(keep));
                    journal.release_before(Sequence(checkpoint));
                }
                Step::Reopen | Step::Crash => {
                    drop(journal);
                    if matches!(step, Step::Crash) {
                        disk.crash();
                    }
                    let (again, _, found) = open(&disk, checkpoint).expect("opened");
                    prop_assert_eq!(&found[..], &frames[checkpoint as usize..]);
                    journal = again;
                }
            }
        }
    }
}
