//! The memory driver proves itself.

use punctual_store::{MemoryStore, conformance};

#[tokio::test]
async fn memory_conforms() {
    conformance::run(async || MemoryStore::new(4)).await;
}
