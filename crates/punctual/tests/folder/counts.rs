//! What the folder costs, in counts: the same on every machine. Times are in `docs/performance.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use punctual::{Change, EmbeddedStore, Job, NewTask, Note, Scheduler};
use tokio::sync::Notify;

const TASKS: usize = 20_000;
const PER_CALL: usize = 1_000;
const PAYLOAD: usize = 200;

/// A task with a payload of 200 bytes is written once with it, and its start and its end by what differs.
const JOURNAL_BYTES_MAX: f64 = 480.0;
/// What it reads once, however many tasks there are: a row for each hour of history that was not there before, and
/// what a queue's window holds when it is opened.
const READS_MAX: u64 = 500;

#[tokio::test(flavor = "multi_thread")]
async fn a_life_within_the_window_costs_the_journal_and_no_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = EmbeddedStore::open(folder.path()).await.expect("it opens");
    let (ended, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let records = Arc::new(AtomicUsize::new(0));
    let observer = {
        let (ended, all, records) = (ended.clone(), all.clone(), records.clone());
        move |note: Note<'_>| {
            let Note::Recorded(_, changes) = note else { return };
            records.fetch_add(1, Ordering::Relaxed);
            let ends = changes.iter().filter(|change| matches!(change, Change::Ended { .. })).count();
            if ended.fetch_add(ends, Ordering::Relaxed) + ends >= TASKS {
                all.notify_one();
            }
        }
    };
    let builder =
        Scheduler::builder().handler("nothing", |_: Job<String>| async { Ok(()) }).observer(observer);
    let scheduler = builder.start(store.clone()).await.expect("it starts");
    let (before, reads) = (store.journal_written(), store.cold_reads());
    let payload = format!("\"{}\"", "x".repeat(PAYLOAD - 2));
    for _ in 0..TASKS / PER_CALL {
        let tasks = (0..PER_CALL).map(|_| NewTask::new("nothing").payload_bytes(payload.clone())).collect();
        for task in scheduler.schedule_many(tasks).await {
            task.expect("accepted");
        }
    }
    all.notified().await;
    let after = store.journal_written();
    let bytes = (after.bytes - before.bytes) as f64 / TASKS as f64;
    let frames = after.frames - before.frames;
    let reads = store.cold_reads() - reads;
    println!("journal bytes a life cycle: {bytes:.0}, at most {JOURNAL_BYTES_MAX}");
    println!("frames, each with one sync: {frames} for {TASKS} life cycles");
    println!("reads of the tables: {reads}, at most {READS_MAX}");
    assert!(bytes <= JOURNAL_BYTES_MAX, "{bytes:.0} bytes");
    assert!(reads <= READS_MAX, "{reads} reads");
    // A frame holds what all partitions record at once, so there are fewer frames than records of partitions.
    assert!(frames as usize <= records.load(Ordering::Relaxed), "{frames} frames");
    scheduler.stop(Duration::from_secs(5)).await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_one_frame_and_one_sync() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = EmbeddedStore::open(folder.path()).await.expect("it opens");
    let scheduler = Scheduler::builder().start(store.clone()).await.expect("it starts");
    let later = || NewTask::new("nothing").after(Duration::from_secs(86_400));
    scheduler.schedule(later()).await.expect("accepted");
    let before = store.journal_written().frames;
    for _ in 0..100 {
        scheduler.schedule(later()).await.expect("accepted");
    }
    let frames = store.journal_written().frames - before;
    assert!(frames <= 110, "{frames} frames for 100 calls, one after the other");
    scheduler.stop(Duration::from_secs(5)).await.expect("it stops");
}
