//! Many requests of one record each, of which so many wait at the same time, through a writer's thread.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use punctual_store::embedded::disk::FolderDisk;
use punctual_store::embedded::frame::{Batch, Records, Sequence};
use punctual_store::embedded::journal::{Class, Journal};
use punctual_store::embedded::writer::{GroupLimits, Outcome, Request, spawn};

use super::RECORD_BYTES;
use super::logs::{self, Kind, Zeroed};
use super::report::{Latencies, Timed};
use crate::stopwatch::{Stopwatch, cpu_time};

type Done = SyncSender<Stopwatch>;

/// The same client for both: it keeps so many requests waiting, until all are answered.
fn drive(requests: usize, count: usize, submit: impl Fn(Vec<u8>, Stopwatch, Done)) -> Timed {
    let (done, answers) = sync_channel(requests);
    let mut each = Vec::with_capacity(count);
    let (whole, cpu) = (Stopwatch::start(), cpu_time());
    let submit_one = || submit(vec![7; RECORD_BYTES], Stopwatch::start(), done.clone());
    (0..requests.min(count)).for_each(|_| submit_one());
    for submitted in requests.min(count).. {
        each.push(answers.recv().expect("answered").elapsed());
        if submitted < count {
            submit_one();
        }
        if each.len() == count {
            break;
        }
    }
    Timed { each, whole: whole.elapsed(), cpu: cpu_time() - cpu }
}

/// A writer that is measured round by round, on the same files.
pub trait Writer {
    fn round(&mut self, requests: usize, count: usize) -> Latencies;
}

pub fn open(kind: Kind, path: &Path) -> Box<dyn Writer> {
    match kind {
        Kind::Journal => Box::new(Ours { journal: Some(logs::open(path)) }),
        Kind::Growing | Kind::Zeroed => Box::new(Bare { log: Some(Zeroed::open(path)) }),
    }
}

/// What is written is released now and then, so that segments are used again as they will be.
struct Ours {
    journal: Option<Journal<FolderDisk>>,
}

const RELEASE_EVERY: u64 = 8_192;

impl Writer for Ours {
    fn round(&mut self, requests: usize, count: usize) -> Latencies {
        let journal = self.journal.take().expect("it was handed back");
        let before = journal.usage().next.0;
        let last = Arc::new(AtomicU64::new(before));
        let applied = last.clone();
        let apply = move |sequence: Sequence, _: Records<'_>| applied.store(sequence.0, Ordering::Relaxed);
        let (submitter, writer) = spawn(journal, GroupLimits::default(), apply).expect("started");
        let submitted = Cell::new(0_u64);
        let timed = drive(requests, count, |record, since, done| {
            let waiting = move |outcome: Outcome| {
                outcome.expect("written");
                done.send(since).expect("somebody waits");
            };
            let request = Request { batch: Batch::of(&record), class: Class::New, waiting };
            assert!(submitter.submit(request).is_ok(), "the writer runs");
            submitted.set(submitted.get() + 1);
            if submitted.get().is_multiple_of(RELEASE_EVERY) {
                submitter.release_before(Sequence(last.load(Ordering::Relaxed)));
            }
        });
        let journal = writer.stop();
        let writes = journal.usage().next.0 - before;
        self.journal = Some(journal);
        Latencies::new(timed, count, writes as usize)
    }
}

/// The same channel, the same limits, and a bare file behind them.
struct Bare {
    log: Option<Zeroed>,
}

impl Writer for Bare {
    fn round(&mut self, requests: usize, count: usize) -> Latencies {
        let log = self.log.take().expect("it was handed back");
        let limits = GroupLimits::default();
        let (sender, inbox) = sync_channel(limits.waiting_max);
        let thread = std::thread::spawn(move || write_all(log, limits, &inbox));
        let timed = drive(requests, count, |record, since, done| {
            sender.send((record, since, done)).expect("the writer runs");
        });
        drop(sender);
        let (log, writes) = thread.join().expect("it ended");
        self.log = Some(log);
        Latencies::new(timed, count, writes)
    }
}

fn write_all(
    mut log: Zeroed,
    limits: GroupLimits,
    inbox: &Receiver<(Vec<u8>, Stopwatch, Done)>,
) -> (Zeroed, usize) {
    let (mut group, mut writes) = (Vec::new(), 0);
    while let Ok(first) = inbox.recv() {
        let mut next = Some(first);
        while let Some((record, since, done)) = next {
            log.push(&record);
            group.push((since, done));
            let is_full =
                group.len() >= limits.records_max as usize || log.gathered_bytes() >= limits.bytes_max;
            next = if is_full { None } else { inbox.try_recv().ok() };
        }
        log.write();
        writes += 1;
        group.drain(..).for_each(|(since, done)| done.send(since).expect("somebody waits"));
    }
    (log, writes)
}
