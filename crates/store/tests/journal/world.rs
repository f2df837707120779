//! A journal on a simulated disk, and what is known to be in it.

use punctual_store::embedded::disk::SimulatedDisk;
use punctual_store::embedded::frame::{Batch, FrameBuffer, Identity, Sequence};
use punctual_store::embedded::journal::{AppendError, Class, Journal, OpenError, Options, Recovery};

/// Three pages of frames in each segment, so that scripts of a few frames fill several.
pub const OPTIONS: Options = Options {
    segment_bytes: 4 * 4096,
    reserved_segments: 2,
    spare_segments_max: 2,
    keep_free_bytes: 0,
    identity: Identity(0x0000_c0ff_ee00),
};

pub type Frames = Vec<(u64, Vec<Vec<u8>>)>;

/// Opens the journal, and hands out every frame that was replayed.
pub fn open(
    disk: &SimulatedDisk,
    from: u64,
) -> Result<(Journal<SimulatedDisk>, Recovery, Frames), OpenError> {
    let mut frames = Vec::new();
    let (journal, recovery) = Journal::open(disk.clone(), OPTIONS, Sequence(from), |sequence, records| {
        frames.push((sequence.0, records.map(<[u8]>::to_vec).collect()));
        Ok(())
    })?;
    Ok((journal, recovery, frames))
}

pub fn frame_of(records: &[Vec<u8>]) -> FrameBuffer {
    let mut batch = Batch::default();
    records.iter().for_each(|record| batch.push(record));
    let mut frame = FrameBuffer::default();
    frame.push(&batch);
    frame
}

pub fn append(
    journal: &mut Journal<SimulatedDisk>,
    class: Class,
    records: &[Vec<u8>],
) -> Result<u64, AppendError> {
    journal.append(class, &mut frame_of(records)).map(|sequence| sequence.0)
}

/// Records that no other number and salt make, of lengths between nothing and two pages.
pub fn records(number: u64, salt: u64) -> Vec<Vec<u8>> {
    let mixed = (number * 31 + salt * 17).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let count = 1 + mixed % 4;
    let record = |index: u64| {
        let length = match (mixed >> (8 * index)) % 8 {
            0 => 0,
            7 => 2_000,
            some => some * 70,
        };
        let mut record = format!("{number}/{salt}/{index} ").into_bytes();
        record.resize(record.len() + length as usize, (number * 7 + index + salt) as u8);
        record
    };
    (0..count).map(record).collect()
}

/// A journal whose frames are known, driven until its disk fails.
pub struct World {
    pub disk: SimulatedDisk,
    /// Every frame that was acknowledged.
    pub acknowledged: Frames,
    /// The frame that was being written when the disk failed.
    pub in_doubt: Option<(u64, Vec<Vec<u8>>)>,
    /// What is safe elsewhere.
    pub checkpoint: u64,
    pub salt: u64,
}

impl World {
    pub fn new(seed: u64) -> World {
        World {
            disk: SimulatedDisk::new(seed),
            acknowledged: Vec::new(),
            in_doubt: None,
            checkpoint: 0,
            salt: seed,
        }
    }

    pub fn append(&mut self, journal: &mut Journal<SimulatedDisk>) -> Result<(), AppendError> {
        let number = self.acknowledged.len() as u64;
        let records = records(number, self.salt);
        match append(journal, Class::New, &records) {
            Ok(sequence) => {
                assert_eq!(sequence, number);
                self.acknowledged.push((sequence, records));
                Ok(())
            }
            Err(error) => {
                if matches!(error, AppendError::Failed(_)) {
                    self.in_doubt = Some((number, records));
                }
                Err(error)
            }
        }
    }

    /// Everything before the last few frames is safe elsewhere.
    pub fn release(&mut self, journal: &mut Journal<SimulatedDisk>, keep: u64) -> usize {
        self.checkpoint = (self.acknowledged.len() as u64).saturating_sub(keep);
        journal.release_before(Sequence(self.checkpoint))
    }

    /// Opens the journal again and checks it: what was acknowledged is there, what was in doubt is there wholly or
    /// not at all, and there is nothing else.
    pub fn reopen(&mut self) -> Result<Journal<SimulatedDisk>, OpenError> {
        let (journal, recovery, frames) = open(&self.disk, self.checkpoint)?;
        let in_doubt = self.in_doubt.take();
        if frames.len() as u64 + self.checkpoint > self.acknowledged.len() as u64 {
            self.acknowledged.extend(in_doubt);
        }
        assert_eq!(frames, self.acknowledged[self.checkpoint as usize..]);
        assert_eq!(recovery.next.0, self.acknowledged.len() as u64);
        // The frame that is tried next is another one than the one that was cut.
        self.salt += 1;
        Ok(journal)
    }
}
