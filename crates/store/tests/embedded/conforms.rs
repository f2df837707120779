//! The whole contract, on both kinds of disk, with layers that go down all the time.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual_store::conformance;

use super::world::{Machine, open};

#[tokio::test]
async fn on_a_simulated_disk() {
    conformance::run(async || Machine::new(1).open().await).await;
}

#[tokio::test]
async fn opened_again_on_a_simulated_disk() {
    let machine = Machine::new(2);
    conformance::run_reopened(async || {
        machine.disk.crash();
        machine.open().await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_folder() {
    let (folder, next) = (tempfile::tempdir().expect("a folder"), AtomicU64::new(0));
    let fresh = async || {
        let name = next.fetch_add(1, Ordering::Relaxed).to_string();
        open(&folder.path().join(name)).await
    };
    conformance::run(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opened_again_in_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    conformance::run_reopened(async || open(folder.path()).await).await;
}
