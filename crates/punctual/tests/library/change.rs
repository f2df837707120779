//! Cancel, move, change, run now: each has one definite answer.

use punctual::{EndState, Error, Failure, Job, NewTask, Spec, TaskId, TaskState, Timestamp};

use super::world::{Log, MemoryScheduler, World, id_of, live, notes, secs, task};

async fn logging(world: &World, log: &Log) -> MemoryScheduler {
    world.start(world.builder().handler("log", log.handler())).await
}

async fn hang(_: Job<()>) -> Result<(), Failure> {
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_never_starts() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = logging(&world, &log).await;
    let near = id_of(&scheduler, task("near").after(secs(1))).await;
    let far = id_of(&scheduler, task("far").after(secs(3600))).await;
    scheduler.cancel(near).await.unwrap();
    scheduler.cancel(far).await.unwrap();
    let witness = id_of(&scheduler, task("witness").after(secs(7200))).await;
    scheduler.result(witness).await.unwrap();
    assert_eq!(log.lines(), ["witness"]);
    assert_eq!(scheduler.result(near).await.unwrap().state, EndState::Cancelled);
    assert_eq!(scheduler.find(far).await.unwrap().unwrap().state(), TaskState::Cancelled);
}

/// Two stores number their tasks alike, and an id was once looked up by its number alone.
#[tokio::test(start_paused = true)]
async fn an_id_of_another_store_cancels_nothing_here() {
    let (here, there, log) = (World::of(1), World::of(1), Log::default());
    let (ours, theirs) = (logging(&here, &log).await, logging(&there, &log).await);
    let ours_id = id_of(&ours, task("ours").after(secs(60))).await;
    let their_id = id_of(&theirs, task("theirs").after(secs(90))).await;
    assert_eq!(ours_id.seq, their_id.seq);
    assert!(matches!(ours.cancel(their_id).await, Err(Error::NotFound)));
    assert_eq!(ours.result(ours_id).await.unwrap().state, EndState::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn what_runs_has_ended_or_never_was_cannot_be_cancelled() {
    let (world, log) = (World::new(), Log::default());
    let (observer, mut notes) = notes();
    let builder = world.builder().observer(observer).handler("log", log.handler());
    let scheduler = world.start(builder.handler("hang", hang)).await;
    let ended = id_of(&scheduler, task("done")).await;
    scheduler.result(ended).await.unwrap();
    assert!(matches!(scheduler.cancel(ended).await, Err(Error::Ended(EndState::Succeeded))));
    let running = id_of(&scheduler, NewTask::new("hang")).await;
    notes.until_started(running).await;
    assert!(matches!(scheduler.cancel(running).await, Err(Error::Running { attempt: 1 })));
    let unknown = TaskId { seq: punctual_core::Seq(7), ..ended };
    assert!(matches!(scheduler.cancel(unknown).await, Err(Error::NotFound)));
    assert!(matches!(scheduler.result(unknown).await, Err(Error::NotFound)));
    assert!(scheduler.find(unknown).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_task_can_be_moved_earlier_and_later() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = logging(&world, &log).await;
    let begun = world.now();
    let later = id_of(&scheduler, task("later").after(secs(60))).await;
    let earlier = id_of(&scheduler, task("earlier").after(secs(86_400))).await;
    scheduler.move_to(later, begun + secs(7200)).await.unwrap();
    let moved = scheduler.move_to(earlier, begun + secs(30)).await.unwrap();
    assert_eq!((moved.spec.at, moved.id), (begun + secs(30), earlier));
    scheduler.result(earlier).await.unwrap();
    assert_eq!(world.now().since(begun).as_secs(), 30);
    scheduler.result(later).await.unwrap();
    assert_eq!(world.now().since(begun).as_secs(), 7200);
    assert_eq!(log.lines(), ["earlier", "later"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_cannot_be_moved_where_it_could_not_have_been_scheduled() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = logging(&world, &log).await;
    let id = id_of(&scheduler, task("x").after(secs(60))).await;
    assert!(matches!(scheduler.move_to(id, world.now() - secs(11)).await, Err(Error::DueInPast)));
    let never = punctual::Timestamp::from_micros(i64::MAX);
    assert!(matches!(scheduler.move_to(id, never).await, Err(Error::Refused(_))));
    assert_eq!(live(&scheduler, id).await.revision, 1);
    let expiring = task("y").after(secs(10)).expires_at(world.now() + secs(20));
    let expiring = id_of(&scheduler, expiring).await;
    let moved = scheduler.move_to(expiring, world.now() + secs(30)).await;
    assert_eq!(moved.unwrap_err().code(), "expires_before_due");
    assert_eq!(live(&scheduler, expiring).await.revision, 1);
}

#[tokio::test(start_paused = true)]
async fn a_payload_can_be_changed_until_the_task_starts() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = logging(&world, &log).await;
    let id = id_of(&scheduler, task("before").after(secs(60))).await;
    scheduler.change_payload(id, &"after").await.unwrap();
    scheduler.result(id).await.unwrap();
    assert_eq!(log.lines(), ["after"]);
    let late = scheduler.change_payload(id, &"too late").await;
    assert!(matches!(late, Err(Error::Ended(EndState::Succeeded))));
}

#[tokio::test(start_paused = true)]
async fn of_two_changes_at_once_one_is_told_to_look_again() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = logging(&world, &log).await;
    let id = id_of(&scheduler, task("before").after(secs(60))).await;
    let changes = tokio::join!(scheduler.change_payload(id, &"one"), scheduler.change_payload(id, &"two"));
    let (changed, kept) = match changes {
        (Ok(changed), Err(outdated)) => ((changed, outdated), "one"),
        (Err(outdated), Ok(changed)) => ((changed, outdated), "two"),
        both => panic!("one of them must be told: {both:?}"),
    };
    assert!(matches!(changed, (task, Error::Outdated { revision: 2 }) if task.revision == 2));
    scheduler.result(id).await.unwrap();
    assert_eq!(log.lines(), [kept]);
}

#[tokio::test(start_paused = true)]
async fn a_task_can_be_run_now() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = logging(&world, &log).await;
    let begun = world.now();
    let id = id_of(&scheduler, task("x").after(secs(86_400))).await;
    scheduler.run_now(id).await.unwrap();
    scheduler.result(id).await.unwrap();
    assert_eq!(world.now().since(begun).as_secs(), 0);
    assert!(matches!(scheduler.run_now(id).await, Err(Error::Ended(EndState::Succeeded))));
}

#[tokio::test(start_paused = true)]
async fn an_id_survives_the_world_outside() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = logging(&world, &log).await;
    let text = id_of(&scheduler, task("x").after(secs(60))).await.to_string();
    scheduler.cancel(text.parse().unwrap()).await.unwrap();
    let nonsense: Result<TaskId, Error> = "x".repeat(40).parse().map_err(Error::from);
    assert_eq!(nonsense.unwrap_err().code(), "task_id_invalid");
}

#[tokio::test(start_paused = true)]
async fn a_change_with_a_move_is_checked_whole_before_anything_is_changed() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = logging(&world, &log).await;
    let id = id_of(&scheduler, task("before").after(secs(3600))).await;
    let before = live(&scheduler, id).await;
    let spec = Spec { payload: r#""after""#.into(), ..Spec::clone(&before.spec) };
    let (soon, past) = (scheduler.now() + secs(60), Timestamp::from_secs(1));
    let refused = scheduler.change_and_move(id, spec.clone(), past, before.revision).await;
    assert!(matches!(refused, Err(Error::DueInPast)), "{refused:?}");
    let expiring = Spec { expires_at: Some(soon), ..spec.clone() };
    let refused = scheduler.change_and_move(id, expiring, soon, before.revision).await;
    assert_eq!(refused.unwrap_err().code(), "expires_before_due");
    let refused = scheduler.change_and_move(id, spec.clone(), soon, before.revision + 1).await;
    assert!(matches!(refused, Err(Error::Outdated { revision: 1 })), "{refused:?}");
    assert_eq!(live(&scheduler, id).await, before, "nothing was changed");
    let changed = scheduler.change_and_move(id, spec, soon, before.revision).await.unwrap();
    assert_eq!((changed.spec.at, changed.revision), (soon, before.revision + 1), "it is one change");
    scheduler.result(id).await.unwrap();
    assert_eq!(log.lines(), ["after"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_names_a_revision_does_something_to_that_and_nothing_else() {
    let (world, log) = (World::new(), Log::default());
    let scheduler = logging(&world, &log).await;
    let id = id_of(&scheduler, task("x").after(secs(3600))).await;
    let outdated = |error: Error| matches!(error, Error::Outdated { revision: 1 });
    assert!(outdated(scheduler.cancel_if(id, Some(2)).await.unwrap_err()));
    assert!(outdated(scheduler.run_now_if(id, Some(2)).await.unwrap_err()));
    assert!(outdated(scheduler.retry_if(id, Some(2)).await.unwrap_err()));
    assert_eq!(live(&scheduler, id).await.revision, 1);
    assert_eq!(scheduler.run_now_if(id, Some(1)).await.unwrap().revision, 2, "it costs no change more");
    scheduler.result(id).await.unwrap();
    assert!(matches!(scheduler.cancel_if(id, Some(1)).await, Err(Error::Outdated { .. })), "also at its end");
    let id = id_of(&scheduler, task("x").after(secs(3600))).await;
    scheduler.cancel_if(id, Some(1)).await.unwrap();
}
