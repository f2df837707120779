//! The same unique key, lane and time again is the same task: whoever is not sure may simply ask again.

use std::time::Duration;

use punctual::{Error, Job, MemoryStore, NewTask, OnConflict, Scheduled, Scheduler};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let scheduler = Scheduler::builder()
        .handler("invoice", |job: Job<String>| async move {
            println!("sent: {}", job.payload);
            Ok(())
        })
        .start(MemoryStore::new(64))
        .await?;

    let at = scheduler.now() + Duration::from_millis(200);
    let invoice =
        |text: &str| NewTask::new("invoice").payload(&text).map(|task| task.at(at).unique_key("june"));

    // A new task takes the place of the one that waits, unless told otherwise.
    println!("{:?}", scheduler.schedule(invoice("12 euros")?).await?);
    println!("{:?}", scheduler.schedule(invoice("13 euros")?).await?);
    println!("{:?}", scheduler.schedule(invoice("14 euros")?.on_conflict(OnConflict::Keep)).await?);
    match scheduler.schedule(invoice("15 euros")?.on_conflict(OnConflict::Error)).await {
        Err(Error::Conflict(id)) => println!("refused: {id} is there already"),
        other => println!("{other:?}"),
    }

    // What has finished never runs again.
    let id = scheduler.schedule(invoice("13 euros")?).await?.id();
    scheduler.result(id).await?;
    assert!(matches!(scheduler.schedule(invoice("16 euros")?).await?, Scheduled::Ended(..)));
    scheduler.stop(Duration::from_secs(1)).await
}
