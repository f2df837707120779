//! The coordination map: compare-and-set, versions that only grow, and expiry.

use bytes::Bytes;
use futures_util::future::join_all;
use punctual_core::Timestamp;

use crate::{MapEntry, Store, Swap};

const NOW: Timestamp = Timestamp::from_secs(1_000);

fn value(text: &str) -> Option<Bytes> {
    Some(Bytes::from(text.to_owned()))
}

async fn set<S: Store>(store: &S, key: &str, expected: Option<u64>, text: Option<&str>) -> Swap {
    let swap = store.compare_and_set(NOW, key, expected, text.and_then(value), None).await;
    swap.expect("the swap is answered")
}

async fn get<S: Store>(store: &S, now: Timestamp, key: &str) -> Option<MapEntry> {
    store.get(now, key).await.expect("the entry is read")
}

/// Sets an entry that is not there, and answers its version.
async fn put<S: Store>(store: &S, key: &str, expires_at: Option<Timestamp>) -> u64 {
    let swap = store.compare_and_set(NOW, key, None, value(key), expires_at).await;
    match swap.expect("the swap is answered") {
        Swap::Done(Some(version)) => version,
        other => panic!("{key} was not set: {other:?}"),
    }
}

pub async fn an_entry_is_set_only_as_expected<S: Store>(store: &S) {
    assert_eq!(get(store, NOW, "key").await, None);
    assert_eq!(set(store, "key", Some(1), Some("a")).await, Swap::Conflict(None));
    let first = put(store, "key", None).await;
    let entry = MapEntry { value: Bytes::from("key"), version: first };
    assert_eq!(get(store, NOW, "key").await, Some(entry.clone()));
    assert_eq!(set(store, "key", None, Some("b")).await, Swap::Conflict(Some(entry.clone())));
    assert_eq!(set(store, "key", Some(first + 1), None).await, Swap::Conflict(Some(entry)));
    let Swap::Done(Some(second)) = set(store, "key", Some(first), Some("b")).await else {
        panic!("the version was the expected one");
    };
    assert!(second > first);
    assert_eq!(get(store, NOW, "key").await.map(|entry| entry.value), value("b"));
    assert_eq!(set(store, "key", Some(second), None).await, Swap::Done(None));
    assert_eq!(get(store, NOW, "key").await, None);
}

pub async fn of_many_writers_one_wins<S: Store>(store: &S) {
    let mut expected = None;
    for _ in 0..5 {
        let swaps = join_all((0..8).map(|_| set(store, "key", expected, Some("mine")))).await;
        let won: Vec<&Swap> = swaps.iter().filter(|swap| matches!(swap, Swap::Done(_))).collect();
        assert_eq!(won.len(), 1, "one winner: {swaps:?}");
        expected = get(store, NOW, "key").await.map(|entry| entry.version);
        assert_eq!(won[0], &Swap::Done(expected), "and the entry is the winner's");
    }
}

pub async fn versions_grow_across_removal_and_expiry<S: Store>(store: &S) {
    let first = put(store, "key", None).await;
    assert_eq!(set(store, "key", Some(first), None).await, Swap::Done(None));
    let second = put(store, "key", Some(NOW)).await;
    let third = put(store, "key", None).await;
    assert!(first < second && second < third, "{first} {second} {third}");
    let stale = set(store, "key", Some(first), Some("late")).await;
    assert!(matches!(stale, Swap::Conflict(Some(_))), "an old version is never right again: {stale:?}");
}

pub async fn an_expired_entry_is_absent<S: Store>(store: &S) {
    let expiry = Timestamp::from_secs(2_000);
    let before = Timestamp::from_micros(expiry.as_micros() - 1);
    let version = put(store, "key", Some(expiry)).await;
    assert!(get(store, before, "key").await.is_some());
    assert_eq!(get(store, expiry, "key").await, None);
    let entries = store.entries(expiry, "", None, 10).await.expect("entries are read");
    assert!(entries.is_empty(), "{entries:?}");
    let renewed = store.compare_and_set(expiry, "key", Some(version), value("late"), None).await;
    assert_eq!(renewed.expect("answered"), Swap::Conflict(None), "too late to renew");
    let taken = store.compare_and_set(expiry, "key", None, value("taken"), None).await;
    assert!(matches!(taken, Ok(Swap::Done(Some(_)))), "{taken:?}");
    assert_eq!(get(store, Timestamp::MAX, "key").await.map(|entry| entry.value), value("taken"));
}

pub async fn entries_page_in_order_under_their_prefix<S: Store>(store: &S) {
    for key in ["node/b", "node/a", "node", "node/", "nodes", "queue/a", "node/é", "node/b/1"] {
        put(store, key, None).await;
    }
    put(store, "node/aa", Some(NOW)).await;
    let page = async |after: Option<&str>, limit| -> Vec<String> {
        let entries = store.entries(NOW, "node/", after, limit).await.expect("entries are read");
        entries.into_iter().map(|(key, _)| key.into_string()).collect()
    };
    assert_eq!(page(None, 3).await, ["node/", "node/a", "node/b"]);
    assert_eq!(page(Some("node/b"), 3).await, ["node/b/1", "node/é"]);
    assert_eq!(page(Some("node/é"), 3).await, [""; 0]);
    assert_eq!(page(Some("a"), 1).await, ["node/"], "what comes before the prefix is no page");
}
