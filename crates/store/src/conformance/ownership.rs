//! C2 to C4: one owner at a time, and what the others can and cannot do.

use futures_util::future::{join, join_all};
use punctual_core::{Change, EndState, Epoch, Fence, PartitionId, QueueId, Timestamp};

use super::owner::{Owner, WINDOW, end, ended, epoch};
use crate::{Claim, Recorded, Retention, Store, StoreError};

const PARTITION: PartitionId = PartitionId(1);

const EVERYTHING: Retention = Retention {
    finished_before: Timestamp::MAX,
    dead_before: Timestamp::MAX,
    identity_before: Timestamp::MAX,
    bytes_max: None,
};

pub async fn a_fresh_store_belongs_to_nobody<S: Store>(store: &S) {
    let meta = store.meta().await.expect("meta is read");
    let all = store.ownerships().await.expect("ownerships are read");
    let partitions: Vec<u16> = all.iter().map(|it| it.partition.0).collect();
    assert_eq!(partitions, (0..meta.partitions).collect::<Vec<_>>(), "all partitions, in order");
    assert!(all.iter().all(|it| it.epoch == Epoch(0) && it.owner.is_none()), "nobody claimed: {all:?}");
}

pub async fn of_two_claims_one_wins<S: Store>(store: &S) {
    let first = store.claim(PARTITION, Epoch(0), "first").await.expect("answered");
    let second = store.claim(PARTITION, Epoch(0), "second").await.expect("answered");
    assert_eq!((first, second), (Claim::Won(Epoch(1)), Claim::Lost(Epoch(1))));
    let all = store.ownerships().await.expect("ownerships are read");
    assert_eq!(all[1].owner.as_deref(), Some("first"), "the loser changed nothing");
    assert_eq!(all[2].epoch, Epoch(0), "other partitions are untouched");
}

pub async fn many_claims_at_once_have_one_winner<S: Store>(store: &S) {
    for round in 0..5 {
        let claims = (0..8).map(|_| store.claim(PARTITION, Epoch(round), "someone"));
        let claims: Vec<Claim> =
            join_all(claims).await.into_iter().map(|claim| claim.expect("answered")).collect();
        let won = claims.iter().filter(|claim| matches!(claim, Claim::Won(_))).count();
        assert_eq!(won, 1, "one winner: {claims:?}");
        let epoch = Epoch(round + 1);
        let agree = |claim: &Claim| matches!(claim, Claim::Won(e) | Claim::Lost(e) if *e == epoch);
        assert!(claims.iter().all(agree), "one new epoch: {claims:?}");
    }
}

pub async fn a_release_leaves_no_owner_and_keeps_the_epoch<S: Store>(store: &S) {
    let owner = Owner::new(store).await;
    store.release(owner.fence).await.expect("released");
    let all = store.ownerships().await.expect("ownerships are read");
    assert_eq!((all[1].epoch, all[1].owner.as_deref()), (Epoch(1), None));
    let claim = store.claim(PARTITION, Epoch(1), "next").await.expect("answered");
    assert_eq!(claim, Claim::Won(Epoch(2)), "the next claim raises the epoch");
}

pub async fn nobody_writes_before_the_first_claim<S: Store>(store: &S) {
    let partitions = store.meta().await.expect("meta is read").partitions;
    let nobody = Owner { store, fence: Fence { partition: PARTITION, epoch: Epoch(0) }, partitions };
    let task = nobody.task(1, 100);
    assert_eq!(nobody.try_record(vec![Change::Accepted(task.clone())]).await, Recorded::Fenced);
    assert!(nobody.find_id(&task).await.is_none(), "what was fenced does not count");
    assert!(matches!(store.release(nobody.fence).await, Err(StoreError::Fenced)));
    let pruned = store.prune(nobody.fence, QueueId(1), EVERYTHING, 10).await;
    assert!(matches!(pruned, Err(StoreError::Fenced)), "{pruned:?}");
    assert_eq!(epoch(store, PARTITION).await, Epoch(0), "nobody has claimed it");
}

pub async fn an_old_fence_changes_nothing<S: Store>(store: &S) {
    let old = Owner::new(store).await;
    let task = old.task(1, 100);
    old.accept(std::slice::from_ref(&task)).await;
    let new = Owner::new(store).await;
    let changes = vec![
        Change::Accepted(old.task(2, 100)),
        ended(&task, &end(EndState::Succeeded, 100)),
        Change::LowWater(WINDOW, Timestamp::from_secs(500)),
        Change::Schedule("schedule".into(), Some("row".into())),
    ];
    assert_eq!(old.try_record(changes).await, Recorded::Fenced);
    assert_eq!(new.loaded(WINDOW).await, [1]);
    let standing = store.standing(PARTITION).await.expect("the standing is read");
    assert_eq!(standing.windows[0].low_water, Timestamp::MIN, "the mark of an old owner does not count");
    assert!(store.schedules(PARTITION, None, 10).await.expect("schedules are read").is_empty());
    // A fence from the future is no better: nobody has won that epoch.
    let future = Owner { fence: Fence { epoch: Epoch(9), ..new.fence }, ..new };
    assert_eq!(future.try_record(vec![Change::Accepted(old.task(3, 100))]).await, Recorded::Fenced);
}

pub async fn only_the_stale_part_of_a_batch_is_fenced<S: Store>(store: &S) {
    let mut owners = Vec::new();
    for partition in 0..3 {
        owners.push(Owner::claim(store, PartitionId(partition)).await);
    }
    let usurper = Owner::claim(store, PARTITION).await;
    let batch: Vec<_> = owners.iter().map(|it| (it.fence, vec![Change::Accepted(it.task(1, 100))])).collect();
    let answers = store.record(&batch).await;
    assert_eq!(answers, [Recorded::Done, Recorded::Fenced, Recorded::Done]);
    assert_eq!(owners[0].loaded(WINDOW).await, [1]);
    assert_eq!(usurper.loaded(WINDOW).await, [0; 0]);
    assert_eq!(owners[2].loaded(WINDOW).await, [1]);
}

pub async fn an_old_fence_neither_releases_nor_prunes<S: Store>(store: &S) {
    let old = Owner::new(store).await;
    let task = old.task(1, 100);
    old.accept(std::slice::from_ref(&task)).await;
    old.end(&task, EndState::Succeeded, 100).await;
    let new = Owner::new(store).await;
    assert!(matches!(store.release(old.fence).await, Err(StoreError::Fenced)));
    let pruned = store.prune(old.fence, QueueId(1), EVERYTHING, 10).await;
    assert!(matches!(pruned, Err(StoreError::Fenced)), "{pruned:?}");
    assert!(new.find_id(&task).await.is_some(), "the history is still there");
    let all = store.ownerships().await.expect("ownerships are read");
    assert_eq!(all[1].owner.as_deref(), Some("owner"), "the new owner still owns it");
}

pub async fn a_new_owner_sees_all_that_was_done<S: Store>(store: &S) {
    let mut seqs = Vec::new();
    for seq in 1..=10 {
        let owner = Owner::new(store).await;
        assert_eq!(owner.loaded(WINDOW).await, seqs);
        owner.accept(&[owner.task(seq, 100)]).await;
        seqs.push(seq);
    }
}

pub async fn a_record_that_races_a_claim_is_seen_or_fenced<S: Store>(store: &S) {
    for round in 1..=20 {
        let owner = Owner::new(store).await;
        let task = owner.task(round, 100);
        let record = owner.try_record(vec![Change::Accepted(task.clone())]);
        let claim = store.claim(PARTITION, owner.fence.epoch, "usurper");
        let (recorded, claim) = if round % 2 == 0 {
            join(record, claim).await
        } else {
            let (claim, recorded) = join(claim, record).await;
            (recorded, claim)
        };
        assert_eq!(claim.expect("answered"), Claim::Won(Epoch(owner.fence.epoch.0 + 1)));
        let seen = owner.find_id(&task).await.is_some();
        match recorded {
            Recorded::Done => assert!(seen, "what was answered is seen by the new owner"),
            Recorded::Fenced | Recorded::Full => assert!(!seen, "what was refused does not count"),
            Recorded::Unknown => {}
        }
    }
    assert_eq!(epoch(store, PARTITION).await, Epoch(40));
}
