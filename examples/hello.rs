//! The smallest whole program: a handler, a task, its result, all of it kept in a folder.

use std::time::Duration;

use punctual::{EmbeddedStore, Error, Filter, Job, NewTask, Scheduler};

#[tokio::main]
async fn main() -> Result<(), Error> {
    // A folder is all it needs. It is made if it is not there.
    let store = EmbeddedStore::open("punctual-data").await?;

    // Handlers have a name. What they are given and what they return is anything that serde can read and write.
    let scheduler = Scheduler::builder()
        .handler("greet", |job: Job<String>| async move { Ok(format!("Hello, {}!", job.payload)) })
        .start(store)
        .await?;

    // When `schedule` returns, the task is on stable storage: kill the process now, and the next one runs it.
    let task = NewTask::new("greet").payload(&"Ana")?.after(Duration::from_millis(100));
    let id = scheduler.schedule(task).await?.id();

    // An id is text to the outside world.
    println!("task {id} waits");
    println!("{}", scheduler.result(id).await?.read::<String>()?);

    let greetings = scheduler.list(&Filter::ended(), None, 1_000).await?.tasks.len();
    println!("greetings in ./punctual-data so far: {greetings} (run it again)");
    scheduler.stop(Duration::from_secs(1)).await
}
