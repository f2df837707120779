//! A queue that is removed while tasks come: whatever was accepted is in a queue that is there.

use punctual::{Error, Filter, MemoryStore, NewTask, QueueSettings, Report, Scheduler, TaskId};
use punctual_store::faulty::{Call, Fate};

use super::script::Script;
use super::world::{MemoryScheduler, World, id_of, secs};

const RACES: usize = 300;

fn job(queue: &str) -> NewTask {
    NewTask::for_worker().queue(queue)
}

/// A task that a worker has given up.
async fn dead(scheduler: &MemoryScheduler, queue: &str) -> TaskId {
    let id = id_of(scheduler, job(queue)).await;
    let reserved = scheduler.reserve(queue, 1, secs(20), None).await.unwrap();
    scheduler.report(reserved[0].token, Report::Buried("broken".into())).await.unwrap();
    id
}

async fn waits_in(scheduler: &MemoryScheduler, queue: &str, id: TaskId) -> bool {
    let page = scheduler.list(&Filter::live().queue(queue), None, 10).await.unwrap();
    page.tasks.iter().any(|found| found.id() == id)
}

/// Tasks were accepted into queues that were gone: nobody was given them, and the next start did not know them.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_task_that_comes_while_its_queue_is_removed_is_in_a_queue() {
    let scheduler = Scheduler::builder().start(MemoryStore::new(2)).await.unwrap();
    let mut both = 0;
    for race in 0..RACES {
        let queue = format!("q{race}");
        scheduler.set_queue(&queue, QueueSettings::default()).await.unwrap();
        let (comes, goes) = (scheduler.clone(), scheduler.clone());
        let (coming, going) = (job(&queue), queue.clone());
        let comes = tokio::spawn(async move { comes.schedule_many(vec![coming.clone(), coming]).await });
        let goes = tokio::spawn(async move { goes.remove_queue(&going, |_| true).await });
        let (came, gone) = (comes.await.unwrap(), goes.await.unwrap());
        for came in came {
            assert!(waits_in(&scheduler, &queue, came.unwrap().id()).await, "race {race}: {gone:?}");
        }
        match gone {
            Ok(()) => both += 1,
            Err(error) => assert!(matches!(error, Error::QueueNotEmpty), "race {race}: {error}"),
        }
    }
    assert!((1..RACES).contains(&both), "each wins now and then: {both}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_dead_task_is_not_tried_again_in_a_queue_that_is_gone() {
    let scheduler = Scheduler::builder().start(MemoryStore::new(2)).await.unwrap();
    for race in 0..RACES {
        let queue = format!("q{race}");
        let id = dead(&scheduler, &queue).await;
        let (tries, goes, going) = (scheduler.clone(), scheduler.clone(), queue.clone());
        let tries = tokio::spawn(async move { tries.retry(id).await });
        let goes = tokio::spawn(async move { goes.remove_queue(&going, |_| true).await });
        match (tries.await.unwrap(), goes.await.unwrap()) {
            (Ok(_), Err(Error::QueueNotEmpty)) => {
                assert!(waits_in(&scheduler, &queue, id).await, "race {race}")
            }
            (Err(Error::NotFound), Ok(())) => {}
            (tried, gone) => panic!("race {race}: {tried:?}, {gone:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_task_does_not_come_back_into_another_queue_of_the_same_name() {
    let world = World::new();
    let scheduler = world.start(world.builder()).await;
    let id = dead(&scheduler, "work").await;
    scheduler.remove_queue("work", |_| true).await.unwrap();
    let new = id_of(&scheduler, job("work")).await;
    assert!(matches!(scheduler.retry(id).await, Err(Error::NotFound)));
    let page = scheduler.list(&Filter::live(), None, 10).await.unwrap();
    assert_eq!(page.tasks.iter().map(punctual::Found::id).collect::<Vec<_>>(), [new]);
    scheduler.stop(secs(1)).await.unwrap();
    let scheduler = world.start(world.builder()).await;
    assert!(matches!(scheduler.retry(id).await, Err(Error::NotFound)), "nor after another start");
}

/// Nobody knows whether it is there: the store is asked again before anything enters.
#[tokio::test(start_paused = true)]
async fn a_removal_that_nobody_hears_of_lets_no_task_into_what_may_be_gone() {
    for fate in [Fate::AnswerLost, Fate::RequestLost] {
        let (world, script) = (World::new(), Script::default());
        let scheduler = world.builder().start(script.store(world.store.clone())).await.unwrap();
        scheduler.set_queue("work", QueueSettings::default()).await.unwrap();
        script.then(Call::Write, fate);
        scheduler.remove_queue("work", |_| true).await.unwrap_err();
        let id = scheduler.schedule(NewTask::for_worker().queue("work")).await.unwrap().id();
        scheduler.stop(secs(1)).await.unwrap();
        let scheduler = world.start(world.builder()).await;
        assert!(waits_in(&scheduler, "work", id).await, "{fate:?}");
        scheduler.stop(secs(1)).await.unwrap();
    }
}
