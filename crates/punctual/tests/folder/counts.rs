//! What the folder costs, in counts: the same on every machine. Times are in `docs/performance.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use punctual::clock::{Clock, VirtualClock};
use punctual::{
    Change, EmbeddedStore, FolderOptions, Job, NewTask, Note, Observer, Report, Scheduler, Timestamp,
};
use punctual_store::embedded::Bounds;
use tokio::sync::Notify;
use tokio::task::JoinSet;

const TASKS: usize = 20_000;
const PER_CALL: usize = 1_000;
const PAYLOAD: usize = 200;

/// A task with a payload of 200 bytes is written once with it, and its start and its end by what differs.
const JOURNAL_BYTES_MAX: f64 = 480.0;
/// What it reads once, however many tasks there are: a row for each hour of history that was not there before, and
/// what a queue's window holds when it is opened.
const READS_MAX: u64 = 500;
/// Of tasks that waited until their rows lay in the tables, whole pages are read, and no row for itself.
const READS_FROM_TABLES_MAX: f64 = 0.1;

/// Counts records, and says when all tasks have ended.
#[derive(Default)]
struct Seen {
    records: AtomicUsize,
    ended: AtomicUsize,
    all: Notify,
}

impl Observer for Seen {
    fn observe(&self, note: Note<'_>) {
        let Note::Recorded(_, changes) = note else { return };
        self.records.fetch_add(1, Ordering::Relaxed);
        let ends = changes.iter().filter(|change| matches!(change, Change::Ended { .. })).count();
        if self.ended.fetch_add(ends, Ordering::Relaxed) + ends >= TASKS {
            self.all.notify_one();
        }
    }
}

async fn start(store: &EmbeddedStore, seen: &Arc<Seen>) -> Scheduler<EmbeddedStore> {
    let builder = Scheduler::builder().handler("nothing", |_: Job<String>| async { Ok(()) });
    let seen = seen.clone();
    builder.observer(move |note: Note<'_>| seen.observe(note)).start(store.clone()).await.expect("it starts")
}

async fn schedule_all(scheduler: &Scheduler<EmbeddedStore>) {
    let payload = format!("\"{}\"", "x".repeat(PAYLOAD - 2));
    for _ in 0..TASKS / PER_CALL {
        let tasks = (0..PER_CALL).map(|_| NewTask::new("nothing").payload_bytes(payload.clone())).collect();
        for task in scheduler.schedule_many(tasks).await {
            task.expect("accepted");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_within_the_window_costs_the_journal_and_no_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = EmbeddedStore::open(folder.path()).await.expect("it opens");
    let seen = Arc::new(Seen::default());
    let scheduler = start(&store, &seen).await;
    let (before, reads) = (store.journal_written(), store.cold_reads());
    schedule_all(&scheduler).await;
    seen.all.notified().await;
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
    assert!(frames as usize <= seen.records.load(Ordering::Relaxed), "{frames} frames");
    scheduler.stop(Duration::from_secs(5)).await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_waited_for_long_are_read_by_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    // Small layers, so that nearly all rows have gone down before the folder is opened as usual.
    let bounds = Bounds { layer_bytes: 256 << 10, journal_bytes: 1 << 20 };
    let options = FolderOptions { bounds, ..FolderOptions::default() };
    let store = EmbeddedStore::open_with(folder.path(), options).await.expect("it opens");
    let scheduler = start(&store, &Arc::default()).await;
    scheduler.pause("default").await.expect("paused");
    schedule_all(&scheduler).await;
    scheduler.stop(Duration::from_secs(5)).await.expect("it stops");
    assert!(store.checkpoints() >= 3, "layers have gone down");
    drop((scheduler, store));

    let store = EmbeddedStore::open(folder.path()).await.expect("it opens");
    let seen = Arc::new(Seen::default());
    let scheduler = start(&store, &seen).await;
    let reads = store.cold_reads();
    scheduler.resume("default").await.expect("resumed");
    seen.all.notified().await;
    let reads = (store.cold_reads() - reads) as f64 / TASKS as f64;
    println!("reads of the tables for a task that lay there: {reads:.3}, at most {READS_FROM_TABLES_MAX}");
    assert!(reads <= READS_FROM_TABLES_MAX, "{reads} reads");
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

/// Of fifty callers some are answered, and ask again a moment later: what they ask is recorded with what the others do.
#[tokio::test(flavor = "multi_thread")]
async fn callers_who_ask_at_once_share_frames() {
    const CALLERS: usize = 50;
    const EACH: usize = 40;
    const FRAMES_MAX: u64 = 400;
    let folder = tempfile::tempdir().expect("a folder");
    let store = EmbeddedStore::open(folder.path()).await.expect("it opens");
    let scheduler = Scheduler::builder().start(store.clone()).await.expect("it starts");
    let later = || NewTask::new("nothing").after(Duration::from_secs(86_400));
    scheduler.schedule(later()).await.expect("accepted");
    let before = store.journal_written().frames;
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let scheduler = scheduler.clone();
        callers.spawn(async move {
            for _ in 0..EACH {
                scheduler.schedule(later()).await.expect("accepted");
            }
        });
    }
    callers.join_all().await;
    let frames = store.journal_written().frames - before;
    println!("frames: {frames} for {} calls of {CALLERS} callers, at most {FRAMES_MAX}", CALLERS * EACH);
    assert!(frames <= FRAMES_MAX, "{frames} frames");
    scheduler.stop(Duration::from_secs(5)).await.expect("it stops");
}

/// What a worker holds for a moment is written down when it is there and when it is done, and not in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_a_worker_soon_acknowledges_is_one_frame_more() {
    const TASKS: u64 = 100;
    let folder = tempfile::tempdir().expect("a folder");
    let store = EmbeddedStore::open(folder.path()).await.expect("it opens");
    // Whether it is a moment is not to depend on how busy this machine is.
    let clock = VirtualClock::at(Timestamp::from_secs(1_800_000_000));
    let builder = Scheduler::builder().clock(Clock::of_tests(clock.clone()));
    let scheduler = builder.start(store.clone()).await.expect("it starts");
    // What was due when the store was opened may have brought an earlier owner down, and is written down first.
    clock.advance_to(clock.wall() + Duration::from_secs(1));
    scheduler.schedule(NewTask::for_worker()).await.expect("accepted");
    let before = store.journal_written().frames;
    for _ in 0..TASKS {
        let held =
            scheduler.reserve("default", 1, Duration::from_secs(5), None).await.expect("reserved").remove(0);
        scheduler.report(held.token, Report::Done("1".into())).await.expect("it is held");
        scheduler.schedule(NewTask::for_worker()).await.expect("accepted");
    }
    let frames = store.journal_written().frames - before;
    println!("frames: {frames} for {TASKS} tasks that were made, reserved and acknowledged one by one");
    assert!(frames <= 2 * TASKS + 10, "{frames} frames");
    scheduler.stop(Duration::from_secs(5)).await.expect("it stops");
}
