//! The smallest ordered key-value store there is: a map behind a lock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use super::{Guard, OrderedKv, Write};
use crate::StoreError;

/// A map in memory. Clones share it.
#[derive(Clone)]
pub struct MemoryKv {
    map: Arc<Mutex<BTreeMap<Bytes, Bytes>>>,
    write_max: usize,
}

impl MemoryKv {
    /// An empty map that takes writes of any size.
    pub fn new() -> MemoryKv {
        MemoryKv::with_write_max(usize::MAX)
    }

    /// An empty map that takes so many guards and writes at once, like a server with a limit.
    pub fn with_write_max(write_max: usize) -> MemoryKv {
        MemoryKv { map: Arc::default(), write_max }
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<Bytes, Bytes>> {
        self.map.lock().expect("nothing panics while it holds the map")
    }
}

impl Default for MemoryKv {
    fn default() -> Self {
        MemoryKv::new()
    }
}

impl OrderedKv for MemoryKv {
    fn write_max(&self) -> usize {
        self.write_max
    }

    async fn get(&self, key: &Bytes) -> Result<Option<Bytes>, StoreError> {
        Ok(self.map().get(key).cloned())
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let map = self.map();
        Ok(keys.iter().map(|key| map.get(key).cloned()).collect())
    }

    async fn scan(
        &self,
        from: &Bytes,
        until: &Bytes,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        if from >= until {
            return Ok(Vec::new());
        }
        let map = self.map();
        let rows = map.range::<Bytes, _>(from..until).take(limit);
        Ok(rows.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    async fn write(&self, guards: &[Guard], writes: Vec<Write>) -> Result<bool, StoreError> {
        let size = guards.len() + writes.len();
        assert!(size <= self.write_max, "{size} guards and writes, more than {}", self.write_max);
        let mut map = self.map();
        if guards.iter().any(|(key, expected)| map.get(key) != expected.as_ref()) {
            return Ok(false);
        }
        for write in writes {
            match write {
                Write::Put(key, value) => drop(map.insert(key, value)),
                Write::Delete(key) => drop(map.remove(&key)),
                Write::DeleteRange(from, until) => {
                    let keys: Vec<Bytes> = map.range(from..until).map(|(key, _)| key.clone()).collect();
                    keys.iter().for_each(|key| drop(map.remove(key)));
                }
            }
        }
        Ok(true)
    }
}
