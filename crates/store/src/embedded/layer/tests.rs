//! A layer on top of another, against one plain tree.

use proptest::prelude::*;

use super::*;

fn key(name: &str) -> Key {
    Key::from(name.as_bytes())
}

fn value(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[test]
fn a_row_that_is_born_and_dies_in_a_layer_leaves_nothing() {
    let mut layer = Layer::default();
    layer.put(key("a"), value("1"), true);
    layer.put(key("a"), value("22"), false);
    assert_eq!(layer.get(b"a"), Said::Is(value("22")));
    layer.delete(b"a");
    assert_eq!(layer.get(b"a"), Said::Nothing);
    assert!(layer.is_empty());
    assert_eq!(layer.bytes(), 0);
}

#[test]
fn a_row_that_may_lie_below_leaves_a_deletion() {
    let mut layer = Layer::default();
    layer.put(key("a"), value("1"), false);
    layer.delete(b"a");
    layer.delete(b"b");
    assert_eq!((layer.get(b"a"), layer.get(b"b")), (Said::IsNot, Said::IsNot));
    layer.put(key("b"), value("2"), false);
    assert_eq!(layer.get(b"b"), Said::Is(value("2")));
}

#[test]
fn what_was_cleared_is_gone_below_too_and_can_come_again() {
    let mut layer = Layer::default();
    layer.put(key("b"), value("1"), false);
    layer.clear(key("a"), key("c"));
    assert_eq!(
        (layer.get(b"a"), layer.get(b"b"), layer.get(b"c")),
        (Said::IsNot, Said::IsNot, Said::Nothing)
    );
    layer.put(key("b"), value("2"), false);
    assert_eq!(layer.get(b"b"), Said::Is(value("2")));
    layer.delete(b"b");
    assert_eq!(layer.get(b"b"), Said::IsNot);
}

#[test]
fn a_slice_ends_with_the_last_value_asked_for() {
    let mut layer = Layer::default();
    for name in ["a", "b", "d"] {
        layer.put(key(name), value("x"), false);
    }
    layer.delete(b"a");
    layer.delete(b"c");
    let keys = |slice: Slice| slice.rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    assert_eq!(keys(layer.slice(b"a", b"z", 1)), [key("a"), key("b")]);
    assert_eq!(keys(layer.slice(b"b", b"d", 9)), [key("b"), key("c")]);
    assert_eq!(keys(layer.slice(b"z", b"a", 9)), []);
}

proptest! {
    #[test]
    fn short_and_long_keys_sort_as_their_bytes(one: Vec<u8>, other: Vec<u8>, common in 0usize..40) {
        let (one, other) = ([vec![7; common], one].concat(), [vec![7; common], other].concat());
        prop_assert_eq!(Key::from(&one[..]).cmp(&Key::from(&other[..])), one.cmp(&other));
        let key = Key::from(&one[..]);
        prop_assert_eq!(key.as_slice(), &one[..]);
    }
}
