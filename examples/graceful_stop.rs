//! A stop accepts nothing new, lets what runs finish for a while, interrupts the rest, and loses nothing.

use std::time::Duration;

use punctual::{Error, Failure, Job, MemoryStore, NewTask, Note, RetryPolicy, Scheduler};
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let store = MemoryStore::new(64);
    // An observer hears of everything the scheduler does: for metrics, and to wait for something to happen.
    let (started, mut starts) = mpsc::channel(10);
    let first = Scheduler::builder()
        .handler("dig", |_: Job<()>| std::future::pending::<Result<(), Failure>>())
        .observer(move |note: Note<'_>| {
            if let Note::Started(attempt) = note {
                started.try_send(attempt.token.attempt).ok();
            }
        })
        .start(store.clone())
        .await?;

    // One attempt only: but an interruption is not an attempt.
    let id = first.schedule(NewTask::new("dig").retry(RetryPolicy::NEVER)).await?.id();
    starts.recv().await;
    println!("the first scheduler digs, and is told to stop within 100 ms");
    first.stop(Duration::from_millis(100)).await?;
    assert!(matches!(first.schedule(NewTask::new("dig")).await, Err(Error::Stopped)));

    // The next process, on the same store, goes on.
    let second =
        Scheduler::builder().handler("dig", |_: Job<()>| async { Ok("a hole") }).start(store).await?;
    println!("the second one has dug {}", second.result(id).await?.read::<String>()?);
    second.stop(Duration::from_secs(1)).await
}
