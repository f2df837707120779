//! A task that waits can be cancelled, moved, changed, or run now; each answer is definite.

use std::time::{Duration, SystemTime};

use punctual::{Error, Filter, Job, MemoryStore, NewTask, Scheduler};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let scheduler = Scheduler::builder()
        .handler("remind", |job: Job<String>| async move {
            println!("remember: {}", job.payload);
            Ok(())
        })
        .start(MemoryStore::new(64))
        .await?;

    let tomorrow = Duration::from_secs(24 * 3600);
    let mut ids = Vec::new();
    for what in ["the dentist", "the rent", "the milk"] {
        let task = NewTask::new("remind").payload(&what)?.after(tomorrow).name(what);
        ids.push(scheduler.schedule(task).await?.id());
    }

    // Cancelled: it will not start, whatever happens.
    scheduler.cancel(ids[0]).await?;
    // Moved: times may be the standard library's.
    let soon = scheduler
        .move_to(ids[1], punctual::system_time(scheduler.now()) + Duration::from_millis(100))
        .await?;
    let due: SystemTime = punctual::system_time(soon.spec.at);
    println!("the rent is due at {due:?}");
    // Changed, and run at once.
    scheduler.change_payload(ids[2], &"the milk, and eggs").await?;
    scheduler.run_now(ids[2]).await?;

    scheduler.result(ids[1]).await?;
    scheduler.result(ids[2]).await?;
    // Too late, and it says so.
    if let Err(error) = scheduler.cancel(ids[2]).await {
        println!("{error}");
    }
    let ended = scheduler.list(&Filter::ended(), None, 10).await?;
    println!("{} tasks have ended", ended.tasks.len());
    scheduler.stop(Duration::from_secs(1)).await
}
