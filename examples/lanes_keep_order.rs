//! Tasks of one lane run one at a time, in order of their time, even when one of them has to be retried.

use std::time::Duration;

use punctual::{Error, Failure, Job, MemoryStore, NewTask, RetryPolicy, Scheduler, Waits};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let scheduler = Scheduler::builder()
        .handler("step", |job: Job<String>| async move {
            println!("{}: {} (attempt {})", job.lane.unwrap_or_default(), job.payload, job.attempt);
            match (job.payload.as_str(), job.attempt) {
                ("charge the card", 1) => Err(Failure::retry("the bank did not answer")),
                _ => Ok(()),
            }
        })
        .start(MemoryStore::new(64))
        .await?;

    // Fixed waits, so that the example is quick; the default grows from a second to an hour.
    let soon =
        RetryPolicy { waits: Waits::Listed(vec![Duration::from_millis(200)].into()), ..RetryPolicy::DEFAULT };
    let mut last = Vec::new();
    for customer in ["ana", "bob"] {
        for step in ["reserve the goods", "charge the card", "send the parcel"] {
            let task = NewTask::new("step").payload(&step)?.lane(customer).retry(soon.clone());
            last.push(scheduler.schedule(task).await?.id());
        }
    }
    // Nobody's parcel is sent before the card is charged; and Ana's bank does not hold up Bob.
    for id in last {
        scheduler.result(id).await?;
    }
    scheduler.stop(Duration::from_secs(1)).await
}
