//! Tasks that are not started by their `expires_at`: whoever waits hears of it, and whoever looks sees it.

use punctual::{EndState, Error, Filter, Found, Job, NewTask, QueueSettings, TaskState};

use super::world::{Log, World, id_of, pass, secs, task};

fn states(found: &[Found]) -> Vec<Option<EndState>> {
    let state = |found: &Found| match found {
        Found::Ended(ended) => Some(ended.end.state),
        _ => None,
    };
    found.iter().map(state).collect()
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_task_that_nothing_keeps_in_memory_hears_of_its_end_in_time() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    scheduler.pause("mail").await.unwrap();
    let due = world.now() + secs(10);
    let paused = task("paused").queue("mail").at(due).expires_at(due + secs(60));
    let unknown = NewTask::new("nobody").at(due).expires_at(due + secs(60));
    let begun = world.now();
    let ids = [id_of(&scheduler, paused).await, id_of(&scheduler, unknown).await];
    for id in ids {
        assert_eq!(scheduler.result(id).await.unwrap().state, EndState::Expired);
        let took = world.now().since(begun);
        assert!((secs(70)..=secs(71)).contains(&took), "{took:?}");
    }
    assert_eq!(scheduler.load().await.unwrap().in_memory, 0);
    assert_eq!(log.lines(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_task_behind_another_hears_of_its_end_in_time() {
    let world = World::new();
    let hang = |_: Job<()>| async move {
        std::future::pending::<()>().await;
        Ok(())
    };
    let scheduler = world.start(world.builder().handler("hang", hang)).await;
    let now = world.now();
    id_of(&scheduler, NewTask::new("hang").lane("x").timeout(secs(3_600))).await;
    let behind = NewTask::new("hang").lane("x").at(now + secs(1)).expires_at(now + secs(30));
    let behind = id_of(&scheduler, behind).await;
    assert_eq!(scheduler.result(behind).await.unwrap().state, EndState::Expired);
    assert!(world.now().since(now) <= secs(31));
}

#[tokio::test(start_paused = true)]
async fn whoever_looks_at_a_paused_queue_sees_what_has_expired() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = world.start(world.builder().handler("log", log.handler())).await;
    scheduler.set_queue("mail", QueueSettings { paused: true, ..QueueSettings::default() }).await.unwrap();
    let due = world.now() + secs(1);
    let mut ids = Vec::new();
    for payload in ["looked up", "listed", "cancelled", "moved"] {
        let new = task(payload).queue("mail").at(due).expires_at(due + secs(60));
        ids.push(id_of(&scheduler, new).await);
    }
    let in_time = id_of(&scheduler, task("in time").queue("mail").at(due)).await;
    pass(secs(100)).await;
    let ended = Filter::ended().queue("mail");
    assert_eq!(scheduler.list(&ended, None, 10).await.unwrap().tasks, [], "nobody has looked");
    assert_eq!(scheduler.find(ids[0]).await.unwrap().unwrap().state(), TaskState::Expired);
    let cancelled = scheduler.cancel(ids[2]).await;
    assert!(matches!(cancelled, Err(Error::Ended(EndState::Expired))), "{cancelled:?}");
    let moved = scheduler.move_to(ids[3], world.now() + secs(9)).await;
    assert!(matches!(moved, Err(Error::Ended(EndState::Expired))), "{moved:?}");
    let live = scheduler.list(&Filter::live().queue("mail"), None, 10).await.unwrap();
    assert_eq!(live.tasks.iter().map(Found::id).collect::<Vec<_>>(), [in_time]);
    let ended = scheduler.list(&ended, None, 10).await.unwrap();
    assert_eq!(states(&ended.tasks), [Some(EndState::Expired); 4]);
    assert_eq!(scheduler.result(ids[1]).await.unwrap().state, EndState::Expired);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_runs_past_the_deadline_is_left_alone_and_seen_as_running() {
    let world = World::new();
    let slow = |_: Job<()>| async move {
        pass(secs(100)).await;
        Ok(())
    };
    let scheduler = world.start(world.builder().handler("slow", slow)).await;
    let new = NewTask::new("slow").timeout(secs(3_600)).expires_at(world.now() + secs(10));
    let id = id_of(&scheduler, new).await;
    let waiter = tokio::spawn({
        let scheduler = scheduler.clone();
        async move { scheduler.result(id).await }
    });
    pass(secs(50)).await;
    assert_eq!(scheduler.find(id).await.unwrap().unwrap().state(), TaskState::Running);
    assert_eq!(scheduler.list(&Filter::live(), None, 10).await.unwrap().tasks.len(), 1);
    assert_eq!(waiter.await.unwrap().unwrap().state, EndState::Succeeded);
}
