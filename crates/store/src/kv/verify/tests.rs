//! What is whole is found whole, and what is spoiled is named.

use punctual_core::{Change, Obstacle};

use super::*;
use crate::Store;
use crate::Swap;
use crate::conformance::{History, Owner};
use crate::kv::{KvStore, MemoryKv, Write};

const P: PartitionId = PartitionId(1);

/// A store after a history of so many batches, with everything in it that can be in a store.
async fn store(seed: u64, batches: usize) -> (MemoryKv, KvStore<MemoryKv>) {
    let kv = MemoryKv::new();
    let store = KvStore::open(kv.clone(), 4).await.expect("it opens");
    let owner = Owner::claim(&store, P).await;
    let mut history = History::new(seed, P);
    for _ in 0..batches {
        owner.record(history.batch()).await;
    }
    let set =
        store.compare_and_set(Timestamp::MIN, "k", None, Some(Bytes::new()), Some(Timestamp::MAX)).await;
    assert!(matches!(set, Ok(Swap::Done(Some(_)))));
    (kv, store)
}

async fn all(kv: &MemoryKv) -> Vec<(Bytes, Bytes)> {
    kv.scan(&Bytes::new(), &keys::ROWS_END, usize::MAX).await.expect("scanned")
}

fn table_of(key: &[u8]) -> Option<Table> {
    match keys::kind_of(key) {
        keys::Kind::Table(_, table) => Some(table),
        _ => None,
    }
}

#[tokio::test]
async fn whatever_an_engine_may_do_leaves_nothing_wrong() {
    for seed in 0..50 {
        let (_, store) = store(seed, 60).await;
        let report = store.verify().await.expect("read");
        assert_eq!(report.described, Vec::<String>::new(), "seed {seed}");
        assert!(report.live > 0 && report.ended > 0 && report.rows > report.live + report.ended);
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_a_problem_in_every_table_but_one() {
    let (kv, store) = store(1, 200).await;
    let mut seen = Vec::new();
    for (key, value) in all(&kv).await {
        let table = table_of(&key);
        if table == Some(Table::Schedules) || seen.contains(&table) && table.is_some() {
            continue; // A schedule's row is opaque to the store.
        }
        seen.push(table);
        kv.write(&[], vec![Write::Put(key.clone(), Bytes::from_static(&[1, 255]))]).await.expect("written");
        let is_expiry = matches!(keys::kind_of(&key), keys::Kind::MapExpiry(_));
        let problems = store.verify().await.expect("read").problems;
        assert!(problems > 0 || is_expiry, "{table:?} {}", hex(&key));
        kv.write(&[], vec![Write::Put(key, value)]).await.expect("mended");
    }
    assert_eq!(store.verify().await.expect("read").problems, 0);
    assert!(seen.len() >= 11, "a history has rows of every table: {seen:?}");
}

#[tokio::test]
async fn an_index_row_that_is_missing_is_a_problem() {
    let indices = [Table::Moved, Table::ParkedOrder, Table::Leased, Table::Buckets];
    let mut missed = [false; 4];
    for seed in 0..20 {
        let (kv, store) = store(seed, 60).await;
        for (key, value) in all(&kv).await {
            let Some(index) = indices.iter().position(|table| Some(*table) == table_of(&key)) else {
                continue;
            };
            let is_empty_bucket = indices[index] == Table::Buckets && !has_ends(&kv, &key).await;
            kv.write(&[], vec![Write::Delete(key.clone())]).await.expect("deleted");
            let problems = store.verify().await.expect("read").problems;
            assert!(problems > 0 || is_empty_bucket, "seed {seed}: {:?} {}", indices[index], hex(&key));
            missed[index] = true;
            kv.write(&[], vec![Write::Put(key, value)]).await.expect("mended");
        }
    }
    assert_eq!(missed, [true; 4]);
}

/// A bucket stays when its only task was revived.
async fn has_ends(kv: &MemoryKv, bucket: &Bytes) -> bool {
    let row: BucketRow = decode(&kv.get(bucket).await.expect("read").expect("there")).expect("readable");
    let queue = u32::from_be_bytes(*bucket[4..].first_chunk().expect("a queue"));
    let bucket = BucketId { queue: punctual_core::QueueId(queue), hour: row.hour };
    let rows = keys::bucket_rows(P, bucket);
    !kv.scan(&rows.clone().done(), &rows.end(), 1).await.expect("scanned").is_empty()
}

#[tokio::test]
async fn rows_that_contradict_each_other_are_problems() {
    let (kv, store) = store(3, 0).await;
    let owner = Owner::claim(&store, P).await;
    let task = crate::conformance::with_key(owner.task(1, 1_000), "key");
    owner.accept(std::slice::from_ref(&task)).await;
    let identity = task.spec.identity(task.id.queue).expect("it has a key");
    let describe = async || store.verify().await.expect("read").described;
    assert_eq!(describe().await, Vec::<String>::new());

    owner
        .record(vec![Change::LowWater(task.window(), task.wake_at + std::time::Duration::from_secs(1))])
        .await;
    assert!(describe().await[0].contains("low-water mark"));
    kv.write(&[], vec![Write::Delete(keys::low_water(P, task.window()))]).await.expect("mended");

    kv.write(&[], vec![Write::Delete(keys::identity(P, identity))]).await.expect("written");
    assert!(describe().await[0].contains("unique key"));

    let row = kv.get(&keys::place(P, task.place())).await.expect("read").expect("there");
    let elsewhere = keys::parked(P, Obstacle::Handler(1)).row(task.key()).done();
    kv.write(&[], vec![Write::Put(elsewhere, row)]).await.expect("written");
    assert!(describe().await.iter().any(|problem| problem.contains("does not belong")));

    kv.write(&[], vec![Write::Put(Bytes::from_static(&[77]), Bytes::new())]).await.expect("written");
    assert!(describe().await.iter().any(|problem| problem.contains("nobody knows")));
}

#[tokio::test]
async fn a_store_without_its_first_row_is_new_if_it_has_no_other() {
    let kv = MemoryKv::new();
    let store = KvStore::open(kv.clone(), 4).await.expect("it opens");
    let describe = async || store.verify().await.expect("read").described;
    kv.write(&[], vec![Write::Delete(keys::META)]).await.expect("deleted");
    assert_eq!(describe().await, Vec::<String>::new(), "its process was killed before it wrote a row");
    Owner::claim(&store, P).await;
    assert!(describe().await[0].contains("what the store is is missing"));
}
