//! Queues are named settings: paused, limited in number or rate, each without harm to the others.

use std::time::Duration;

use punctual::{Error, Job, MemoryStore, NewTask, QueueSettings, Rate, Scheduler};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let scheduler = Scheduler::builder()
        .handler("send", |job: Job<String>| async move {
            println!("sent {}", job.payload);
            Ok(())
        })
        .start(MemoryStore::new(64))
        .await?;

    // Ten starts a second, two at one instant.
    let rate = Some(Rate { starts: 10, per: Duration::from_secs(1), burst: 2 });
    scheduler.set_queue("mail", QueueSettings { rate, ..QueueSettings::default() }).await?;
    scheduler.pause("mail").await?;

    let mails = (1..=5).map(|n| NewTask::new("send").queue("mail").payload(&format!("mail {n}")));
    let mails = scheduler.schedule_many(mails.collect::<Result<_, _>>()?).await;
    let sms = NewTask::new("send").queue("sms").payload(&"an SMS, which nothing holds up")?;
    let sms = scheduler.schedule(sms).await?.id();
    scheduler.result(sms).await?;

    println!("and now the mail");
    scheduler.resume("mail").await?;
    for mail in mails {
        scheduler.result(mail?.id()).await?;
    }
    scheduler.stop(Duration::from_secs(1)).await
}
