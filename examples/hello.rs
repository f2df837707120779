//! The smallest whole program: a handler, a task, its result.

use std::time::Duration;

use punctual::{Error, Job, MemoryStore, NewTask, Scheduler};

#[tokio::main]
async fn main() -> Result<(), Error> {
    // Handlers have a name. What they are given and what they return is anything that serde can read and write.
    let scheduler = Scheduler::builder()
        .handler("greet", |job: Job<String>| async move { Ok(format!("Hello, {}!", job.payload)) })
        .start(MemoryStore::new(64))
        .await?;

    // When `schedule` returns, the task is on stable storage (as stable as the store: this one is memory).
    let task = NewTask::new("greet").payload(&"Ana")?.after(Duration::from_millis(100));
    let id = scheduler.schedule(task).await?.id();

    // An id is text to the outside world.
    println!("task {id} waits");
    println!("{}", scheduler.result(id).await?.read::<String>()?);
    scheduler.stop(Duration::from_secs(1)).await
}
