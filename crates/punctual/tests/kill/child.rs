//! The process that is killed: it schedules, cancels and runs tasks, and says so.

use std::path::Path;
use std::time::Duration;

use punctual::clock::Clock;
use punctual::{
    Change, EmbeddedStore, Error, Filter, FolderOptions, Found, Job, Limits, Note, Scheduler, Store, Task,
    TaskId, Timestamp,
};
use punctual_store::Listed;
use punctual_store::embedded::Bounds;
use punctual_store::embedded::journal::Options;

use super::dice::Dice;
use super::lines::{Line, say, say_all};
use super::plan::{BATCHES, Payload, Plan, first};

const PAGE: usize = 1_000;

/// Small, so that in a short life segments are changed and layers go down.
fn options() -> FolderOptions {
    let journal = Options { segment_bytes: 16 << 20, keep_free_bytes: 0, ..Options::default() };
    let bounds = Bounds { layer_bytes: 256 << 10, journal_bytes: 1 << 20 };
    FolderOptions { partitions: 8, journal, bounds, ..FolderOptions::default() }
}

/// Schedules and runs until it is killed.
pub fn live(folder: &Path, life: u64, seed: u64) {
    block_on(async {
        let (store, held) = open(folder).await;
        let scheduler = start(store).await;
        let again = held.into_iter().filter(|held| held.unique_key.is_some()).take(20).collect();
        let repeating = schedule_again(&scheduler, again);
        let producing = (0..BATCHES.len()).map(|producer| {
            let dice = Dice::new(seed ^ first(life, producer));
            produce(scheduler.clone(), first(life, producer), BATCHES[producer], dice)
        });
        tokio::join!(repeating, futures_util::future::join_all(producing));
    });
}

/// Schedules nothing more, waits until everything has ended, and says how.
pub fn finish(folder: &Path) {
    block_on(async {
        let (store, held) = open(folder).await;
        let scheduler = start(store.clone()).await;
        for plan in &held {
            let now = now();
            if plan.plan.is_far(now) {
                scheduler.move_to(plan.id, now).await.expect("it waits");
            }
        }
        for held in &held {
            scheduler.result(held.id).await.expect("it ends");
        }
        let live = scheduler.list(&Filter::live(), None, 1).await.expect("it can be listed");
        assert_eq!(live.tasks, [], "nothing is left");
        say_history(&scheduler).await;
        scheduler.stop(Duration::from_secs(10)).await.expect("it stops");
        say(&Line::Stopped);
    });
}

fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads can be made").block_on(work);
}

fn now() -> Timestamp {
    Clock::system().now().wall
}

/// A task that was there when the store was opened.
struct Held {
    id: TaskId,
    unique_key: Option<Box<str>>,
    plan: Plan,
}

/// Opens the store, and says what it holds before anything can happen to it.
async fn open(folder: &Path) -> (EmbeddedStore, Vec<Held>) {
    let store = EmbeddedStore::open_with(folder, options()).await.expect("it opens after every kill");
    let (mut held, mut from) = (Vec::new(), None);
    loop {
        let page =
            store.list(&punctual_store::Filter::default(), from, PAGE).await.expect("it can be listed");
        let tasks = page.tasks.into_iter().map(|listed| match listed {
            Listed::Live(task) => task,
            Listed::Ended(ended) => panic!("{ended:?} has ended"),
        });
        let (some, lines): (Vec<Held>, Vec<Line>) = tasks.map(|task| look_at(&task)).unzip();
        say_all(&lines);
        held.extend(some);
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    say(&Line::Opened);
    (store, held)
}

/// Whether everything of a task is there, as it was planned.
fn look_at(task: &Task) -> (Held, Line) {
    let payload: Payload = serde_json::from_slice(&task.spec.payload).expect("the payload is whole");
    let (n, spec) = (payload.0, &task.spec);
    // Its time tells when it was sent.
    let sent_at = spec.at - Plan::of(n, Timestamp::MIN).at.since(Timestamp::MIN);
    let plan = Plan::of(n, sent_at);
    let is_as_planned = plan.payload() == payload
        && spec.lane.as_deref() == plan.lane.as_deref()
        && spec.unique_key.as_deref() == plan.unique_key.as_deref();
    let line = Line::Held { n, id: task.id.to_string(), is_as_planned };
    (Held { id: task.id, unique_key: spec.unique_key.clone(), plan }, line)
}

async fn start(store: EmbeddedStore) -> Scheduler<EmbeddedStore> {
    let observer = |note: Note<'_>| {
        let Note::Recorded(_, changes) = note else { return };
        let ended = changes.iter().filter_map(|change| match change {
            Change::Ended { task, .. } => Some(Line::Ended { id: task.id.to_string() }),
            _ => None,
        });
        say_all(&ended.collect::<Vec<_>>());
    };
    // It is killed more often than any task deserves to be set aside for.
    let limits = Limits { crashes_max: u16::MAX, ..Limits::default() };
    let builder = Scheduler::builder().limits(limits).observer(observer).handler("work", work);
    builder.start(store).await.expect("nobody else has the folder")
}

async fn work(job: Job<Payload>) -> Result<u64, punctual::Failure> {
    let n = job.payload.0;
    say(&Line::Begun { n, id: job.id.to_string() });
    for _ in 0..n % 4 {
        tokio::task::yield_now().await;
    }
    say(&Line::Done { n });
    Ok(n)
}

/// Schedules one batch after the other, and cancels some of what it scheduled.
async fn produce(scheduler: Scheduler<EmbeddedStore>, mut first: u64, size: u64, mut dice: Dice) {
    loop {
        // Now and then a batch of another size.
        let count = if dice.below(4) == 0 { 1 + dice.below(size) } else { size };
        let at = now();
        let plans: Vec<Plan> = (first..first + count).map(|n| Plan::of(n, at)).collect();
        say(&Line::Sent { first, count, at });
        let accepted = accept(&scheduler, &plans).await;
        let at = now();
        let line = |(plan, id): (&Plan, &TaskId)| Line::Accepted { n: plan.n, id: id.to_string(), at };
        say_all(&plans.iter().zip(&accepted).map(line).collect::<Vec<_>>());
        for (plan, id) in plans.iter().zip(&accepted).filter(|(plan, _)| plan.is_awaited) {
            tokio::spawn(wait_for(scheduler.clone(), plan.n, *id));
        }
        let to_cancel = plans.iter().zip(accepted).filter(|(plan, _)| plan.is_cancelled);
        let cancels = to_cancel.map(|(plan, id)| cancel(&scheduler, plan.n, id));
        futures_util::future::join_all(cancels).await;
        first += count;
    }
}

async fn accept(scheduler: &Scheduler<EmbeddedStore>, plans: &[Plan]) -> Vec<TaskId> {
    let answers = match plans {
        [plan] => vec![scheduler.schedule(plan.task()).await],
        plans => scheduler.schedule_many(plans.iter().map(Plan::task).collect()).await,
    };
    answers.into_iter().map(|answer| answer.expect("there is room for all").id()).collect()
}

async fn cancel(scheduler: &Scheduler<EmbeddedStore>, n: u64, id: TaskId) {
    say(&Line::Cancelling { n });
    match scheduler.cancel(id).await {
        Ok(()) => say(&Line::Cancelled { n }),
        Err(Error::Running { .. } | Error::Ended(_)) => {}
        Err(error) => panic!("cancelling {n}: {error}"),
    }
}

async fn wait_for(scheduler: Scheduler<EmbeddedStore>, n: u64, id: TaskId) {
    let result = scheduler.result(id).await.expect("its end can be waited for");
    assert!(result.read::<u64>().map_or(true, |result| result == n), "the result is its own");
    say(&Line::Result { n });
}

/// What was there before the kill is known by its unique key.
async fn schedule_again(scheduler: &Scheduler<EmbeddedStore>, held: Vec<Held>) {
    for held in held {
        // Late ones are refused as new ones would be, whatever is there.
        if held.plan.at < now() {
            continue;
        }
        match scheduler.schedule(held.plan.task()).await {
            Ok(scheduled) => say(&Line::Again { n: held.plan.n, id: scheduled.id().to_string() }),
            Err(error) => panic!("scheduling {} again: {error}", held.plan.n),
        }
    }
}

async fn say_history(scheduler: &Scheduler<EmbeddedStore>) {
    let mut from = None;
    loop {
        let page = scheduler.list(&Filter::ended(), from, PAGE).await.expect("it can be listed");
        let lines: Vec<Line> = page.tasks.iter().map(past).collect();
        say_all(&lines);
        from = page.next;
        if from.is_none() {
            return;
        }
    }
}

fn past(found: &Found) -> Line {
    let Found::Ended(ended) = found else { panic!("{found:?} has not ended") };
    let payload: Payload = serde_json::from_slice(&ended.task.spec.payload).expect("the payload is whole");
    Line::Past { n: payload.0, state: punctual::TaskState::from(ended.end.state).to_string() }
}
