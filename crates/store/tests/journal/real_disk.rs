//! The journal in a real folder: with its threads, and with a process that is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use punctual_store::embedded::disk::FolderDisk;
use punctual_store::embedded::frame::{Batch, FrameBuffer, Identity, Sequence};
use punctual_store::embedded::journal::{Class, Journal, Options};

const OPTIONS: Options = Options {
    segment_bytes: 128 << 10,
    reserved_segments: 2,
    spare_segments_max: 2,
    keep_free_bytes: 0,
    identity: Identity(42),
};
/// Set for the process that is to be killed.
const FOLDER: &str = "PUNCTUAL_TEST_JOURNAL";

/// A folder of one test alone, removed at its end.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Place {
        let place =
            Place(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id())));
        let _ = std::fs::remove_dir_all(&place.0);
        place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Each frame holds its number, over and over.
fn frame(number: u64) -> FrameBuffer {
    let mut frame = FrameBuffer::default();
    for _ in 0..1 + number % 5 {
        frame.push(&Batch::of(&number.to_le_bytes().repeat(1 + (number % 700) as usize)));
    }
    frame
}

/// Opens the journal, and checks that it holds one frame after the other from here on, each as it was made.
fn open(path: &Path, from: u64) -> (Journal<FolderDisk>, u64) {
    let disk = FolderDisk::open(path).expect("made");
    let (mut journal, recovery) = Journal::open(disk, OPTIONS, Sequence(from), |sequence, records| {
        assert!(records.eq(frame(sequence.0).records()), "frame {}", sequence.0);
        Ok(())
    })
    .expect("opened");
    journal.prepare_in_background().expect("started");
    (journal, recovery.next.0)
}

#[test]
fn segments_are_made_in_the_background_and_used_again() {
    let place = Place::new("background");
    let (mut journal, _) = open(&place.0, 0);
    for number in 0..1_500 {
        journal.append(Class::New, &mut frame(number)).expect("appended");
        journal.release_before(Sequence(number.saturating_sub(20)));
    }
    drop(journal);
    let files = std::fs::read_dir(&place.0).expect("listed").count();
    assert!(files <= 10, "{files} files");
    let (_, next) = open(&place.0, 1_480);
    assert_eq!(next, 1_500);
}

/// What the killed process does. In an ordinary run of the tests it has no folder, and does nothing.
#[test]
fn a_process_that_appends_until_it_is_killed() {
    let Some(path) = std::env::var_os(FOLDER) else { return };
    let (mut journal, next) = open(Path::new(&path), 0);
    for number in next.. {
        journal.append(Class::New, &mut frame(number)).expect("appended");
        writeln!(std::io::stdout(), "\nacknowledged {number}").expect("somebody listens");
    }
}

fn start(path: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "real_disk::a_process_that_appends_until_it_is_killed", "--nocapture"])
        .env(FOLDER, path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("started")
}

/// Kills it after so many frames, and says which was the last that it acknowledged.
fn kill_after(mut process: Child, frames: usize) -> u64 {
    let output = BufReader::new(process.stdout.take().expect("piped"));
    let mut acknowledged = output
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok());
    let at_the_kill: Option<u64> = acknowledged.nth(frames);
    process.kill().expect("killed");
    let last = acknowledged.last().or(at_the_kill).expect("it wrote something");
    process.wait().expect("gone");
    last
}

#[test]
fn what_a_killed_process_acknowledged_is_there() {
    let place = Place::new("killed");
    let mut before = 0;
    for round in 1..=4 {
        let last = kill_after(start(&place.0), 60 * round);
        let (_, next) = open(&place.0, 0);
        assert!(next > last && next <= last + 2, "{last} was acknowledged, and {next} is next");
        assert!(next > before, "it went on where it was");
        before = next;
    }
}
