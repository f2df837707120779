//! Rows that were right and were spoiled: a reader refuses them, or reads something that it would write the same way.

use punctual_core::{EndedTask, PartitionId, Task};

use super::*;
use crate::Held;
use crate::conformance::{History, Owner};
use crate::kv::{KvStore, MemoryKv, OrderedKv};
use crate::mutation::{rounds, spoil};

/// Every kind of row, as a store has it after a while.
async fn rows() -> (KvStore<MemoryKv>, MemoryKv, Vec<(Bytes, Bytes)>) {
    let kv = MemoryKv::new();
    let store = KvStore::open(kv.clone(), 4).await.expect("memory does not fail");
    for partition in [1, 2].map(PartitionId) {
        let owner = Owner::claim(&store, partition).await;
        let mut history = History::new(u64::from(partition.0), partition);
        for _ in 0..20 {
            owner.record(history.batch()).await;
        }
    }
    let rows = kv.scan(&Bytes::new(), &Bytes::from_static(&[255]), usize::MAX).await.expect("read");
    (store, kv, rows)
}

/// If it can be read, what is written for it reads the same.
fn is_stable<R: Row>(bytes: &[u8]) -> bool {
    let Ok(row) = decode::<R>(bytes) else { return false };
    let written = encode(&row);
    let again = decode::<R>(&written).unwrap_or_else(|_| panic!("what was written is not read: {bytes:?}"));
    assert_eq!(encode(&again), written, "it reads otherwise than it was written: {bytes:?}");
    true
}

fn is_stable_as_anything(bytes: &[u8]) -> bool {
    let as_each = [
        is_stable::<MetaRow>(bytes),
        is_stable::<OwnerRow>(bytes),
        is_stable::<BucketRow>(bytes),
        is_stable::<VersionRow>(bytes),
        is_stable::<MapRow>(bytes),
        is_stable::<IdentityRow>(bytes),
        is_stable::<TaskId>(bytes),
        is_stable::<Held>(bytes),
        is_stable::<(WindowId, Timestamp)>(bytes),
        is_stable::<Place>(bytes),
        is_stable::<Task>(bytes),
        is_stable::<EndedTask>(bytes),
    ];
    as_each.contains(&true)
}

#[tokio::test]
async fn what_can_be_read_would_be_written_the_same() {
    let (_, _, rows) = rows().await;
    let mut read = 0;
    for mut dice in rounds(30_000) {
        let [row, other] = [(); 2].map(|()| &rows[dice.below(rows.len() as u64) as usize].1);
        assert!(is_stable_as_anything(row) || row.is_empty() || row[0] != FORMAT, "{row:?}");
        read += u32::from(is_stable_as_anything(&spoil(&mut dice, row, other)));
    }
    assert!(read > 100, "only {read} spoiled rows got anywhere");
}

#[tokio::test]
async fn a_spoiled_row_or_key_is_reported_or_does_no_harm() {
    let (store, kv, rows) = rows().await;
    let mut reported = 0;
    for mut dice in rounds(1_000) {
        let [(key, value), other] = [(); 2].map(|()| &rows[dice.below(rows.len() as u64) as usize]);
        let (spoiled_key, spoiled) = match dice.below(4) {
            0 => (Bytes::from(spoil(&mut dice, key, &other.0)), value.clone()),
            _ => (key.clone(), Bytes::from(spoil(&mut dice, value, &other.1))),
        };
        let before = kv.get(&spoiled_key).await.expect("read");
        let put = crate::kv::Write::Put(spoiled_key.clone(), spoiled);
        kv.write(&[], vec![put]).await.expect("written");
        // It is refused as a whole, or named in the report, or one that could be there.
        reported += match store.verify().await {
            Ok(report) => u32::from(report.problems > 0),
            Err(_) => 1,
        };
        let put_back = match before {
            Some(value) => crate::kv::Write::Put(spoiled_key, value),
            None => crate::kv::Write::Delete(spoiled_key),
        };
        kv.write(&[], vec![put_back]).await.expect("written");
    }
    assert!(reported > 500, "only {reported} of them were noticed");
    assert_eq!(store.verify().await.expect("read").described, Vec::<String>::new());
}
