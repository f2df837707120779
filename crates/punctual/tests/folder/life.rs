//! What was scheduled, held, ended and set up is there when the folder is opened again.

use std::time::Duration;

use punctual::{EmbeddedStore, EndState, Error, Job, NewTask, Scheduler, TaskState};

fn later() -> NewTask {
    NewTask::new("echo").after(Duration::from_secs(3_600))
}

async fn open(path: &std::path::Path) -> Result<Scheduler<EmbeddedStore>, Error> {
    let echo = |job: Job<String>| async move { Ok(job.payload) };
    Scheduler::builder().handler("echo", echo).start(EmbeddedStore::open(path).await?).await
}

async fn close(scheduler: Scheduler<EmbeddedStore>) {
    scheduler.stop(Duration::from_secs(5)).await.expect("it stops once");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_there_when_the_folder_is_opened_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let scheduler = open(folder.path()).await.expect("it opens");
    let done = NewTask::new("echo").payload(&"done").expect("text");
    let done = scheduler.schedule(done).await.expect("scheduled").id();
    assert_eq!(scheduler.result(done).await.expect("it ends").read::<String>().expect("text"), "done");
    let at = scheduler.now() + Duration::from_secs(3_600);
    let keyed = || later().at(at).lane("a").unique_key("k");
    let waits = scheduler.schedule(keyed()).await.expect("scheduled").id();
    let moved = scheduler.schedule(later()).await.expect("scheduled").id();
    scheduler.move_to(moved, scheduler.now() + Duration::from_secs(7_200)).await.expect("moved");
    let gone = scheduler.schedule(later()).await.expect("scheduled").id();
    scheduler.cancel(gone).await.expect("cancelled");
    scheduler.pause("slow").await.expect("paused");
    let held = NewTask::new("echo").payload(&"held").expect("text").queue("slow");
    let held = scheduler.schedule(held).await.expect("scheduled").id();
    close(scheduler).await;

    let scheduler = open(folder.path()).await.expect("it opens again");
    assert_eq!(scheduler.result(done).await.expect("kept").read::<String>().expect("text"), "done");
    let state = async |id| scheduler.find(id).await.expect("read").expect("there").state();
    assert_eq!(state(waits).await, TaskState::Scheduled);
    assert_eq!(state(moved).await, TaskState::Scheduled);
    assert_eq!(state(gone).await, TaskState::from(EndState::Cancelled));
    let same = scheduler.schedule(keyed()).await.expect("scheduled").id();
    assert_eq!(same, waits, "the key is still taken");
    scheduler.resume("slow").await.expect("resumed");
    assert_eq!(scheduler.result(held).await.expect("it ends").read::<String>().expect("text"), "held");
    let ran = scheduler.run_now(moved).await;
    assert!(ran.is_ok(), "{ran:?}");
    close(scheduler).await;
    let verified = punctual::verify(folder.path(), |_| {}).await.expect("verified");
    assert_eq!(verified.rows.described, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_in_use_is_refused_with_a_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let scheduler = open(folder.path()).await.expect("it opens");
    let error = open(folder.path()).await.err().expect("it is in use");
    assert_eq!(error.code(), "folder_in_use");
    close(scheduler).await;
}

/// Far more than a frame of the journal holds, all of it in one partition.
#[tokio::test(flavor = "multi_thread")]
async fn a_lane_takes_a_hundred_megabytes_in_one_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let scheduler = open(folder.path()).await.expect("it opens");
    let payload = format!("\"{}\"", "x".repeat(250 << 10));
    let task = || later().lane("large").payload_bytes(payload.clone());
    let scheduled = scheduler.schedule_many((0..400).map(|_| task()).collect()).await;
    let last = scheduled.into_iter().map(|task| task.expect("accepted").id()).next_back().expect("many");
    close(scheduler).await;
    let scheduler = open(folder.path()).await.expect("it opens again");
    let found = scheduler.find(last).await.expect("read").expect("there");
    assert_eq!(found.state(), TaskState::Scheduled);
    close(scheduler).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spoiled_tables_are_refused_at_the_start_and_not_waited_for() {
    let place = tempfile::tempdir().expect("a folder");
    let (data, copy) = (place.path().join("data"), place.path().join("copy"));
    let scheduler = open(&data).await.expect("it opens");
    let tasks = (0..2_000).map(|number| later().payload(&format!("{number:0100}")).expect("text"));
    assert!(scheduler.schedule_many(tasks.collect()).await.iter().all(Result::is_ok));
    // A copy has everything in its tables.
    scheduler.store().backup(&copy, |_| {}).await.expect("copied");
    close(scheduler).await;
    let tables = std::fs::read_dir(copy.join("tables/keyspaces/1/tables")).expect("read");
    let table = tables.map(|table| table.expect("read").path()).next().expect("there is one");
    let whole = std::fs::read(&table).expect("read");
    let mut refused = 0;
    for eighth in 0..8 {
        let mut spoiled = whole.clone();
        spoiled[whole.len() / 8 * eighth + whole.len() / 16] ^= 1;
        std::fs::write(&table, &spoiled).expect("written");
        match open(&copy).await {
            Ok(scheduler) => close(scheduler).await,
            Err(error) => {
                assert_eq!(error.code(), "store_failed", "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "whatever was spoiled, nobody has read it");
}
