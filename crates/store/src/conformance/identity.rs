//! C6 for tasks with a unique key: the same key leads to the same task, also after its end.

use punctual_core::{Change, EndState, EndedTask, QueueId, Task, Timestamp};

use super::owner::{Owner, moved, with_key};
use crate::{Found, Query, Retention, Store};

pub async fn an_identity_leads_to_its_task<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let task = with_key(owner.task(1, 100), "key");
    let twin = with_key(owner.task(2, 100), "other key");
    owner.accept(&[task.clone(), twin.clone(), owner.task(3, 100)]).await;
    assert_eq!(owner.find_identity(&task).await, Some(Found::Live(task.clone())));
    assert_eq!(owner.find_identity(&with_key(owner.task(4, 100), "unknown")).await, None);
    let (later, change) = moved(&task, 200);
    owner.record(vec![change]).await;
    assert_eq!(owner.find_identity(&task).await, Some(Found::Live(later.clone())), "also where it moved");
    let end = owner.end(&later, EndState::Dead, 300).await;
    let over = Found::Ended(EndedTask { task: later.clone(), end });
    let identity = task.spec.identity(QueueId(1)).expect("it has a unique key");
    let queries =
        [Query::Identity(identity), Query::Id(owner.task(9, 9).id), Query::Id(twin.id), Query::Id(task.id)];
    let found = store.find(owner.fence.partition, &queries).await.expect("tasks are looked up");
    assert_eq!(found, [Some(over.clone()), None, Some(Found::Live(twin)), Some(over)], "in the order asked");
    let revived = Task { revision: 3, ..later };
    owner.record(vec![Change::Revived(revived.clone())]).await;
    assert_eq!(owner.find_identity(&task).await, Some(Found::Live(revived)));
}

pub async fn an_identity_outlives_its_history_until_it_is_forgotten<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let task = with_key(owner.task(1, 100), "key");
    let alive = with_key(owner.task(2, 100), "alive");
    let (ended_secs, hour) = (100 * 3_600, 3_600);
    owner.accept(&[task.clone(), alive.clone()]).await;
    owner.end(&task, EndState::Succeeded, ended_secs).await;
    let prune = async |identity_secs| {
        let retention = Retention {
            finished_before: Timestamp::MAX,
            dead_before: Timestamp::MAX,
            identity_before: Timestamp::from_secs(identity_secs),
            bytes_max: None,
        };
        store.prune(owner.fence, QueueId(1), retention, 10).await.expect("history is pruned")
    };
    prune(ended_secs).await;
    assert_eq!(owner.find_id(&task).await, None, "its row is gone");
    let forgotten = Found::Forgotten { id: task.id, state: EndState::Succeeded };
    assert_eq!(owner.find_identity(&task).await, Some(forgotten.clone()));
    owner.record(vec![Change::Accepted(task.clone())]).await;
    assert_eq!(
        owner.find_identity(&task).await,
        Some(forgotten),
        "it does not come back by a repeated accept"
    );
    prune(ended_secs + hour).await;
    assert_eq!(owner.find_identity(&task).await, None, "now anyone may use the key");
    assert_eq!(owner.find_identity(&alive).await, Some(Found::Live(alive.clone())));
    let again = with_key(owner.task(3, 100), "key");
    owner.accept(std::slice::from_ref(&again)).await;
    assert_eq!(owner.find_identity(&task).await, Some(Found::Live(again.clone())));
    owner.end(&task, EndState::Succeeded, ended_secs).await;
    prune(ended_secs + hour).await;
    let found = owner.find_identity(&task).await;
    assert_eq!(found, Some(Found::Live(again)), "a late end of the former task does not take it back");
}

pub async fn an_identity_is_kept_from_its_last_end_on<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    let tasks = [with_key(owner.task(1, 100), "one"), with_key(owner.task(2, 100), "two")];
    owner.accept(&tasks).await;
    let mut revived = Vec::new();
    for task in &tasks {
        owner.end(task, EndState::Dead, 100 * 3_600).await;
        revived.push(Task { revision: 2, ..task.clone() });
    }
    owner.record(revived.iter().cloned().map(Change::Revived).collect()).await;
    owner.end(&revived[1], EndState::Succeeded, 200 * 3_600).await;
    let retention = Retention {
        finished_before: Timestamp::MAX,
        dead_before: Timestamp::MAX,
        identity_before: Timestamp::from_secs(150 * 3_600),
        bytes_max: None,
    };
    store.prune(owner.fence, QueueId(1), retention, 10).await.expect("history is pruned");
    assert_eq!(owner.find_identity(&tasks[0]).await, Some(Found::Live(revived[0].clone())));
    let forgotten = Found::Forgotten { id: tasks[1].id, state: EndState::Succeeded };
    assert_eq!(owner.find_identity(&tasks[1]).await, Some(forgotten));
}
