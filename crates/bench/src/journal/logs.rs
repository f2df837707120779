//! The logs that are measured: two bare files, and the journal.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use punctual_store::embedded::disk::FolderDisk;
use punctual_store::embedded::frame::{Batch, FrameBuffer, Sequence};
use punctual_store::embedded::journal::{Class, Journal, Options};

use super::RECORD_BYTES;
use crate::stopwatch::Stopwatch;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Growing,
    Zeroed,
    Journal,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Growing, Kind::Zeroed, Kind::Journal];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Growing => "bare file that grows",
            Kind::Zeroed => "bare file, zeroed before",
            Kind::Journal => "punctual's journal",
        }
    }

    pub fn open(self, path: &Path) -> Box<dyn Log> {
        match self {
            Kind::Growing => Box::new(Growing { file: made(path), buffer: Vec::new() }),
            Kind::Zeroed => Box::new(Zeroed::open(path)),
            Kind::Journal => Box::new(Ours::open(path)),
        }
    }
}

pub trait Log {
    /// Returns when the records are durable.
    fn append(&mut self, records: &[&[u8]]);
}

fn made(path: &Path) -> File {
    OpenOptions::new().write(true).create(true).truncate(true).open(path).expect("made")
}

struct Growing {
    file: File,
    buffer: Vec<u8>,
}

impl Log for Growing {
    fn append(&mut self, records: &[&[u8]]) {
        self.buffer.clear();
        records.iter().for_each(|record| self.buffer.extend_from_slice(record));
        self.file.write_all(&self.buffer).expect("written");
        self.file.sync_data().expect("synced");
    }
}

/// Goes round and round in a file as large as a segment.
pub struct Zeroed {
    file: File,
    offset: u64,
    buffer: Vec<u8>,
}

const ZEROED_BYTES: u64 = 64 << 20;

impl Zeroed {
    pub fn open(path: &Path) -> Zeroed {
        let mut file = made(path);
        for _ in 0..ZEROED_BYTES >> 20 {
            file.write_all(&[0; 1 << 20]).expect("zeroed");
        }
        file.sync_all().expect("synced");
        Zeroed { file, offset: 0, buffer: Vec::new() }
    }

    pub fn push(&mut self, record: &[u8]) {
        self.buffer.extend_from_slice(record);
    }

    pub fn write(&mut self) {
        if self.offset + self.buffer.len() as u64 > ZEROED_BYTES {
            self.offset = 0;
        }
        self.file.write_all_at(&self.buffer, self.offset).expect("written");
        self.file.sync_data().expect("synced");
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
    }
}

impl Log for Zeroed {
    fn append(&mut self, records: &[&[u8]]) {
        records.iter().for_each(|record| self.push(record));
        self.write();
    }
}

/// What is written is released at once, so that segments are used again as they will be.
struct Ours {
    journal: Journal<FolderDisk>,
    batch: Batch,
    frame: FrameBuffer,
}

impl Ours {
    fn open(path: &Path) -> Ours {
        Ours { journal: open(path), batch: Batch::default(), frame: FrameBuffer::default() }
    }
}

/// The journal of a folder, as the store will open it.
pub fn open(path: &Path) -> Journal<FolderDisk> {
    let disk = FolderDisk::open(path).expect("made");
    let (mut journal, _) =
        Journal::open(disk, Options::default(), Sequence(0), |_, _| Ok(())).expect("opened");
    journal.prepare_in_background().expect("started");
    journal
}

impl Log for Ours {
    fn append(&mut self, records: &[&[u8]]) {
        self.batch.clear();
        self.frame.clear();
        records.iter().for_each(|record| self.batch.push(record));
        self.frame.push(&self.batch);
        let sequence = self.journal.append(Class::New, &mut self.frame).expect("appended");
        self.journal.release_before(sequence);
    }
}

/// How long it takes to begin a journal, and to open one again with four full segments.
pub fn measure_opening(folder: &Path) -> String {
    let path = folder.join("opening");
    let watch = Stopwatch::start();
    let mut journal = open(&path);
    let begun = watch.elapsed();
    let mut frame = FrameBuffer::default();
    for _ in 0..2_048 {
        frame.push(&Batch::of(&[7; RECORD_BYTES]));
    }
    while journal.usage().used_segments <= 4 {
        journal.append(Class::New, &mut frame).expect("appended");
    }
    drop(journal);
    let watch = Stopwatch::start();
    let disk = FolderDisk::open(&path).expect("there");
    let mut bytes = 0;
    let opened = Journal::open(disk, Options::default(), Sequence(0), |_, records| {
        bytes += records.map(<[u8]>::len).sum::<usize>();
        Ok(())
    });
    let (_, recovery) = opened.expect("opened");
    format!(
        "A journal is begun in {begun:.0?}, and opened in {:.0?} with {} records ({} MB), from the page cache.",
        watch.elapsed(),
        recovery.records,
        bytes / 1_000_000
    )
}
