//! Layers on a cold tier, against one plain tree.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::embedded::cold::MemoryTier;
use crate::embedded::layer::Said;

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8),
    Delete(u8),
    Clear(u8, u8),
    Seal,
    Ingest,
    Scan(u8, u8, usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    let key = 0u8..24;
    prop_oneof![
        6 => (key.clone(), any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        4 => key.clone().prop_map(Step::Delete),
        1 => (key.clone(), key.clone()).prop_map(|(from, until)| Step::Clear(from, until)),
        1 => Just(Step::Seal),
        1 => Just(Step::Ingest),
        3 => (key.clone(), key, 0usize..9).prop_map(|(from, until, limit)| Step::Scan(from, until, limit)),
    ]
}

/// Rows of no partition and of three of them, in order.
fn key(number: u8) -> Vec<u8> {
    if number < 4 { vec![number] } else { vec![5, 0, number / 8, number % 8] }
}

fn number(key: &[u8]) -> u8 {
    if let [number] = key { *number } else { key[2] * 8 + key[3] }
}

#[derive(Default)]
struct Layered {
    recent: Layer,
    sealed: Option<Layer>,
    cold: MemoryTier,
}

impl Layered {
    fn get(&self, key: &[u8]) -> Option<Bytes> {
        for layer in [Some(&self.recent), self.sealed.as_ref()].into_iter().flatten() {
            match layer.get(&Key::from(key)) {
                Said::Is(value) => return Some(value.to_bytes()),
                Said::IsNot => return None,
                Said::Nothing => {}
            }
        }
        self.cold.get(key).expect("memory does not fail")
    }

    fn put(&mut self, key: u8, value: u8) {
        let is_new = !self.ever_held(key);
        self.recent.put(Key::from(&super::tests::key(key)[..]), Value::Bytes(vec![value].into()), is_new);
    }

    /// Whether a layer below the recent one, cleared or not, has something of this key.
    fn ever_held(&self, key: u8) -> bool {
        let key = super::tests::key(key);
        let sealed = self.sealed.as_ref();
        let sealed = sealed.is_some_and(|sealed| sealed.get(&Key::from(&key[..])) != Said::Nothing);
        sealed || self.cold.get(&key).expect("memory does not fail").is_some()
    }

    fn ingest(&mut self) {
        if let Some(sealed) = self.sealed.take() {
            self.cold.ingest(&mut to_ingest(&sealed, &self.cold)).expect("memory does not fail");
        }
    }

    fn seal(&mut self) {
        self.ingest();
        self.sealed = Some(std::mem::take(&mut self.recent));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn layers_read_as_one_tree(steps in prop::collection::vec(any_step(), 1..60)) {
        let mut layered = Layered::default();
        let mut tree: BTreeMap<u8, u8> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(key, value) => {
                    layered.put(key, value);
                    tree.insert(key, value);
                }
                Step::Delete(number) => {
                    layered.recent.delete(&Key::from(&key(number)[..]));
                    tree.remove(&number);
                }
                Step::Clear(from, until) => {
                    layered.recent.clear(Key::from(&key(from)[..]), Key::from(&key(until)[..]));
                    tree.retain(|key, _| !(from..until).contains(key));
                }
                Step::Seal => layered.seal(),
                Step::Ingest => layered.ingest(),
                Step::Scan(from, until, limit) => {
                    let bounds = [key(from), key(until)];
                    let bounds = (&bounds[0][..], &bounds[1][..]);
                    let slice = layered.recent.slice(bounds.0, bounds.1, limit);
                    let found = scan(slice, layered.sealed.as_ref(), layered.cold.range(bounds.0, bounds.1), bounds, limit);
                    let found = found.expect("memory does not fail");
                    let found: Vec<(u8, u8)> = found.iter().map(|(key, value)| (number(key), value[0])).collect();
                    let wanted = tree.iter().filter(|(key, _)| (from..until).contains(*key));
                    let wanted: Vec<(u8, u8)> = wanted.take(limit).map(|(key, value)| (*key, *value)).collect();
                    prop_assert_eq!(found, wanted);
                }
            }
            for number in 0..24u8 {
                prop_assert_eq!(layered.get(&key(number)).map(|value| value[0]), tree.get(&number).copied());
            }
        }
    }
}
