//! What fails is tried again, later and later; what panics too; what is hopeless is given up and can be revived.

use std::time::Duration;

use punctual::{Error, Failure, Job, MemoryStore, NewTask, RetryPolicy, Scheduler, Waits};

#[tokio::main]
async fn main() -> Result<(), Error> {
    // A panic below is part of the show: it need not print its own report.
    std::panic::set_hook(Box::new(|_| {}));
    let scheduler = Scheduler::builder().handler("fetch", fetch).start(MemoryStore::new(64)).await?;

    // 50 ms, 100 ms, 200 ms …, five attempts in all. There are presets too: `RetryPolicy::WEBHOOKS`, for example.
    let waits = Waits::Growing {
        min: Duration::from_millis(50),
        max: Duration::from_secs(1),
        factor_percent: 200,
        jitter_percent: 0,
    };
    let retry = RetryPolicy { waits, attempts_max: 5, age_max: None };

    let flaky = NewTask::new("fetch").payload(&"flaky")?.retry(retry.clone());
    let id = scheduler.schedule(flaky).await?.id();
    println!("-> {}", scheduler.result(id).await?.read::<String>()?);

    let hopeless = NewTask::new("fetch").payload(&"hopeless")?.retry(retry);
    let id = scheduler.schedule(hopeless).await?.id();
    // The result of a task that died is an error that says why.
    if let Err(error) = scheduler.result(id).await?.read::<String>() {
        println!("-> {error}");
    }
    // A person has mended what was broken: a dead task can be tried again, with a fresh count of attempts.
    scheduler.retry(id).await?;
    println!("-> {}", scheduler.result(id).await?.read::<String>()?);
    scheduler.stop(Duration::from_secs(1)).await
}

async fn fetch(job: Job<String>) -> Result<String, Failure> {
    println!("{} attempt {}", job.payload, job.attempt);
    match (job.payload.as_str(), job.attempt) {
        ("flaky", 1) => Err(Failure::retry("connection refused")),
        ("flaky", 2) => panic!("a panic is a failed attempt, and nothing else"),
        // Any error that has a text can be returned with `?`.
        ("flaky", 3) => Ok("not a number".parse::<u32>()?.to_string()),
        ("hopeless", 1) => Err(Failure::give_up("no such address")),
        _ => Ok("done".into()),
    }
}
