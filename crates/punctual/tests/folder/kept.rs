//! A data folder of each format that ever was, kept for ever: each later version must open it.
//!
//! To keep one of a new format: `PUNCTUAL_KEEP=folder cargo test -p punctual --test folder kept`, then
//! `tar -C folder -Sczf crates/punctual/tests/folder/format-N.tar.gz .`

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use punctual::{EmbeddedStore, FolderOptions, Job, NewTask, Scheduler, Store, TaskId, Timestamp};
use punctual_core::{EndState, Found};
use punctual_store::embedded::Bounds;
use punctual_store::embedded::journal::Options;
use punctual_store::{Filter, Query};

const PARTITIONS: u16 = 2;
/// In the year 2100: it is not due when the folder is opened again.
const FAR: Timestamp = Timestamp::from_micros(4_102_444_800_000_000);

/// Small, so that the folder is, and so that rows lie in the tables and in the journal.
fn options() -> FolderOptions {
    let journal = Options { segment_bytes: 64 << 10, keep_free_bytes: 0, ..Options::default() };
    let bounds = Bounds { layer_bytes: 8 << 10, journal_bytes: 32 << 10 };
    FolderOptions { partitions: PARTITIONS, journal, bounds, ..FolderOptions::default() }
}

fn named(name: &str) -> NewTask {
    NewTask::new("echo").payload(&name).expect("text").name(name).at(FAR)
}

/// A folder with something of everything in it.
async fn make(path: &Path) {
    let store = EmbeddedStore::open_with(path, options()).await.expect("it is made");
    let handler = |job: Job<String>| async move { Ok(job.payload) };
    let scheduler =
        Scheduler::builder().handler("echo", handler).start(store.clone()).await.expect("it starts");
    let done = NewTask::new("echo").payload(&"done").expect("text").name("done").unique_key("done");
    let done = scheduler.schedule(done).await.expect("scheduled").id();
    scheduler.result(done).await.expect("it ends");
    for n in 0..50 {
        let task = named(&format!("plain {n}"));
        scheduler.schedule(task).await.expect("scheduled");
    }
    // They are more than a layer holds, so that a thread takes the first of them down to the tables.
    while store.checkpoints() == 0 {
        tokio::task::yield_now().await;
    }
    let moved = scheduler.schedule(named("moved")).await.expect("scheduled").id();
    scheduler.move_to(moved, FAR + Duration::from_secs(60)).await.expect("moved");
    let gone = scheduler.schedule(named("cancelled")).await.expect("scheduled").id();
    scheduler.cancel(gone).await.expect("cancelled");
    for n in 0..3 {
        scheduler
            .schedule(named(&format!("in a lane {n}")).lane("lane").unique_key(&n.to_string()))
            .await
            .expect("ok");
    }
    // Nobody handles it: it waits for a handler, parked.
    let orphan = NewTask::new("nobody").payload(&"orphan").expect("text").name("orphan");
    scheduler.schedule(orphan).await.expect("scheduled");
    scheduler.pause("paused").await.expect("paused");
    scheduler.schedule(named("in a queue").queue("paused")).await.expect("scheduled");
    scheduler.stop(Duration::from_secs(5)).await.expect("it stops");
}

/// Everything that was made is there, and says what it said.
async fn check(path: &Path) {
    let verified = punctual::verify(path, |_| {}).await.expect("verified");
    assert_eq!(verified.rows.described, Vec::<String>::new());
    assert!(verified.journal.records > 0, "some of it is in the journal only");
    let store = EmbeddedStore::open_with(path, options()).await.expect("it opens");
    assert_eq!(store.meta().await.expect("read").partitions, PARTITIONS);
    let live = list(&store, false).await;
    let mut names: Vec<&str> = live.iter().map(|(name, ..)| &**name).collect();
    names.sort_unstable();
    let mut expected: Vec<String> = (0..50).map(|n| format!("plain {n}")).collect();
    expected.extend((0..3).map(|n| format!("in a lane {n}")));
    expected.extend(["moved", "orphan", "in a queue"].map(String::from));
    expected.sort_unstable();
    assert_eq!(names, expected);
    for (name, id, payload) in &live {
        assert_eq!(**payload, *format!("\"{name}\"").as_bytes());
        let found = store.find(id.partition(PARTITIONS), &[Query::Id(*id)]).await.expect("read").remove(0);
        assert!(matches!(found, Some(Found::Live(task)) if task.id == *id), "{name} is found by its id");
    }
    let ended = list(&store, true).await;
    assert_eq!(ended.len(), 2);
    for (name, id, _) in ended {
        let found = store.find(id.partition(PARTITIONS), &[Query::Id(id)]).await.expect("read").remove(0);
        let Some(Found::Ended(ended)) = found else { panic!("{name} has ended") };
        let (state, result) = (ended.end.state, ended.end.result);
        match &*name {
            "done" => assert_eq!((state, &result[..]), (EndState::Succeeded, &b"\"done\""[..])),
            _ => assert_eq!((&*name, state), ("cancelled", EndState::Cancelled)),
        }
    }
}

async fn list(store: &EmbeddedStore, ended: bool) -> Vec<(Box<str>, TaskId, Bytes)> {
    let page = store.list(&Filter { ended, ..Filter::default() }, None, 1_000).await.expect("listed");
    let task = |listed: punctual_store::Listed| match listed {
        punctual_store::Listed::Live(task) => task,
        punctual_store::Listed::Ended(ended) => ended.task,
    };
    let named = |task: punctual::Task| {
        (task.spec.name.clone().expect("all have names"), task.id, task.spec.payload.clone())
    };
    page.tasks.into_iter().map(task).map(named).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_made_now_is_as_it_must_be() {
    let folder = tempfile::tempdir().expect("a folder");
    make(folder.path()).await;
    check(folder.path()).await;
    if let Some(keep) = std::env::var_os("PUNCTUAL_KEEP") {
        make(Path::new(&keep)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_format_1_opens() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/folder/format-1.tar.gz");
    let unpacked = Command::new("tar").arg("-xzf").arg(kept).arg("-C").arg(folder.path()).status();
    assert!(unpacked.expect("tar runs").success());
    check(folder.path()).await;
}
